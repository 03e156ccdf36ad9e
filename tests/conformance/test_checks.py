"""The fast subset of the `must` checks on every arm: what `df-strategies check` runs, as pytest tests."""

from __future__ import annotations

import pytest

from conftest import Bench
from harness.conformance import Check, Outcome, load_expected, load_registry
from harness.conformance.runner import PANIC_CHECK, judge, run_one

REGISTRY = load_registry()
EXPECTED = load_expected(REGISTRY)
FAST = [check for check in REGISTRY if check.fast and check.tier == "must" and check.id != PANIC_CHECK]


@pytest.mark.parametrize("check", FAST, ids=lambda check: check.id)
def test_check(bench: Bench, check: Check) -> None:
    """One check in its own child. An expected failure that does not fail is a failure."""
    result = run_one(check, bench.site, bench.keeper, bench.prerequisites, bench.folder)
    judged = judge(result, EXPECTED)
    log = (bench.folder / judged.log).read_text() if judged.log else ""
    assert "PanicException" not in log
    if judged.outcome is Outcome.XFAIL:
        pytest.xfail(judged.reason or "")
    if judged.outcome is Outcome.BLOCKED:
        pytest.skip(judged.reason or "")
    assert judged.outcome in (Outcome.PASS, Outcome.PARTIAL), f"{judged.reason}\n{log[-3000:]}"
