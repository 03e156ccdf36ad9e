"""What a strategy adds to, removes from or changes in the public names of stock `datafusion`: pure functions on dumps.

A dump comes from `reports/api_surface.py`, run inside the arm's interpreter. Nothing here imports an arm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from harness.model import Frozen
from reports.shortest import ScriptDiff

STOCK_ARM = "local"
"""The arm whose `datafusion` is the stock wheel: what every strategy is compared with."""

STOCK_PACKAGE = "datafusion"

OWN_PACKAGES: dict[str, str] = {"external": "datafusion_external", "decorator": "datafusion_decorator"}
"""Package that a strategy ships beside (or instead of) `datafusion`."""

MIRRORS = ("external",)
"""Strategies whose own package repeats the whole of `datafusion`, so that a user swaps the import."""


class Change(Frozen):
    """One public name that is still there but is called or typed differently."""

    name: str
    what: str = Field(description="The difference in words, for example `parameter added: workers`")


class SurfaceDiff(Frozen):
    """Names of one package against stock `datafusion`, in the arm's own spelling."""

    package: str
    role: str = Field(description="`shared`: the package that stock users import; `own`: new package; `mirror`: a copy")
    base_names: int = Field(description="Public names of stock")
    names: int = Field(description="Public names found")
    added: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)
    changed: list[Change] = Field(default_factory=list)
    added_aliases: list[str] = Field(
        default_factory=list, description="Further paths to objects that are listed already"
    )
    undocumented: list[str] = Field(default_factory=list, description="Added names without a docstring")
    error: str | None = Field(default=None, description="Why the package could not be read")


class StrategySurface(Frozen):
    """API cost of one strategy: its surface diffs and the shortest script that runs distributed."""

    arm: str
    python: str | None = None
    diffs: list[SurfaceDiff] = Field(default_factory=list)
    script: ScriptDiff | None = None
    reason: str | None = Field(default=None, description="Why there is nothing to show")

    def shared(self) -> SurfaceDiff | None:
        """The diff of the package that stock users import, or None when it was not read."""
        return next((diff for diff in self.diffs if diff.role in ("shared", "mirror") and diff.error is None), None)


class ApiSurface(Frozen):
    """The executed API section: one entry per strategy, in the order of the run."""

    stock_version: str | None = None
    stock_names: int | None = None
    strategies: list[StrategySurface] = Field(default_factory=list)


def diff_names(
    base: Mapping[str, Any], new: Mapping[str, Any], *, base_package: str = STOCK_PACKAGE, package: str = STOCK_PACKAGE
) -> tuple[list[str], list[str], list[Change]]:
    """Added, removed and changed names between two `names` tables, after renaming `base_package` to `package`."""
    renamed = {_renamed(path, base_package, package): entry for path, entry in base.items()}
    added = sorted(set(new) - set(renamed))
    removed = sorted(set(renamed) - set(new))
    changed = []
    for path in sorted(set(renamed) & set(new)):
        what = describe_change(renamed[path], new[path], base_package, package)
        if what:
            changed.append(Change(name=path, what="; ".join(what)))
    return added, removed, changed


def describe_change(base: Mapping[str, Any], new: Mapping[str, Any], base_package: str, package: str) -> list[str]:
    """Differences between two descriptions of one name, in words; empty when a caller cannot tell them apart."""
    found: list[str] = []
    if base["kind"] != new["kind"]:
        return [f"kind {base['kind']} -> {new['kind']}"]
    old = {entry["name"]: entry for entry in base.get("parameters") or []}
    now = {entry["name"]: entry for entry in new.get("parameters") or []}
    if (base.get("parameters") is None) != (new.get("parameters") is None):
        found.append("signature no longer readable" if new.get("parameters") is None else "signature now readable")
        return found
    found += [f"parameter removed: {name}" for name in old if name not in now]
    found += [f"parameter added: {name}" for name in now if name not in old]
    if [name for name in old if name in now] != [name for name in now if name in old]:
        found.append("parameter order changed")
    for name in (name for name in old if name in now):
        for key in ("kind", "default", "annotation"):
            before = _renamed(old[name][key], base_package, package)
            if before != _renamed(now[name][key], base_package, package):
                found.append(f"{key} of {name}: {before} -> {now[name][key]}")
    if base.get("doc") and not new.get("doc"):
        found.append("docstring lost")
    return found


def _renamed(text: Any, base_package: str, package: str) -> Any:
    """`datafusion.X` -> `datafusion_external.X`, at word starts only."""
    if not isinstance(text, str) or base_package == package:
        return text
    return re.sub(rf"(?<![\w.]){re.escape(base_package)}\.", f"{package}.", text)


def build_api_surface(document: Mapping[str, Any], arms: list[str]) -> ApiSurface:
    """Compare the dumps of `api_surface.json` with stock, for the strategies among `arms`.

    `document` is `{"dumps": {arm: dump}, "scripts": {arm: run}}`, as `reports.collect` writes it. A strategy whose
    dump is missing keeps a row with the reason.
    """
    dumps: Mapping[str, Any] = document.get("dumps", {})
    scripts: Mapping[str, Any] = document.get("scripts", {})
    stock = _package(dumps.get(STOCK_ARM), STOCK_PACKAGE)
    rows = []
    for arm in arms:
        script = ScriptDiff.model_validate(scripts[arm]) if arm in scripts else None
        if stock is None:
            rows.append(StrategySurface(arm=arm, script=script, reason="the stock arm `local` was not dumped"))
        elif arm not in dumps:
            rows.append(StrategySurface(arm=arm, script=script, reason="the arm's interpreter was not dumped"))
        else:
            diffs = strategy_diffs(arm, stock, dumps[arm])
            rows.append(StrategySurface(arm=arm, python=dumps[arm].get("python"), diffs=diffs, script=script))
    return ApiSurface(
        stock_version=stock["version"] if stock else None,
        stock_names=len(stock["names"]) if stock else None,
        strategies=rows,
    )


def strategy_diffs(arm: str, stock: Mapping[str, Any], dump: Mapping[str, Any]) -> list[SurfaceDiff]:
    """One diff per package of the dump: `datafusion` as shared, the strategy's own as `own` or `mirror`."""
    diffs = []
    for package, found in dump["packages"].items():
        own = OWN_PACKAGES.get(arm) == package
        role = ("mirror" if arm in MIRRORS else "own") if own else "shared"
        base_names: Mapping[str, Any] = {} if role == "own" else stock["names"]
        if found.get("error"):
            diffs.append(SurfaceDiff(package=package, role=role, base_names=0, names=0, error=found["error"]))
            continue
        new, removed, changed = diff_names(base_names, found["names"], package=package)
        aliases = [name for name in new if found["names"][name]["kind"] == "alias"]
        added = [name for name in new if name not in set(aliases)]
        diffs.append(
            SurfaceDiff(
                package=package,
                role=role,
                base_names=len(base_names),
                names=len(found["names"]),
                added=added,
                added_aliases=aliases,
                removed=removed,
                changed=changed,
                undocumented=[name for name in added if not found["names"][name].get("doc")],
            )
        )
    return sorted(diffs, key=lambda diff: ("mirror", "shared", "own").index(diff.role))


def _package(dump: Mapping[str, Any] | None, package: str) -> Mapping[str, Any] | None:
    if dump is None:
        return None
    found: Mapping[str, Any] | None = dump.get("packages", {}).get(package)
    return None if found is None or found.get("error") else found
