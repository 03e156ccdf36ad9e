"""What works, what differs and what it costs, found out by running it: a registry of small checks and their outcomes.

`registry/*.toml` says what is checked and why, `scripts/*.py` how, `expected.toml` which failures are known.

Every check runs in its own child process inside an arm's environment, against real worker processes. The child holds
the standard library and the arm and nothing of the harness. May import `harness.*` except the runner, never `reports`.
"""

from __future__ import annotations

from harness.conformance.model import Check, ConformanceFile, ConformanceResult, Counts, Expected, Outcome
from harness.conformance.registry import load_expected, load_registry, select_checks
from harness.conformance.runner import run_checks, shape

__all__ = [
    "Check",
    "ConformanceFile",
    "ConformanceResult",
    "Counts",
    "Expected",
    "Outcome",
    "load_expected",
    "load_registry",
    "run_checks",
    "select_checks",
    "shape",
]
