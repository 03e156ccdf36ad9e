"""Every arm and every worker of a comparison must hold the same build of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import NotComparable

PARTS = ("source_hash", "lock_hash", "features", "profile", "rustc", "target", "engine_version")
"""What a fingerprint is made of, in the order in which a difference explains most."""


def check_fingerprints(
    builds: Mapping[str, Mapping[str, Any]], *, excused: Mapping[str, str] | None = None
) -> str | None:
    """The one fingerprint that all `builds` share; None if every one of them is excused.

    Args:
        builds: what `build_info` said, by a name for people (`inline`, `inline worker 0`).
        excused: names that need no fingerprint, with the declared reason.

    Raises:
        NotComparable: one has no fingerprint, or two differ; the message lists both sides and the parts that differ.
    """
    excused = excused or {}
    compared = {name: build for name, build in builds.items() if name not in excused}
    silent = [name for name, build in compared.items() if not build.get("fingerprint")]
    if silent:
        msg = (
            f"no engine fingerprint from {', '.join(silent)}: it cannot be shown that the same engine is compared. "
            "Build it from this checkout, or declare the difference in the arm file (key `engine.fingerprint`)."
        )
        raise NotComparable(msg)
    groups: dict[str, list[str]] = {}
    for name, build in compared.items():
        groups.setdefault(str(build["fingerprint"]), []).append(name)
    if len(groups) > 1:
        raise NotComparable(_describe(groups, compared))
    return next(iter(groups), None)


def _describe(groups: dict[str, list[str]], builds: dict[str, Mapping[str, Any]]) -> str:
    sides = [f"{mark[:12]}: {', '.join(names)}" for mark, names in groups.items()]
    (first, *_), (second, *_) = list(groups.values())[:2]
    parts = [
        f"{part} {builds[first].get(part)!r} / {builds[second].get(part)!r}"
        for part in PARTS
        if builds[first].get(part) != builds[second].get(part)
    ]
    why = f" They differ in {'; '.join(parts)}." if parts else ""
    return (
        f"the engines under comparison are different builds ({' | '.join(sides)}).{why} "
        "Rebuild all arms from one checkout, or leave one out."
    )
