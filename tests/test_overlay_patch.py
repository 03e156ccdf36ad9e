"""The overlay as a patch: Git applies it to the pristine source and gets the generated tree."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from build_helpers import REPOSITORY
from harness.build.generate import generated_tree, overlaid_tree, sync, upstream_tree
from harness.build.patch import Kind, count_lines, kind_of, make_patch
from harness.build.sdist import Tree, read_sdist

LINES = st.lists(st.text("ab \t\x0c", max_size=4), max_size=6)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda pair: "\n".join(pair[0]) + ("\n" if pair[1] and pair[0] else ""))
TREES = st.dictionaries(st.sampled_from(["a.py", "src/b.rs", "docs/c.md"]), TEXTS.map(str.encode))


def git_apply(folder: Path, patch: str) -> None:
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=patch,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(folder.parent), "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr


def contents(folder: Path) -> Tree:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_patch_applies_to_the_pristine_sdist_and_gives_the_generated_tree(tmp_path: Path) -> None:
    pristine = read_sdist()
    sync(tmp_path, pristine)
    git_apply(tmp_path, make_patch(upstream_tree(), overlaid_tree(REPOSITORY)))
    patched = contents(tmp_path)
    expected = {**pristine, **overlaid_tree(REPOSITORY)}
    assert patched == expected
    generated = generated_tree(REPOSITORY, "inline")
    differing = [path for path, content in generated.items() if patched.get(path) != content]
    assert differing == ["python/datafusion/distributed/_build.json"]


@settings(max_examples=40, deadline=None)
@given(TREES, TREES)
def test_any_patch_applies(old: Tree, new: Tree) -> None:
    patch = make_patch(old, new)
    assert (patch == "") == (old == new)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "tree"
        folder.mkdir()
        sync(folder, old)
        if patch:
            git_apply(folder, patch)
        assert contents(folder) == new


@settings(deadline=None)
@given(TREES, TREES)
def test_counts_are_those_of_the_patch(old: Tree, new: Tree) -> None:
    counts = count_lines(old, new)
    body = [line for line in make_patch(old, new).split("\n") if not line.startswith(("+++ ", "--- "))]
    assert sum(count.added for count in counts.values()) == sum(line.startswith("+") for line in body)
    assert sum(count.removed for count in counts.values()) == sum(line.startswith("-") for line in body)
    assert sum(count.files for count in counts.values()) == len({*old, *new} - {p for p in old if old[p] == new.get(p)})


def test_inline_adds_lines_and_removes_none() -> None:
    counts = count_lines(upstream_tree(), overlaid_tree(REPOSITORY))
    assert all(count.removed == 0 for count in counts.values())
    assert {Kind.RUST, Kind.PYTHON, Kind.TESTS, Kind.DOCS, Kind.MANIFEST} == counts.keys()
    assert counts[Kind.RUST].added < 60, "inline's Rust is glue; what is more belongs into the engine"


def test_kinds_of_files() -> None:
    kinds = {
        "crates/core/src/lib.rs": Kind.RUST,
        "python/datafusion/plan.py": Kind.PYTHON,
        "python/tests/test_distributed.py": Kind.TESTS,
        "docs/source/index.md": Kind.DOCS,
        "crates/core/Cargo.toml": Kind.MANIFEST,
        "LICENSE.txt": Kind.OTHER,
    }
    assert {path: kind_of(path) for path in kinds} == kinds


def test_command_prints_patch_and_counts() -> None:
    command = [sys.executable, "-m", "harness.build", "overlay", "--patch"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith("diff --git a/")
    for word in ("rust", "python", "tests", "docs", "manifest", "total", "packages added to the lock"):
        assert word in done.stderr
