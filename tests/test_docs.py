"""The documentation names things that exist: links, commands, versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import cli

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for page in sorted(ROOT.rglob("*.md"))
    if not {"generated", "node_modules", "runs", "data", ".tox"} & set(page.relative_to(ROOT).parts)
    and "published" not in page.parts
    and "tests" not in page.relative_to(ROOT).parts
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"\bdf-strategies ([a-z][a-z-]*)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    """A link that is not to another site is a file of the repository."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        path = (page.parent / target.split("#")[0]).resolve()
        assert path.exists(), f"{page.name} links to {target}, which does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    """Every `df-strategies X` of a page is a command."""
    known = set(cli.list_commands(None))  # type: ignore[arg-type]  # the context is not used
    named = set(COMMAND.findall(page.read_text(encoding="utf-8")))
    assert named <= known, f"{page.name} names {named - known}"


def test_pinned_versions_agree() -> None:
    """The lock, the manifests and the environments of the arms name the same versions."""
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = dict(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource', lock))
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    pins = dict(re.findall(r'^([a-z-]+) = (?:\{ version = )?"=([0-9.]+)"', manifest, re.MULTILINE))
    assert pins, "Cargo.toml pins nothing"
    assert {name: found[name] for name in pins} == pins
    stock = pins["datafusion-python"]
    for arm in ("local", "decorator"):
        text = (ROOT / "harness" / "arm_files" / f"{arm}.toml").read_text(encoding="utf-8")
        assert f'"datafusion=={stock}"' in text
    assert f'"datafusion=={stock}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    inline = (ROOT / "strategies" / "inline" / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{stock}+distributed"' in inline
