"""Every trap that the method names has a test named after it, so that a reader finds the proof by the trap."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TRAPS = {
    "a total looks faster because queries newly failed": ("total_looks_faster_because_queries_newly_failed",),
    "nothing ran, reported as success": ("nothing_ran_reported_as_success",),
    "validation claimed, never done": ("validation_claimed_but_never_done", "validation_claimed_never_done"),
    "a query without a remote task in a distributed total": (
        "query_with_no_remote_task_counted_in_a_distributed_total",
    ),
    "sequential arms": ("sequential_arms_turn_machine_drift_into_false_alarms",),
    "fastest of five with a 5 % band": ("fastest_of_five_with_a_five_percent_band_flags_unchanged_queries",),
    "a fixed factor of 1.2": ("fixed_factor_of_1_2_is_blind_below_20_percent",),
    "first fresh process mixed with steady state": ("first_fresh_process_mixed_with_steady_state",),
    "summed RSS and inherited peaks": ("summed_memory_counts_shared_pages_twice_and_peaks_are_inherited",),
    "arms with different settings compared": ("arms_with_different_settings_compared",),
    "a checker's imports inflate the timed process": ("a_checkers_imports_inflate_the_timed_process",),
    "results overwritten in place": ("results_overwritten_in_place",),
    "blank cells without a reason": ("blank_cell_without_a_reason", "blank_cells_without_a_reason"),
}
"""Trap -> how the names of its tests begin."""


def functions() -> dict[str, str]:
    """Name of every test function (without `test_`) and the file it stands in."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name.removeprefix("test_")] = path.name
    return found


NAMES = functions()


@pytest.mark.parametrize("trap", TRAPS)
def test_the_trap_has_a_test_named_after_it(trap: str) -> None:
    for start in TRAPS[trap]:
        assert any(name.startswith(start) for name in NAMES), f"no test begins with test_{start}"
