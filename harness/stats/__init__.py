"""Estimates, verdicts and coverage: pure functions from samples to statements, no input or output.

May import `harness.model` and `harness.errors` only. Everything is deterministic: randomness comes in as a seed. The
method is in these constants and docstrings; reports generate their "Methods" section from them.
"""

from __future__ import annotations

from harness.stats.coverage import Cell, Coverage, Gap, Outcome, Total, collect, coverage, outcome, series
from harness.stats.estimators import (
    CONFIDENCE,
    RESAMPLES,
    Spread,
    SuiteEstimate,
    complete,
    paired_ratio,
    spread,
    suite_ratio,
)
from harness.stats.lifecycle import Lifecycle, lifecycle
from harness.stats.resources import ArmResources, ProcessFigures, QueryResources, resources
from harness.stats.verdicts import (
    DEFAULT_ROUNDS,
    FLOOR_MS,
    MARGIN,
    MIN_ROUNDS_FOR_VERDICT,
    NoiseMargin,
    absolute_floor_ms,
    flagged,
    judge,
    needs_recurrence,
    noise_margin,
    not_comparable,
    query_verdict,
    settle,
    stated_once,
    suite_verdict,
)

__all__ = [
    "CONFIDENCE",
    "DEFAULT_ROUNDS",
    "FLOOR_MS",
    "MARGIN",
    "MIN_ROUNDS_FOR_VERDICT",
    "RESAMPLES",
    "ArmResources",
    "Cell",
    "Coverage",
    "Gap",
    "Lifecycle",
    "NoiseMargin",
    "Outcome",
    "ProcessFigures",
    "QueryResources",
    "Spread",
    "SuiteEstimate",
    "Total",
    "absolute_floor_ms",
    "collect",
    "complete",
    "coverage",
    "flagged",
    "judge",
    "lifecycle",
    "needs_recurrence",
    "noise_margin",
    "not_comparable",
    "outcome",
    "paired_ratio",
    "query_verdict",
    "resources",
    "series",
    "settle",
    "spread",
    "stated_once",
    "suite_ratio",
    "suite_verdict",
]
