"""The checkout that holds the suite: is it one, of which commit, and a scratch copy of what its tests need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.conformance.upstream.model import CheckoutRecord
from harness.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python
    import tomli as tomllib

TESTS = Path("python") / "tests"

MAJOR = "55"
"""Major version of DataFusion that the arms hold; the suite of another one tests another API."""

GIT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Checkout:
    """A folder with the suite."""

    root: Path
    record: CheckoutRecord

    def lay_out(self, folder: Path) -> Path:
        """Make a folder from which the suite can run and return it.

        The tests are copied, all else is linked, and the package `datafusion` is left out: run inside the checkout,
        its sources, which hold no compiled library, would stand in for the installed package.
        """
        suite = folder / "suite"
        (suite / "python").mkdir(parents=True)
        for entry in self.root.iterdir():
            if entry.name not in (".git", "python", "target", ".venv"):
                (suite / entry.name).symlink_to(entry)
        shutil.copytree(
            self.root / TESTS, suite / TESTS, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), symlinks=True
        )
        return suite


def open_checkout(root: Path) -> Checkout:
    """Look at a folder.

    Raises:
        UserError: it is not a checkout of datafusion-python, or one of another major version.
    """
    wanted = "expected a checkout of https://github.com/apache/datafusion-python (git clone it, then give its folder)"
    if not root.is_dir():
        msg = f"--checkout {root}: no such folder; {wanted}"
        raise UserError(msg)
    root = root.resolve()
    missing = [
        name for name in ("Cargo.toml", "pyproject.toml", str(TESTS / "conftest.py")) if not (root / name).is_file()
    ]
    if missing:
        msg = f"--checkout {root}: {missing[0]} is not there; {wanted}"
        raise UserError(msg)
    version = _engine_version(root)
    if version.partition(".")[0] != MAJOR:
        msg = (
            f"--checkout {root}: its suite is for DataFusion {version}, the arms hold {MAJOR}.x: "
            f"check out a commit for {MAJOR}"
        )
        raise UserError(msg)
    return Checkout(
        root, CheckoutRecord(commit=_git(root, "rev-parse", "HEAD"), changed=_changed(root), datafusion=version)
    )


def _engine_version(root: Path) -> str:
    path = root / "Cargo.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"--checkout: {path} cannot be read as TOML: {error}"
        raise UserError(msg) from error
    found = data.get("workspace", {}).get("dependencies", {}).get("datafusion")
    version = found.get("version") if isinstance(found, dict) else found
    if not isinstance(version, str) or not re.match(r"\d+", version):
        msg = f"--checkout: {path} names no version of the crate `datafusion`, so this is no datafusion-python checkout"
        raise UserError(msg)
    return version


def _git(root: Path, *arguments: str) -> str | None:
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _changed(root: Path) -> bool | None:
    status = _git(root, "status", "--porcelain", "--untracked-files=no", "--", str(TESTS))
    return None if status is None else bool(status)
