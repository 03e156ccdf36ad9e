"""The verdict paragraph: what a reader with three minutes takes away. Every sentence is made from figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import VerdictKind
from reports.decision_model import Decision
from reports.model import ArmInfo, ArmSummary, Comparison, Headline, Noise, Provenance, RunSettingsInfo

WORDS = {
    VerdictKind.FASTER: "faster",
    VerdictKind.SLOWER: "slower",
    VerdictKind.EQUIVALENT: "equivalent",
    VerdictKind.INCONCLUSIVE: "inconclusive",
    VerdictKind.NOT_COMPARABLE: "not comparable",
}


def make_headline(
    arms: Sequence[ArmInfo],
    summary: Mapping[str, ArmSummary],
    comparisons: Sequence[Comparison],
    decision: Decision,
    settings: RunSettingsInfo,
) -> Headline:
    """Title and sentences: failures first, then the decision, the cost against native and single node, validity."""
    strategies = [arm.name for arm in arms if arm.kind in ("strategy", "external")]
    judged = strategies or [arm.name for arm in arms if arm.kind != "aa"]
    against = (_against(comparisons, strategies, base, words) for base, words in _BASE_WORDS.items())
    sentences = [*_failures(comparisons, strategies), *decision.says, *filter(None, against)]
    sentences.append(_validity(summary, judged))
    rounds = f"{settings.rounds_finished} {'cold ' if settings.cache == 'cold' else ''}rounds"
    title = (
        f"TPC-H SF{settings.scale_factor}, {len(settings.queries)} queries ({settings.query_set}), "
        f"{rounds}, {settings.workers} worker{'s' if settings.workers != 1 else ''}: "
        f"{', '.join(strategies) or 'no strategy'}"
    )
    return Headline(title=title, sentences=sentences)


_BASE_WORDS = {
    "native": "Against the native driver on the same engine (1.00 means that Python and the binding cost nothing)",
    "single": "Against the same engine on a single node (what distribution costs at this size on one machine)",
    "local": "Against stock datafusion on a single node (distribution, and the difference of the two builds)",
}


def _failures(comparisons: Sequence[Comparison], strategies: Sequence[str]) -> list[str]:
    found = []
    for arm in strategies:
        gaps = {gap.query: gap for entry in comparisons if entry.new == arm for gap in entry.newly_failing}
        if gaps:
            listed = ", ".join(f"{gap.query} ({gap.status.value})" for gap in gaps.values())
            found.append(f"{arm} fails where a baseline answers: {listed}.")
    return found


def _validity(summary: Mapping[str, ArmSummary], arms: Sequence[str]) -> str:
    if not arms:
        return "Nothing ran."
    said = {}
    for arm in arms:
        figures = summary[arm]
        said[arm] = (
            f"{figures.ok} of {figures.queries} queries ran, {figures.validated} were validated, "
            f"{figures.distributed} reached the workers"
        )
    return _grouped(said) + "."


def _against(comparisons: Sequence[Comparison], strategies: Sequence[str], base: str, words: str) -> str | None:
    entries = [entry for entry in comparisons if entry.base == base and entry.new in strategies]
    if not entries:
        return None
    return f"{words}: {_grouped({entry.new: suite_words(entry) for entry in entries})}."


def _grouped(said: Mapping[str, str]) -> str:
    """Arms of which the same is said are named together."""
    groups: dict[str, list[str]] = {}
    for arm, words in said.items():
        groups.setdefault(words, []).append(arm)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in groups.items())


def suite_words(entry: Comparison) -> str:
    """A suite's ratio with interval, verdict and coverage, or why there is none."""
    cover = f"{entry.counted} of {entry.planned} queries"
    ratio = entry.suite.ratio
    if ratio is None:
        return f"not comparable, {entry.suite.reason}"
    return f"{ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}], {WORDS[entry.suite.kind]} ({cover})"


def make_caveats(settings: RunSettingsInfo, noise: Noise, provenance: Provenance, arms: Sequence[ArmInfo]) -> list[str]:
    """What limits this run, in sentences; empty when nothing does."""
    found = []
    if provenance.status != "complete":
        found.append(
            f"The run is {provenance.status}: {settings.rounds_finished} of {settings.rounds} rounds are finished."
        )
    if noise.arm is None:
        found.append("No A/A arm ran, so the noise of this machine is unknown.")
    elif noise.flags:
        found.append(
            f"The A/A pair ({noise.copies} under two names) shows a difference on {', '.join(noise.flags)}; "
            f"{noise.reason}."
        )
    if provenance.fingerprints_equal is False:
        found.append("The arms were NOT built from the same engine: figures are not comparable.")
    if provenance.source.dirty:
        found.append("The checkout had uncommitted changes.")
    builds = {str(arm.build.get("profile")) for arm in arms if arm.build.get("profile")}
    if builds and any(arm.name == "local" for arm in arms):
        profiles = ", ".join(sorted(builds))
        found.append(f"The stock wheel is upstream's release build (thin LTO); the other arms use profile {profiles}.")
    return found
