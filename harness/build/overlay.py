"""Apply an overlay to a source tree: own new files, inserted lines, and (for a copied tree) replaced phrases.

No upstream text is committed, not even as the context lines of a patch. An insertion names the line it goes next to
by a short anchor that must occur exactly once; when upstream moves on and an anchor vanishes or repeats, the error says
which one. `harness.build.patch` turns the outcome into a patch for people to read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from harness.build.sdist import Tree
from harness.build.tomlfile import parse_toml
from harness.errors import HarnessFault
from harness.model import Frozen

OVERLAY_FILE = "overlay.toml"
NEW_FILES = "new"


class OverlayError(HarnessFault):
    """The overlay does not fit the source tree, or contradicts itself."""


class Insertion(Frozen):
    """Lines that go before or after the one line that holds `anchor`."""

    file: str
    anchor: str
    side: Literal["before", "after"]
    lines: str
    why: str = ""


class Replacement(Frozen):
    """A phrase within one line that is replaced; it must occur exactly once in the file."""

    file: str
    old: str
    new: str
    why: str = ""


class Overlay(Frozen):
    """Everything that is laid over a source tree.

    `declared` holds the other tables of the file, for checks that are not about text (see `harness.build.manifest`).
    """

    name: str
    insertions: tuple[Insertion, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    new_files: dict[str, bytes] = Field(default_factory=dict)
    declared: dict[str, dict[str, list[str]]] = Field(default_factory=dict)


def load_overlay(folder: Path) -> Overlay:
    """Read an overlay folder: `overlay.toml`, the text files that it names, and the files below `new/`.

    Raises:
        OverlayError: a table has a wrong shape, or names a text file that is not there.
    """
    path = folder / OVERLAY_FILE
    document = parse_toml(path.read_text(encoding="utf-8"), str(path))
    try:
        return Overlay(
            name=f"{folder.parent.name}/{folder.name}",
            insertions=tuple(_insertion(folder, table) for table in document.pop("insert", [])),
            replacements=tuple(Replacement(**table) for table in document.pop("replace", [])),
            new_files=_new_files(folder / NEW_FILES),
            declared=document,
        )
    except (ValidationError, TypeError) as error:
        msg = f"{path}: {error}"
        raise OverlayError(msg) from error


def _insertion(folder: Path, table: dict[str, str]) -> Insertion:
    sides = [side for side in ("before", "after") if side in table]
    sources = [source for source in ("lines", "text") if source in table]
    if len(sides) != 1 or len(sources) != 1:
        msg = f"{folder / OVERLAY_FILE}: an insertion needs `before` or `after`, and `lines` or `text`; got {table}"
        raise OverlayError(msg)
    if "text" in table:
        source = folder / table["text"]
        if not source.is_file():
            msg = f"{folder / OVERLAY_FILE}: the text file {table['text']} is missing"
            raise OverlayError(msg)
        lines = source.read_text(encoding="utf-8")
    else:
        lines = table["lines"]
    side: Literal["before", "after"] = "before" if "before" in table else "after"
    return Insertion(
        file=table["file"],
        anchor=table[side],
        side=side,
        lines=lines if lines.endswith("\n") else lines + "\n",
        why=table.get("why", ""),
    )


def _new_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def apply_overlay(tree: Tree, overlay: Overlay) -> Tree:
    """Return a new tree with the overlay applied; applying it to the result again changes nothing.

    Raises:
        OverlayError: a file or an anchor is missing, an anchor occurs more than once, or a new file exists upstream.
    """
    result = dict(tree)
    for path, content in overlay.new_files.items():
        if result.get(path, content) != content:
            msg = f"{overlay.name}: new file {path} exists in the source tree with other content"
            raise OverlayError(msg)
        result[path] = content
    for file in dict.fromkeys(insertion.file for insertion in overlay.insertions):
        own = [insertion for insertion in overlay.insertions if insertion.file == file]
        result[file] = _insert_all(_text(result, file, overlay), own, overlay.name).encode()
    for replacement in overlay.replacements:
        text = _text(result, replacement.file, overlay)
        result[replacement.file] = _replace(text, replacement, overlay.name).encode()
    return result


def _text(tree: Tree, file: str, overlay: Overlay) -> str:
    if file not in tree:
        msg = f"{overlay.name}: {file} is not in the source tree"
        raise OverlayError(msg)
    return tree[file].decode("utf-8")


def _insert_all(text: str, insertions: list[Insertion], name: str) -> str:
    """Insert from the last place to the first, so that positions found in the given text stay right."""
    lines = text.splitlines(keepends=True)
    placed: list[tuple[int, int, list[str]]] = []
    for order, insertion in enumerate(insertions):
        at = _anchor_line(lines, insertion, name) + (1 if insertion.side == "after" else 0)
        new = insertion.lines.splitlines(keepends=True)
        if insertion.anchor in insertion.lines:
            msg = f"{name}: the lines inserted into {insertion.file} repeat their anchor {insertion.anchor!r}"
            raise OverlayError(msg)
        there = lines[at : at + len(new)] if insertion.side == "after" else lines[max(at - len(new), 0) : at]
        if there != new:
            placed.append((at, order, new))
    if len({at for at, _, _ in placed}) != len(placed):
        msg = f"{name}: two insertions share one place in {insertions[0].file}: merge them into one"
        raise OverlayError(msg)
    for at, _, new in sorted(placed, reverse=True):
        lines[at:at] = new
    return "".join(lines)


def _anchor_line(lines: list[str], insertion: Insertion, name: str) -> int:
    found = [number for number, line in enumerate(lines) if insertion.anchor in line]
    if len(found) != 1 or lines[found[0]].count(insertion.anchor) != 1:
        where = f"found at lines {', '.join(str(number + 1) for number in found)}" if found else "not found"
        msg = (
            f"{name}: anchor {insertion.anchor!r} must occur exactly once in {insertion.file}: {where}; "
            "the upstream file changed or the anchor is too short: choose another one in overlay.toml"
        )
        raise OverlayError(msg)
    return found[0]


def _replace(text: str, replacement: Replacement, name: str) -> str:
    """Replace the phrase; a text that has the new phrase and not the old one was done before."""
    count = text.count(replacement.old)
    if count == 1:
        return text.replace(replacement.old, replacement.new)
    if count == 0 and replacement.new in text:
        return text
    msg = f"{name}: {replacement.old!r} must occur exactly once in {replacement.file}, found {count} times"
    raise OverlayError(msg)
