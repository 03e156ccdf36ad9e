"""How a finished run ends: what was counted, one sentence, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.errors import EXIT_OK, EXIT_REGRESSION
from harness.model import Frozen, Phase, Reach, Sample, Status, Validation
from harness.runner.cold import COLD_SHARE

HARMLESS = (Status.OK, Status.UNSUPPORTED)


class Ending(Frozen):
    """Counts over the samples that were not warm-ups, and what they mean."""

    exit_code: int
    sentence: str
    statuses: dict[str, int]
    troubled: list[str]
    """`arm query: status, reason` for each arm and query with a failure, worst first seen."""


def ending(samples: Sequence[Sample]) -> Ending:
    """Exit 0 only if something ran, nothing failed, and every answer was compared with the oracles."""
    counted = [sample for sample in samples if sample.phase is not Phase.WARMUP]
    statuses = Counter(sample.status.value for sample in counted)
    ok = [sample for sample in counted if sample.status is Status.OK]
    unsure = [sample for sample in ok if sample.validation is Validation.NOT_VALIDATED]
    failed = [sample for sample in counted if sample.status not in HARMLESS]
    local = {(sample.arm, sample.query) for sample in ok if sample.reach is Reach.NOT_DISTRIBUTED}
    troubled: dict[tuple[str, str], str] = {}
    for sample in [*failed, *unsure]:
        word = sample.status.value if sample.status is not Status.OK else "not validated"
        troubled.setdefault(
            (sample.arm, sample.query), f"{sample.arm} {sample.query}: {word}, {sample.reason or 'no reason'}"
        )
    words = f"{len(ok)} of {len(counted)} executions ok, {len(ok) - len(unsure)} of them compared with the oracles"
    if local:
        words += f"; {len(local)} pairs of arm and query ran without a remote task"
    warm = sum(sample.cache == "lukewarm" for sample in counted)
    if warm:
        words += f"; {warm} of them were lukewarm: more than {COLD_SHARE:.0%} of the data stayed in the page cache"
    if not ok:
        words = f"nothing ran to its end: {dict(statuses) or 'no executions'}"
    good = bool(ok) and not failed and not unsure
    return Ending(
        exit_code=EXIT_OK if good else EXIT_REGRESSION,
        sentence=words,
        statuses=dict(statuses),
        troubled=list(troubled.values()),
    )
