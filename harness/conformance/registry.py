"""Reading the registry and the list of expected failures; whatever is wrong in them is one clear message."""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.conformance.model import AREAS, Check, Expected
from harness.errors import HarnessFault, UserError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python
    import tomli as tomllib

HERE = Path(__file__).parent
REGISTRY = HERE / "registry"
SCRIPTS = HERE / "scripts"
EXPECTED_FILE = HERE / "expected.toml"

TIERS = ("must", "should", "may")


def load_registry(folder: Path = REGISTRY, scripts: Path = SCRIPTS) -> list[Check]:
    """All checks, by area and id.

    Raises:
        HarnessFault: an entry is wrong, an id is taken twice, or a check has no body (or a body no entry).
    """
    checks: dict[str, Check] = {}
    for path in sorted(folder.glob("*.toml")):
        for entry in _read(path).get("check", []):
            check = _parse(Check, entry, path)
            if check.id in checks:
                msg = f"{path.name}: check `{check.id}` is declared twice"
                raise HarnessFault(msg)
            checks[check.id] = check
    bodies = {f"{path.stem}.{name}" for path in sorted(scripts.glob("*.py")) for name in script_functions(path)}
    for without, what in (
        (checks.keys() - bodies, "no body in scripts/"),
        (bodies - checks.keys(), "no entry in registry/"),
    ):
        if without:
            msg = f"conformance checks with {what}: {', '.join(sorted(without))}"
            raise HarnessFault(msg)
    return sorted(checks.values(), key=lambda check: (check.area, check.id))


def script_functions(path: Path) -> list[str]:
    """Names of the checks in a script: public functions with one parameter named `arm`. The script is not imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and [a.arg for a in node.args.args] == ["arm"]
    ]


def load_expected(checks: Iterable[Check], path: Path = EXPECTED_FILE) -> list[Expected]:
    """The expected failures.

    Raises:
        UserError: an entry is wrong, or names a check that does not exist.
    """
    entries = [_parse(Expected, entry, path) for entry in _read(path).get("expected", [])]
    known = {check.id for check in checks}
    strangers = sorted({entry.check for entry in entries} - known)
    if strangers:
        msg = f"{path.name}: no such check: {', '.join(strangers)}. Remove the entry, or correct its id."
        raise UserError(msg)
    return entries


def select_checks(
    checks: Sequence[Check], *, areas: Sequence[int] = (), tiers: Sequence[str] = (), ids: Sequence[str] = ()
) -> list[Check]:
    """The checks that were asked for; no restriction means all.

    Raises:
        UserError: an area, tier or id does not exist, or nothing is left.
    """
    unknown = [area for area in areas if area not in AREAS]
    if unknown:
        msg = f"unknown area {unknown[0]}: expected a number from 1 to {max(AREAS)}"
        raise UserError(msg)
    for tier in tiers:
        if tier not in TIERS:
            msg = f"unknown tier {tier!r}: expected {', '.join(TIERS)}"
            raise UserError(msg)
    known = [check.id for check in checks]
    for name in ids:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            msg = f"unknown check {name!r}.{hint}"
            raise UserError(msg)
    found = [
        check
        for check in checks
        if (not areas or check.area in areas) and (not tiers or check.tier in tiers) and (not ids or check.id in ids)
    ]
    if not found:
        msg = f"no check is in areas {list(areas)} with tiers {list(tiers)} and ids {list(ids)}"
        raise UserError(msg)
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as TOML: {error}"
        raise HarnessFault(msg) from error
    return data


def _parse(kind: Any, entry: Any, path: Path) -> Any:
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        name = entry.get("id") or entry.get("check") or "an entry without id" if isinstance(entry, dict) else "an entry"
        msg = f"{path.name}: {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise HarnessFault(msg) from error
