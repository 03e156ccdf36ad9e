"""Words, marks and number formats that all forms share, so that no two of them can say different things."""

from __future__ import annotations

from typing import NamedTuple

from harness.model import Reach, Status, Tier, Validation, Verdict, VerdictKind
from reports.model import Comparison, QueryCell, Report

LEGEND = {
    "✔": "faster: beyond the margin, confirmed or seen again in an independent re-run; (once): not run again",
    "✖": "slower: beyond the margin, confirmed or seen again in an independent re-run; (once): not run again",
    "=": "equivalent: the interval lies inside the margin",
    "?": "inconclusive: neither a change nor equality is shown",
    "-": "not comparable: no valid times in both arms (see the reason)",
    "!": "not ok: failed, wrong, not run or not distributed (see the reason)",
}
"""Mark -> meaning, in the order in which a legend shows them."""

_MARKS = {
    VerdictKind.FASTER: "✔",
    VerdictKind.SLOWER: "✖",
    VerdictKind.EQUIVALENT: "=",
    VerdictKind.INCONCLUSIVE: "?",
    VerdictKind.NOT_COMPARABLE: "-",
}

_TIER_WORDS = {Tier.LIKELY: " (likely)", Tier.SINGLE_RUN: " (once)"}
"""What is said behind a direction that is not in the confirmed tier."""

STATUS_WORDS = {
    Status.OK: "ok",
    Status.WRONG: "wrong answer",
    Status.ERROR: "error",
    Status.TIMEOUT: "timeout",
    Status.CRASH: "crash",
    Status.OOM: "out of memory",
    Status.UNSUPPORTED: "unsupported",
    Status.NOT_RUN: "not run",
}

VALIDATION_WORDS = {
    Validation.VALIDATED: "validated",
    Validation.MISMATCH: "mismatch",
    Validation.VACUOUS: "vacuous (empty answer expected)",
    Validation.NOT_VALIDATED: "not validated",
}

REACH_WORDS = {
    Reach.DISTRIBUTED: "distributed",
    Reach.NOT_DISTRIBUTED: "not distributed",
    Reach.SINGLE_NODE: "single node",
}

BLANK = "n/a"
"""What stands where there is no figure; a reason stands beside it."""


class Factor(NamedTuple):
    """A ratio as the field writes it: how many times, and in which direction."""

    times: str
    word: str
    mark: str


def mark(verdict: Verdict) -> str:
    """One character for a verdict; see `LEGEND`."""
    return _MARKS[verdict.kind]


def factor(verdict: Verdict) -> Factor:
    """`1.25x`, `slower`, `✖`. A direction that is not shown to be real carries a question mark.

    An equivalent pair has no direction: its factor is new over base as it is.
    """
    if verdict.ratio is None:
        return Factor(BLANK, "not comparable", mark(verdict))
    times, direction = times_and_direction(verdict.ratio.value)
    if verdict.kind is VerdictKind.EQUIVALENT:
        return Factor(f"{verdict.ratio.value:.2f}x", "equivalent", mark(verdict))
    if verdict.kind is VerdictKind.INCONCLUSIVE:
        return Factor(times, f"{direction}?", mark(verdict))
    tier = _TIER_WORDS.get(verdict.tier, "") if verdict.tier else ""
    return Factor(times, f"{direction}{tier}", mark(verdict))


def times_and_direction(ratio: float) -> tuple[str, str]:
    """A new/base ratio as (`1.25x`, `slower`)."""
    return f"{max(ratio, 1 / ratio):.2f}x", "slower" if ratio > 1 else "faster"


def ratio_interval(verdict: Verdict) -> str:
    """Interval of new/base, or the blank."""
    return BLANK if verdict.ratio is None else f"[{verdict.ratio.low:.2f}, {verdict.ratio.high:.2f}]"


def suite_interval(verdict: Verdict) -> str:
    """The same with three digits: a suite resolves less than a hundredth."""
    return BLANK if verdict.ratio is None else f"[{verdict.ratio.low:.3f}, {verdict.ratio.high:.3f}]"


def sentence(text: str) -> str:
    """A clause as a sentence of its own."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def ms(value: float | None) -> str:
    """Milliseconds with one decimal, or the blank."""
    return BLANK if value is None else f"{value:,.1f}"


def percent(value: float | None, digits: int = 0) -> str:
    """A share as per cent, or the blank."""
    return BLANK if value is None else f"{value:.{digits}%}"


def megabytes(value: int | None, *, signed: bool = False) -> str:
    """Bytes as MB (10**6), or the blank."""
    if value is None:
        return BLANK
    return f"{value / 1e6:{'+' if signed else ''},.1f} MB"


def cell_status(cell: QueryCell) -> str:
    """Status of a cell in words; a query that ran without workers says so."""
    if cell.status is Status.OK and cell.reach is Reach.NOT_DISTRIBUTED:
        return REACH_WORDS[Reach.NOT_DISTRIBUTED]
    if cell.status is Status.OK and not cell.counts:
        return VALIDATION_WORDS[cell.validation] if cell.validation is not Validation.VALIDATED else "incomplete"
    return STATUS_WORDS[cell.status]


def cell_reason(cell: QueryCell) -> str:
    """Why a cell does not count, with its status said once."""
    return status_reason(cell_status(cell), cell.reason)


def status_reason(status: str, reason: str | None) -> str:
    """`status: reason`, or the reason alone where it starts with the status."""
    given = reason or "no reason was recorded"
    return given if given.startswith(status.split(maxsplit=1)[0]) else f"{status}: {given}"


def cell_note(cell: QueryCell) -> str:
    """Everything a reader needs about a cell that does not count: reason, log, repro."""
    parts = [cell_reason(cell)]
    if cell.log:
        parts.append(f"log: {cell.log}")
    if cell.repro:
        parts.append(f"repeat: {cell.repro}")
    return "; ".join(parts)


def total_words(entry: Comparison) -> str:
    """`k of N queries`, with what was left out for running without workers."""
    words = f"{entry.counted} of {entry.planned} queries"
    if entry.not_distributed:
        words += f" (not distributed: {', '.join(entry.not_distributed)})"
    return words


def title(entry: Comparison) -> str:
    """Heading of a comparison."""
    return f"{entry.new} against {entry.base}"


def main_comparisons(report: Report) -> list[Comparison]:
    """Comparisons worth a table of their own: strategies against the baselines, then native against local."""
    kinds = {arm.name: arm.kind for arm in report.arms}
    first = [entry for entry in report.comparisons if kinds[entry.new] in ("strategy", "external")]
    other = [entry for entry in report.comparisons if kinds[entry.new] == "baseline" and entry.new == "native"]
    return [
        *(entry for entry in first if entry.base == "native"),
        *(entry for entry in first if entry.base != "native"),
        *other,
    ]


def aa_comparison(report: Report) -> Comparison | None:
    """The A/A pair, or None."""
    return report.comparison(report.noise.arm or "", report.noise.copies or "")


SYNTHETIC = "SYNTHETIC: made from invented samples to show and test the report. No figure here was measured."
