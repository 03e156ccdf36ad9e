"""The Methods section: every figure is read from the constant that the code uses, so the text cannot drift from it."""

from __future__ import annotations

from harness.settings import DEFAULT_TIMEOUT_S
from harness.stats import (
    CONFIDENCE,
    DEFAULT_ROUNDS,
    FLOOR_MS,
    MARGIN,
    MIN_ROUNDS_FOR_VERDICT,
    RESAMPLES,
    absolute_floor_ms,
)
from harness.validate.model import FLOAT_ABSOLUTE, FLOAT_RELATIVE
from reports.model import MethodFact, Noise, RunSettingsInfo


def method_facts(settings: RunSettingsInfo, noise: Noise) -> list[MethodFact]:
    """The method of this run in figures."""
    scale = float(settings.scale_factor)
    return [
        MethodFact(
            name="Schedule",
            value=f"{settings.rounds_finished} of {settings.rounds} rounds",
            meaning=(
                "written before the run; every round holds every query of every arm once, in a seeded order in which "
                f"no arm keeps a place (interleaved by {settings.interleave}, seed {settings.seed}; "
                f"default {DEFAULT_ROUNDS} rounds)"
            ),
        ),
        MethodFact(
            name="Warm-up",
            value=f"{settings.warmups} per query and process",
            meaning="untimed; the first execution in a fresh process is shown apart, never mixed with steady ones",
        ),
        MethodFact(
            name="Estimator",
            value=f"{CONFIDENCE:.0%} interval, {RESAMPLES:,} resamples",
            meaning=(
                "per query the median of the log-ratios paired within rounds, percentile bootstrap; for the suite the "
                "geometric mean over queries, whole rounds resampled jointly"
            ),
        ),
        MethodFact(
            name="Margin",
            value=f"{MARGIN:.0%} relative",
            meaning="a smaller change is not claimed; symmetric on the log scale",
        ),
        MethodFact(
            name="Margin of this run",
            value=f"{noise.query_margin:.1%} per query, {noise.suite_margin:.1%} for the suite",
            meaning=noise.reason,
        ),
        MethodFact(
            name="Absolute floor",
            value=f"{absolute_floor_ms(scale):.3g} ms at SF{settings.scale_factor}",
            meaning=f"a change below it is not claimed whatever its share ({FLOOR_MS:g} ms up to SF1, more above)",
        ),
        MethodFact(
            name="Verdict",
            value=f"from {MIN_ROUNDS_FOR_VERDICT} rounds on",
            meaning=(
                "confirmed: the interval lies wholly beyond the margin; likely: it excludes 1, the median is beyond, "
                "and an independent re-run in new processes showed the same; equivalent: it lies inside the margin; "
                "anything else is inconclusive, which is not the same as unchanged"
            ),
        ),
        MethodFact(
            name="Re-run",
            value="arms with as many workers",
            meaning=(
                "confirmed and likely differences between them run again in new processes under a new seed, unless the "
                "run was told not to; a single node against a cluster is not run again, since that is no claim about "
                "binding: an interval wholly beyond the margin is shown as seen once (a single run), never as "
                "confirmed, and a likely difference stays inconclusive"
            ),
        ),
        MethodFact(
            name="Totals",
            value="k of N",
            meaning=(
                "only over queries with a valid time in every round of both arms; no factor when the two arms' valid "
                "queries differ; a query that no worker saw is left out of both sides"
            ),
        ),
        MethodFact(
            name="Validation",
            value=f"floats: {FLOAT_RELATIVE:g} relative, {FLOAT_ABSOLUTE:g} absolute",
            meaning=(
                "schema, row count, order, ties at a LIMIT, then values, in another process outside the timed window; "
                "integers, text, dates and decimals are exact"
            ),
        ),
        MethodFact(
            name="Time-out",
            value=f"{settings.timeout_s:g} s per execution",
            meaning=f"a hang is a result with its own status (default {DEFAULT_TIMEOUT_S:g} s)",
        ),
    ]
