"""The decision section as an architecture decision record (MADR), in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from reports import words
from reports.decision_model import AxisDecision
from reports.markdown_tools import cell, table
from reports.model import Report


def render_madr(report: Report) -> str:
    """A decision record made from a report; a pure function of it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    run = report.provenance
    settled = all(axis.verdict == "favours" and not axis.provisional for axis in report.decision.axes)
    yield "---"
    yield f"status: {'proposed' if settled else 'draft: not settled by this evidence'}"
    yield f"date: {(run.finished_at or run.created_at)[:10]}"
    yield f"evidence: run {run.run_id}"
    yield "---"
    yield ""
    yield "# How datafusion-distributed should be offered from Python"
    if report.synthetic:
        yield f"\n**{words.SYNTHETIC}**"
    yield "\n## Context and problem statement\n"
    yield (
        "datafusion-python issue 1612 names three mutually exclusive ways to run distributed queries from Python. Two "
        "questions are answered apart: where the code should live, and how it should bind."
    )
    yield ""
    yield from (f"- {sentence}" for sentence in report.headline.sentences)
    yield from (f"- Note: {sentence}" for sentence in report.headline.caveats)
    yield "\n## Gates\n"
    gates = [[gate.title, gate.strategy, gate.state, gate.evidence] for gate in report.decision.gates]
    yield from table(["gate", "strategy", "state", "evidence"], gates)
    for axis in report.decision.axes:
        yield from _axis(axis)
    yield from _public(report)
    yield "\n## What this evidence cannot say\n"
    yield from (f"- {cell(item)}" for item in report.decision.cannot_say)
    yield "\n## More information\n"
    given = report.decision
    yield (
        f"Weights were drawn {given.draws:,} times from a Dirichlet distribution around those of "
        f"`{given.weights_file}` (concentration {given.concentration:g}, seed {given.seed}). Below "
        f"{given.threshold:.0%} of first places no option is announced. A criterion without a figure counts as "
        "anything from worst to best."
    )


def _axis(axis: AxisDecision) -> Iterator[str]:
    yield f"\n## {axis.question}\n"
    yield "### Considered options\n"
    for option in axis.options:
        yield f"- {option.title} (evidence from `{option.strategy}`)"
    yield "\n### Decision outcome\n"
    yield axis.sentence.removeprefix(axis.question).strip()
    yield ""
    rows = [
        [option.title, f"{option.score:.2f}", f"{option.rank1:.0%}", option.gates, option.excluded or "ranked"]
        for option in axis.options
    ]
    yield from table(["option", "score", "first in", "gates", "state"], rows)
    yield "\n### Decision drivers\n"
    for entry in axis.criteria:
        how = f"{entry.kind}, {entry.weight:.0%}; {entry.value_function}"
        yield f"- **{entry.title}** ({how}): {entry.why}"
        for score in entry.scores:
            note = f" ({score.note})" if score.note else ""
            value = f"{score.value:.2f}" if score.known else "anything from 0 to 1"
            yield f"  - {score.option}: {cell(score.figure)} gives {value}{cell(note)}"
    yield "\n### How firm it is\n"
    if axis.flip:
        yield f"- smallest change of one weight that flips it: {axis.flip.words()}"
    else:
        yield "- no change of a single weight flips it"
    yield from (f"- flips with {item}" for item in axis.score_flips)
    yield from (f"- overlapping criteria: {item}" for item in axis.warnings)


def _public(report: Report) -> Iterator[str]:
    yield "\n## What it says about the public pull requests"
    for entry in report.decision.public:
        yield f"\n### {entry.title}\n"
        yield f"Closest build: {entry.strategy}; code in {entry.where}, bound by {entry.how}.\n"
        yield from (f"- {item}" for item in entry.says)
        yield from (f"- differs: {item}" for item in entry.differs)
        yield from (f"- cannot say: {item}" for item in entry.cannot_say)
