"""Are the arms set alike? Compares the effective configuration that every session told about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from harness.arms import Arm
from harness.errors import NotComparable
from harness.provenance import ConfigDifference

SHOWN = 8
"""Undeclared differences listed in the message; the rest is counted."""


def config_differences(
    arms: Sequence[Arm], configs: Mapping[str, Mapping[str, str]]
) -> tuple[list[ConfigDifference], list[ConfigDifference]]:
    """All settings in which the arms differ, and those of them that are not excused.

    An arm that declares a key may have any value of it; the arms that do not declare it must agree among themselves.
    """
    everything, undeclared = [], []
    for key in sorted({key for config in configs.values() for key in config}):
        values = {arm.name: configs[arm.name].get(key) for arm in arms}
        if len(set(values.values())) == 1:
            continue
        reasons = {arm.name: reason for arm in arms if (reason := _declared(arm, key)) is not None}
        difference = ConfigDifference(key=key, values=values, reasons=reasons)
        everything.append(difference)
        if len({value for name, value in values.items() if name not in reasons}) > 1:
            undeclared.append(difference)
    return everything, undeclared


def require_alike(arms: Sequence[Arm], configs: Mapping[str, Mapping[str, str]]) -> list[ConfigDifference]:
    """The declared differences.

    Raises:
        NotComparable: arms differ in a setting that no arm file declares.
    """
    everything, undeclared = config_differences(arms, configs)
    if undeclared:
        lines = [f"  {difference.key}: {_values(difference)}" for difference in undeclared[:SHOWN]]
        more = f"\n  and {len(undeclared) - SHOWN} more" if len(undeclared) > SHOWN else ""
        msg = (
            f"the arms run with different settings, so their times cannot be compared:\n{chr(10).join(lines)}{more}\n"
            "Set them alike with --set KEY=VALUE, or declare the difference in the arm file ([[differences]] with key "
            "and reason)."
        )
        raise NotComparable(msg)
    return everything


def _declared(arm: Arm, key: str) -> str | None:
    return next((entry.reason for entry in arm.differences if fnmatchcase(key, entry.key)), None)


def _values(difference: ConfigDifference) -> str:
    groups: dict[str, list[str]] = {}
    for name, value in difference.values.items():
        if name not in difference.reasons:
            groups.setdefault("not known" if value is None else repr(value), []).append(name)
    return ", ".join(f"{value} ({', '.join(names)})" for value, names in groups.items())
