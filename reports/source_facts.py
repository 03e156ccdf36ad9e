"""Facts about the sources of each strategy: lines by where they would live, lock packages, private upstream symbols.

All counting is done on the files of a checkout and on its lock file; the map of paths is `source_facts.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.build.tomlfile import parse_toml
from harness.errors import UserError
from harness.model import Frozen
from reports.datafiles import read_toml

FACTS_FILE = Path(__file__).parent / "source_facts.toml"

OVERLAY = "overlay.toml"
"""File of an overlay that holds short insertions itself: its `lines` are code, the rest of it is not."""


class CodeShare(Frozen):
    """Lines of code that would live in one place: no blank lines, no comment lines."""

    home: str
    title: str
    shared: bool = Field(description="Whether every strategy needs this code")
    files: int
    lines: dict[str, int] = Field(default_factory=dict, description="By language; tests apart")
    unmatched: list[str] = Field(default_factory=list, description="Path patterns that matched no file")


class PrivateUse(Frozen):
    """One use of something that upstream does not promise to keep."""

    rule: str
    file: str
    line: int
    text: str


class LockFacts(Frozen):
    """Packages that a strategy's wheel compiles, from the lock file."""

    packages: int = Field(description="Packages reachable from the strategy's crate")
    over_stock: list[str] = Field(description="Packages that stock datafusion-python does not need")
    duplicates: list[str] = Field(description="Names that occur in more than one version")


class SourceFacts(Frozen):
    """Everything that the sources say about one strategy."""

    arm: str
    code: list[CodeShare] = Field(default_factory=list)
    private: list[PrivateUse] = Field(default_factory=list)
    lock: LockFacts | None = None
    lock_reason: str | None = None


@lru_cache(maxsize=1)
def facts_map() -> Mapping[str, Any]:
    """The map of paths and rules, as read from `source_facts.toml`."""
    return read_toml(FACTS_FILE, "source map")


def language_of(path: Path) -> str:
    """Language of a file; a piece of code kept as text is named `x.rs.txt`, and tests count apart."""
    suffixes = [suffix for suffix in path.suffixes if suffix != ".txt"]
    language = {".rs": "Rust", ".py": "Python"}.get(suffixes[-1] if suffixes else "", "insertions")
    return f"{language} tests" if "tests" in path.parts else language


def count_lines(path: Path) -> int:
    """Code lines of one file. Docstrings count as code: upstream would review and keep them."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.name == OVERLAY:
        text = "\n".join(entry.get("lines", "") for entry in parse_toml(text, str(path)).get("insert", []))
    comment = "//" if language_of(path).startswith("Rust") else "#"
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith(comment))


def code_share(checkout: Path, entry: Mapping[str, Any], *, shared: bool) -> CodeShare:
    """Count the files of one map entry."""
    lines: dict[str, int] = {}
    files: set[Path] = set()
    unmatched = []
    for pattern in entry["paths"]:
        found = [path for path in sorted(checkout.glob(pattern)) if path.is_file()]
        if not found:
            unmatched.append(pattern)
        files.update(found)
    for path in sorted(files):
        language = language_of(path.relative_to(checkout))
        lines[language] = lines.get(language, 0) + count_lines(path)
    return CodeShare(
        home=entry["home"], title=entry["title"], shared=shared, files=len(files), lines=lines, unmatched=unmatched
    )


def scan_private(checkout: Path, paths: Iterable[str], rules: Iterable[Mapping[str, Any]]) -> list[PrivateUse]:
    """Lines that match a private-symbol rule. A reading aid, not a proof: it sees text, not types."""
    found = []
    compiled = [(rule["name"], re.compile(rule["pattern"]), set(rule["suffixes"])) for rule in rules]
    files = sorted({path for pattern in paths for path in checkout.glob(pattern) if path.is_file()})
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if line.lstrip().startswith(("#", "//")):
                continue
            rule = next(
                (name for name, pattern, suffixes in compiled if path.suffix in suffixes and pattern.search(line)), None
            )
            if rule:
                where = path.relative_to(checkout).as_posix()
                found.append(PrivateUse(rule=rule, file=where, line=number, text=line.strip()[:160]))
    return found


def read_lock(text: str) -> dict[str, list[tuple[str, list[str]]]]:
    """Packages of a Cargo.lock: name -> [(version, dependency entries)]."""
    packages: dict[str, list[tuple[str, list[str]]]] = {}
    for package in parse_toml(text, "Cargo.lock").get("package", []):
        packages.setdefault(package["name"], []).append((package["version"], list(package.get("dependencies", []))))
    return packages


def reachable(lock: Mapping[str, list[tuple[str, list[str]]]], root: str) -> set[tuple[str, str]]:
    """All (name, version) that `root` depends on, itself included.

    A lock file lists dependencies for every feature that any member turns on, so this is an upper bound.

    Raises:
        UserError: the lock has no such package.
    """
    if root not in lock:
        msg = f"the lock file has no package `{root}`; check [lock] in {FACTS_FILE.name}"
        raise UserError(msg)
    todo = [(root, version) for version, _ in lock[root]]
    seen: set[tuple[str, str]] = set()
    while todo:
        name, version = todo.pop()
        if (name, version) in seen:
            continue
        seen.add((name, version))
        for entry in next(deps for found, deps in lock[name] if found == version):
            parts = entry.split()
            wanted = parts[1] if len(parts) > 1 else lock[parts[0]][0][0]
            todo.append((parts[0], wanted))
    return seen


def lock_facts(text: str, root: str, stock: str) -> LockFacts:
    """Packages of `root` against those of `stock` in the same lock. This project's own crates do not count."""
    lock = read_lock(text)
    ours = {item for item in reachable(lock, root) if not _is_own(item[0])}
    base = {name for name, _ in reachable(lock, stock)}
    names = [name for name, _ in ours]
    return LockFacts(
        packages=len(ours),
        over_stock=sorted({name for name in names if name not in base}),
        duplicates=sorted({name for name in names if names.count(name) > 1}),
    )


def _is_own(name: str) -> bool:
    return name.startswith("df-strategies") or name == "datafusion-python-distributed"


def source_facts(checkout: Path, arm: str) -> SourceFacts:
    """Count one strategy's sources in a checkout."""
    table = facts_map()
    entries = [entry for entry in table["strategy"] if entry["arm"] == arm]
    code = [code_share(checkout, entry, shared=False) for entry in entries]
    code += [code_share(checkout, entry, shared=True) for entry in table["shared"]]
    rules = [rule for rule in table["private"] if arm not in rule["own_to"]]
    private = scan_private(checkout, [path for entry in entries for path in entry["paths"]], rules)
    root = table["lock"]["roots"].get(arm)
    lock_file = checkout / "Cargo.lock"
    if root is None or not lock_file.is_file():
        reason = "no crate is named for this arm" if root is None else "the checkout has no Cargo.lock"
        return SourceFacts(arm=arm, code=code, private=private, lock_reason=reason)
    lock = lock_facts(lock_file.read_text(encoding="utf-8"), root, table["lock"]["stock"])
    return SourceFacts(arm=arm, code=code, private=private, lock=lock)
