"""The work of `df-strategies compare`: two arms of one run, or the same arm in two runs, in dense text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.errors import NotComparable, UserError
from harness.incumbents import Laid
from harness.model import Frozen, Phase, Sample, Verdict
from harness.provenance import Manifest
from harness.rundir import RunDirectory
from harness.schedule import Schedule, finished_rounds
from harness.stats import Cell, Coverage, Outcome, collect, coverage, outcome, query_verdict, series, suite_verdict

MARKS = {"faster": "✔", "slower": "✖", "equivalent": "=", "inconclusive": "?", "not_comparable": "-"}


class Side(Frozen):
    """One side of a comparison: an arm of a stored run."""

    label: str
    arm: str
    manifest: Manifest
    samples: tuple[Sample, ...]
    rounds: int


class Compared(Frozen):
    """The result: verdicts, coverage and how the command should end."""

    base: Side
    new: Side
    cells: dict[str, tuple[Cell, Cell]]
    verdicts: dict[str, Verdict]
    suite: Verdict
    cover: Coverage
    end: Outcome
    cautions: tuple[str, ...]


def read_side(run: RunDirectory, arm: str, *, label: str) -> Side:
    """One arm of a stored run.

    Raises:
        UserError: the run has no such arm.
    """
    manifest = run.manifest()
    if arm not in manifest.arms:
        msg = f"run {manifest.run_id} has no arm `{arm}`; it has {', '.join(manifest.arms)}"
        raise UserError(msg)
    if manifest.settings.streams:
        msg = f"run {manifest.run_id} is a throughput run without paired times; its figures are in throughput.json"
        raise UserError(msg)
    samples = run.samples()
    schedule = Schedule.model_validate_json(run.schedule_json())
    known = {step.sequence for step in schedule.steps if step.query is not None}
    rounds = finished_rounds(schedule, {sample.sequence for sample in samples} & known)
    timed = tuple(sample for sample in samples if sample.phase is not Phase.RECURRENCE)
    return Side(label=label, arm=arm, manifest=manifest, samples=timed, rounds=rounds)


def compare(base: Side, new: Side, *, force: bool) -> Compared:
    """Compare two sides.

    Raises:
        NotComparable: data, machine, queries or form differ and `force` is not given.
    """
    cautions = list(_cautions(base, new, force=force))
    rounds = min(base.rounds, new.rounds)
    queries = [query for query in base.manifest.settings.queries if query in new.manifest.settings.queries]
    left = collect(base.samples, arm=base.arm, queries=queries, rounds=rounds)
    right = collect(new.samples, arm=new.arm, queries=queries, rounds=rounds)
    cover = coverage(left, right)
    sf, seed = float(base.manifest.settings.scale_factor), base.manifest.settings.seed
    times = [series(cells, leave_out=cover.not_distributed) for cells in (left, right)]
    verdicts = {query: query_verdict(times[0][query], times[1][query], sf=sf, seed=seed) for query in times[0]}
    suite = suite_verdict(times[0], times[1], seed=seed)
    return Compared(
        base=base,
        new=new,
        cells={query: (left[query], right[query]) for query in queries},
        verdicts=verdicts,
        suite=suite,
        cover=cover,
        end=outcome(cover, verdicts, suite),
        cautions=tuple(cautions),
    )


def _cautions(base: Side, new: Side, *, force: bool) -> Iterator[str]:
    if base.manifest.run_id == new.manifest.run_id:
        return
    left, right = base.manifest, new.manifest
    pairs = {
        "data": (left.data.fingerprint[:12], right.data.fingerprint[:12]),
        "machine": (f"{left.host.cpu_model} {left.host.host_id}", f"{right.host.cpu_model} {right.host.host_id}"),
        "queries": (left.query_set_hash[:12], right.query_set_hash[:12]),
        "form": (left.settings.form, right.settings.form),
        "cache": ("cold" if left.settings.cold else "hot", "cold" if right.settings.cold else "hot"),
        "workers": (str(left.settings.workers), str(right.settings.workers)),
        "session options": (str(left.settings.config), str(right.settings.config)),
    }
    differing = [f"{name}: {one} / {two}" for name, (one, two) in pairs.items() if one != two]
    if differing and not force:
        msg = f"the runs differ in {'; '.join(differing)}. Compare runs that were made alike, or add --force."
        raise NotComparable(msg)
    if differing:
        yield f"FORCED although the runs differ in {'; '.join(differing)}"
    yield (
        "the runs were made at different times: the drift of the machine is in every figure, which only rounds that "
        "take turns within one run can cancel"
    )


def render(compared: Compared) -> str:
    """The comparison as text: one line per query, then the total and the suite."""
    return "\n".join(_lines(compared)) + "\n"


def _lines(compared: Compared) -> Iterator[str]:
    base, new = compared.base, compared.new
    yield f"prev = {base.label}, new = {new.label}, {min(base.rounds, new.rounds)} finished rounds"
    for caution in compared.cautions:
        yield f"NOTE {caution}"
    for gap in compared.cover.newly_failing:
        yield f"NEWLY FAILING {gap.query}: {gap.status.value}: {gap.reason}"
    for query, cells in compared.cells.items():
        yield _line(query, cells, compared.verdicts[query], local=query in compared.cover.not_distributed)
    total = compared.cover.total
    if total.factor is None:
        yield f"  TOTAL: none ({total.reason}); {total.words} queries"
    else:
        times = f"prev={total.base_ms:>10.1f} ms, new={total.new_ms:>10.1f} ms"
        yield f"  TOTAL: {times}, {_factor(total.factor)}  {total.words} queries"
    suite = compared.suite
    if suite.ratio is None:
        yield f"GEOMEAN: none ({suite.reason})"
    else:
        yield f"GEOMEAN: {_factor(suite.ratio.value)} {MARKS[suite.kind.value]} {suite.kind.value}: {suite.reason}"
    yield compared.end.sentence


def render_laid(laid: Laid) -> str:
    """Results of other tools as text: factors, and nothing that sounds like a verdict."""
    return "\n".join(_laid_lines(laid)) + "\n"


def _laid_lines(laid: Laid) -> Iterator[str]:
    yield f"prev = {laid.base.label} ({laid.base.tool}), new = {laid.new.label} ({laid.new.tool})"
    for caution in laid.cautions:
        yield f"NOTE {caution}"
    for gap in laid.cover.newly_failing:
        yield f"NEWLY FAILING {gap.query}: {gap.status.value}: {gap.reason}"
    for query, cells in laid.cells.items():
        left = f"{query:>7}: prev={_time(cells[0])}, new={_time(cells[1])}"
        medians = [cell.median_ms for cell in cells]
        if query in laid.cover.not_distributed:
            yield f"{left}  - not distributed, kept out of the total"
        elif medians[0] is None or medians[1] is None:
            yield f"{left}  - {next(cell.reason for cell in cells if cell.median_ms is None)}"
        else:
            yield f"{left}, {_factor(medians[1] / medians[0])}"
    total = laid.cover.total
    if total.factor is None:
        yield f"  TOTAL: none ({total.reason}); {total.words} queries"
        yield "GEOMEAN: none"
    else:
        times = f"prev={total.base_ms:>10.1f} ms, new={total.new_ms:>10.1f} ms"
        yield f"  TOTAL: {times}, {_factor(total.factor)}  {total.words} queries"
        yield f"GEOMEAN: {_factor(laid.geomean or 1.0)} of medians, without an interval"


def _time(cell: Cell) -> str:
    return f"{cell.median_ms:>8.1f} ms" if cell.median_ms is not None else f"{cell.status.value:>11}"


def _line(query: str, cells: tuple[Cell, Cell], verdict: Verdict, *, local: bool) -> str:
    left = f"{query:>7}: prev={_time(cells[0])}, new={_time(cells[1])}"
    if local:
        return f"{left}  - not distributed, kept out of the total"
    if verdict.ratio is None:
        return f"{left}  - {verdict.reason}"
    interval = f"[{verdict.ratio.low:.3f}, {verdict.ratio.high:.3f}]"
    word = f"{MARKS[verdict.kind.value]} {verdict.kind.value:<13}"
    return f"{left}, {_factor(verdict.ratio.value)} {word} {interval} n={verdict.ratio.n}"


def _factor(ratio: float) -> str:
    """How many times, in words that say the direction: `1.20x slower`."""
    times = max(ratio, 1 / ratio)
    return f"{times:.2f}x {'slower' if ratio > 1 else 'faster'}" if f"{times:.2f}" != "1.00" else "1.00x       "


def pick_arms(manifest: Manifest, base: str | None, new: str | None) -> list[tuple[str, str]]:
    """Which arms of one run to compare: those asked for, else every other arm with the best base there is."""
    names: Sequence[str] = list(manifest.arms)
    first = base or next((name for name in ("native", "local") if name in names), names[0])
    others: Sequence[str] = [new] if new else [name for name in names if name != first]
    if not others:
        msg = f"run {manifest.run_id} has only the arm `{first}`; name a second run to compare it with"
        raise UserError(msg)
    return [(first, name) for name in others]


def shared_arms(manifests: Mapping[str, Manifest], arm: str | None) -> list[str]:
    """Arms that all runs have, or the one asked for.

    Raises:
        UserError: there is none.
    """
    if arm:
        return [arm]
    every = [set(manifest.arms) for manifest in manifests.values()]
    shared = [name for name in next(iter(manifests.values())).arms if all(name in names for names in every)]
    if not shared:
        listed = "; ".join(f"{name}: {', '.join(manifest.arms)}" for name, manifest in manifests.items())
        msg = f"the runs share no arm ({listed})"
        raise UserError(msg)
    return shared
