"""Small Markdown pieces: tables, collapsed details, escaping."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

MAX_CELL = 300
"""Characters of one table cell; longer texts are in the JSON and HTML forms."""


def cell(text: str) -> str:
    """Text that cannot break out of a table cell or turn into markup."""
    flat = " ".join(text.split())
    if len(flat) > MAX_CELL:
        flat = flat[: MAX_CELL - 1] + "…"
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A bare #123 or @name in a comment would link to whatever the host repository has there.
    return re.sub(r"([|`*_\[\]#@])", r"\\\1", flat)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """A table; columns named in `right` are right-aligned. Cells that start with `**` or are already escaped stay."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---:" if index in right else "---" for index in range(len(head))) + "|"
    for row in rows:
        yield "| " + " | ".join(item if item.startswith("**") else cell(item) for item in row) + " |"


def details(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """A collapsed block. `summary` is HTML."""
    yield f"<details><summary>{summary}</summary>\n"
    yield from lines
    yield "\n</details>"


def code(text: str, language: str = "") -> Iterator[str]:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + language
    yield text
    yield fence
