"""An overlay as a unified patch that `git apply` takes, and its size by kind of line.

The counts answer a question of the comparison: what would this change cost the project that adopts it?
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from enum import Enum

from harness.build.sdist import Tree
from harness.model import Frozen

CONTEXT_LINES = 3


class Kind(str, Enum):
    """What a line of the patch is, for the reviewer who would have to read it."""

    RUST = "rust"
    PYTHON = "python"
    TESTS = "tests"
    DOCS = "docs"
    MANIFEST = "manifest"
    OTHER = "other"


class Count(Frozen):
    """Files and lines of one kind."""

    files: int
    added: int
    removed: int


def kind_of(path: str) -> Kind:
    """Return what kind of file a path is."""
    parts = path.split("/")
    if "tests" in parts:
        return Kind.TESTS
    if parts[0] in ("docs", "examples") or path.endswith((".md", ".rst")):
        return Kind.DOCS
    if parts[-1] in ("Cargo.toml", "pyproject.toml", "Cargo.lock"):
        return Kind.MANIFEST
    if path.endswith(".rs"):
        return Kind.RUST
    if path.endswith((".py", ".pyi", "py.typed")):
        return Kind.PYTHON
    return Kind.OTHER


def changed_paths(old: Tree, new: Tree) -> list[str]:
    """Return the paths that differ between two trees."""
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def make_patch(old: Tree, new: Tree) -> str:
    """Return the difference of two trees of text files as a Git patch."""
    return "".join("".join(_file_patch(path, old.get(path), new.get(path))) for path in changed_paths(old, new))


def count_lines(old: Tree, new: Tree) -> dict[Kind, Count]:
    """Return files and lines by kind, for the kinds that occur."""
    counts: dict[Kind, Count] = {}
    for path in changed_paths(old, new):
        kind = kind_of(path)
        before = counts.get(kind, Count(files=0, added=0, removed=0))
        body = list(_hunks(path, old.get(path), new.get(path)))
        counts[kind] = Count(
            files=before.files + 1,
            added=before.added + sum(line.startswith("+") for line in body),
            removed=before.removed + sum(line.startswith("-") for line in body),
        )
    return {kind: counts[kind] for kind in Kind if kind in counts}


def _file_patch(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    yield f"diff --git a/{path} b/{path}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    hunks = list(_hunks(path, old, new))
    if hunks:
        yield f"--- {f'a/{path}' if old is not None else '/dev/null'}\n"
        yield f"+++ {f'b/{path}' if new is not None else '/dev/null'}\n"
        yield from hunks


def _hunks(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Yield hunk headers and lines; difflib leaves out Git's note for a file without a final newline."""
    before, after = _lines(old), _lines(new)
    diff = difflib.unified_diff(before, after, path, path, n=CONTEXT_LINES)
    for number, line in enumerate(diff):
        if number < 2:  # the two header lines, which _file_patch writes in Git's form
            continue
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _lines(content: bytes | None) -> list[str]:
    """Split at newlines only: `splitlines` would also split at form feeds, which Git does not."""
    if not content:
        return []
    pieces = content.decode("utf-8").split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines
