"""The schedule of a run: every step in order, written before the first one starts.

Machines drift by 25 to 60 % within minutes when anything else runs. What makes arms comparable is that each round
holds every (arm, query) exactly once, and that no arm keeps a place: for two arms the order is A B B A, for more it is
a Williams design, in which every arm follows every other arm equally often. Rows come in pairs, each the reverse of
the other, in consecutive rounds, so that after any even number of rounds every arm has gone before every other in
exactly half of them: a linear drift cancels for every pair of arms and for every single query.

Orders come from hashes of (seed, what is ordered), not from a random generator: the same seed gives the same schedule
in every Python version, and anybody can recompute it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import Field

from harness.errors import HarnessFault, UserError
from harness.model import Estimate, Frozen, Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

Interleave = Literal["query", "round"]
"""`query`: all clusters live at once, arms alternate per query. `round`: one cluster at a time, new in each round."""

Action = Literal["start_cluster", "warmup", "timed", "stop_cluster"]

DEFAULT_WARMUPS = 1
"""Untimed runs of each query in a fresh process: the first one is 1.3 to 4 times slower, the second is not."""

TARGET_HALF_WIDTH = 0.02
"""Suite interval half-width at which more rounds buy nothing: the default run of 22 queries reaches it by 10 rounds."""

T = TypeVar("T")

Plan = tuple[Action, str, "str | None", int]
"""Action, arm, query and round of a step that has no sequence number yet."""


class Step(Frozen):
    """One thing to do. `sequence` is its place in the run and the key of its sample."""

    sequence: int = Field(ge=0)
    action: Action
    arm: str
    query: str | None = Field(default=None, description="Null for starting and stopping a cluster")
    round: int = Field(default=0, ge=0, description="Round of a timed step or of a cluster; repetition of a warm-up")


class Schedule(Frozen):
    """All steps of a run, or of the re-run of some of its queries, with the arguments they follow from."""

    arms: tuple[str, ...]
    queries: tuple[str, ...]
    rounds: int = Field(ge=1)
    warmups: int = Field(ge=0)
    seed: int
    interleave: Interleave
    phase: Phase = Field(description="Phase of the timed steps: `timed`, or `recurrence` in a re-run")
    repeats: str | None = Field(default=None, description="Hash of the schedule that a recurrence re-run repeats")
    steps: tuple[Step, ...]

    @property
    def timed(self) -> tuple[Step, ...]:
        """The timed steps, in order."""
        return tuple(step for step in self.steps if step.action == "timed")


def make_schedule(
    arms: Sequence[str],
    queries: Sequence[str],
    rounds: int,
    *,
    seed: int,
    warmups: int = DEFAULT_WARMUPS,
    interleave: Interleave = "query",
    recurrence: Schedule | None = None,
) -> Schedule:
    """Build the schedule. Give `recurrence`, the first schedule, to repeat some of its queries under a new seed.

    Raises UserError for no or repeated arms or queries, for fewer than one round or a negative number of warm-ups, and
    for a re-run that names an arm or query its first run did not have, or that keeps its seed.
    """
    _check(arms, queries, rounds, warmups, interleave)
    first = 0
    if recurrence is not None:
        _check_recurrence(arms, queries, seed, recurrence)
        first = recurrence.steps[-1].sequence + 1
    build = _by_query if interleave == "query" else _by_round
    steps = tuple(
        Step(sequence=first + position, action=action, arm=arm, query=query, round=number)
        for position, (action, arm, query, number) in enumerate(build(arms, queries, rounds, seed, warmups))
    )
    return Schedule(
        arms=tuple(arms),
        queries=tuple(queries),
        rounds=rounds,
        warmups=warmups,
        seed=seed,
        interleave=interleave,
        phase=Phase.TIMED if recurrence is None else Phase.RECURRENCE,
        repeats=None if recurrence is None else schedule_hash(recurrence),
        steps=steps,
    )


def recurrence_schedule(first: Schedule, queries: Sequence[str], *, arms: Sequence[str] | None = None) -> Schedule:
    """Return the independent re-run of some queries: new clusters, a new seed derived from the first schedule."""
    seed = int(_digest(schedule_hash(first), "recurrence")[:12], 16)
    return make_schedule(
        arms or first.arms,
        queries,
        first.rounds,
        seed=seed,
        warmups=first.warmups,
        interleave=first.interleave,
        recurrence=first,
    )


def schedule_hash(schedule: Schedule) -> str:
    """Return the sha256 (hex) of the schedule's canonical JSON: what a sample file belongs to."""
    text = json.dumps(schedule.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def remaining(schedule: Schedule, done: Collection[int]) -> tuple[Step, ...]:
    """Return the steps that a resumed run has to do, given the sequence numbers of the samples already on disk.

    No timed step is lost or repeated. Clusters died with the run, so whatever a cluster still has to run is wrapped in
    a start, the warm-ups of just those queries, and a stop; warm-ups are a property of the new process, not results.
    With nothing left to time the answer is empty.

    Raises HarnessFault if `done` holds a number that is no warm-up or timed step of this schedule.
    """
    known = {step.sequence for step in schedule.steps if step.query is not None}
    foreign = sorted(set(done) - known)
    if foreign:
        msg = (
            f"samples {foreign[:5]} are not steps of this schedule ({schedule_hash(schedule)[:12]}): the run directory"
            " holds samples of another schedule; start a new run"
        )
        raise HarnessFault(msg)
    left = {(step.arm, step.query, _cluster(schedule, step)) for step in schedule.timed if step.sequence not in done}
    clusters = {(arm, cluster) for arm, _, cluster in left}
    steps = []
    current: dict[str, int] = {}
    for step in schedule.steps:
        if step.action == "start_cluster":
            current[step.arm] = step.round
        cluster = current[step.arm]
        if step.action == "timed":
            wanted = step.sequence not in done
        elif step.action == "warmup":
            wanted = (step.arm, step.query, cluster) in left
        else:
            wanted = (step.arm, cluster) in clusters
        if wanted:
            steps.append(step)
    return tuple(steps)


def finished_rounds(schedule: Schedule, done: Collection[int]) -> int:
    """Return how many rounds, counted from the first, are complete: the rounds that a verdict may use."""
    open_rounds = [step.round for step in schedule.timed if step.sequence not in done]
    return min(open_rounds, default=schedule.rounds)


def should_stop(
    *,
    rounds_done: int,
    min_rounds: int,
    rounds_planned: int | None = None,
    estimates: Mapping[str, Estimate] | None = None,
    target_half_width: float | None = TARGET_HALF_WIDTH,
    elapsed_s: float = 0.0,
    time_cap_s: float | None = None,
) -> str | None:
    """Say whether to stop after the round just finished: None to go on, else the reason in words for the report.

    Stops when all planned rounds are done; when every interval is narrower than the target (relative half-width, on
    the log scale), after an even number of rounds only, because that is when orders balance; or when another round
    would not fit under the time cap. It looks at widths, never at the ratios: stopping on a result one likes would
    bias it.

    Raises ValueError for a negative number of rounds.
    """
    if rounds_done < 0:
        msg = f"expected the number of rounds done, got {rounds_done}"
        raise ValueError(msg)
    if rounds_planned is not None and rounds_done >= rounds_planned:
        return f"stopped after all {rounds_planned} planned rounds"
    if time_cap_s is not None and rounds_done and elapsed_s * (1 + 1 / rounds_done) > time_cap_s:
        return (
            f"stopped by the time cap: {elapsed_s:.0f} s for {rounds_done} rounds, another one would exceed"
            f" {time_cap_s:.0f} s"
        )
    if rounds_done < min_rounds or rounds_done % 2 or not estimates or target_half_width is None:
        return None
    widths = {name: half_width(estimate) for name, estimate in estimates.items()}
    widest = max(widths, key=lambda name: widths[name])
    if widths[widest] > target_half_width:
        return None
    return (
        f"stopped by precision: after {rounds_done} rounds the widest interval ({widest}) is"
        f" +/-{widths[widest]:.1%}, target +/-{target_half_width:.1%}"
    )


def half_width(estimate: Estimate) -> float:
    """Return half the width of an interval, relative: 0.02 is +/-2 %."""
    return float((estimate.high / estimate.low) ** 0.5 - 1)


def design(arms: Sequence[T]) -> list[tuple[tuple[T, ...], tuple[T, ...]]]:
    """Return a Williams design as pairs of (row, reversed row): k rows for an even number k of arms, 2k for an odd one.

    Over all rows every arm stands in every place equally often and directly follows every other arm equally often.
    Source: E. J. Williams, Australian Journal of Scientific Research A2 (1949), 149-168.
    """
    count = len(arms)
    if count == 1:
        return [(tuple(arms), tuple(arms))]
    zigzag = [step // 2 if step % 2 == 0 else count - 1 - step // 2 for step in range(count)]
    # With an even count the reverse of a row is the row shifted by half, so half of the shifts give all rows.
    shifts = range(count // 2 if count % 2 == 0 else count)
    rows = [tuple(arms[(place + shift) % count] for place in zigzag) for shift in shifts]
    return [(row, row[::-1]) for row in rows]


def stream_order(queries: Sequence[str], seed: int, number: int, stream: int) -> list[str]:
    """Return the order in which one stream of a throughput run goes through the queries, the same for every arm."""
    return _shuffled(queries, seed, f"round {number} stream {stream}")


def _by_query(arms: Sequence[str], queries: Sequence[str], rounds: int, seed: int, warmups: int) -> list[Plan]:
    pairs = design(_shuffled(arms, seed, "arms"))
    classes = 2 * len(pairs)
    group = {query: place % classes for place, query in enumerate(_shuffled(queries, seed, "groups"))}
    plan: list[Plan] = [("start_cluster", arm, None, 0) for arm in pairs[0][0]]
    for repetition in range(warmups):
        plan += [
            ("warmup", arm, query, repetition)
            for query in _shuffled(queries, seed, f"warmup {repetition}")
            for arm in pairs[0][repetition % 2]
        ]
    for number in range(rounds):
        for query in _dealt(group, classes, seed, number):
            plan += [("timed", arm, query, number) for arm in _row(pairs, group[query], number)]
    plan += [("stop_cluster", arm, None, 0) for arm in pairs[0][1]]
    return plan


def _by_round(arms: Sequence[str], queries: Sequence[str], rounds: int, seed: int, warmups: int) -> list[Plan]:
    pairs = design(_shuffled(arms, seed, "arms"))
    plan: list[Plan] = []
    for number in range(rounds):
        order = _shuffled(queries, seed, f"round {number}")
        for arm in _row(pairs, 0, number):
            plan.append(("start_cluster", arm, None, number))
            for repetition in range(warmups):
                plan += [("warmup", arm, query, repetition) for query in order]
            plan += [("timed", arm, query, number) for query in order]
            plan.append(("stop_cluster", arm, None, number))
    return plan


def _row(pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], group: int, number: int) -> tuple[str, ...]:
    # Consecutive rounds use a row and its reverse; a group starts at its own pair and with its own one of the two.
    return pairs[(group // 2 + number // 2) % len(pairs)][(group + number) % 2]


def _dealt(group: Mapping[str, int], classes: int, seed: int, number: int) -> Iterator[str]:
    """Yield one round's queries, shuffled, but dealt from the groups in turn: rows then alternate in the round too."""
    hands: dict[int, list[str]] = {place: [] for place in range(classes)}
    for query in _shuffled(list(group), seed, f"round {number}"):
        hands[group[query]].append(query)
    # The fuller hands first (sorting keeps the shuffle otherwise), so that the turn holds up to the last query.
    turn = sorted(_shuffled(hands, seed, f"turn {number}"), key=lambda place: -len(hands[place]))
    for deal in range(max(len(hand) for hand in hands.values())):
        yield from (hands[place][deal] for place in turn if deal < len(hands[place]))


def _shuffled(items: Iterable[T], seed: int, label: str) -> list[T]:
    return sorted(items, key=lambda item: _digest(seed, label, item))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()


def _cluster(schedule: Schedule, step: Step) -> int:
    return 0 if schedule.interleave == "query" else step.round


def _check(arms: Sequence[str], queries: Sequence[str], rounds: int, warmups: int, interleave: str) -> None:
    for what, names in (("arm", arms), ("query", queries)):
        if not names:
            msg = f"expected at least one {what} to schedule, got none"
            raise UserError(msg)
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            msg = f"expected every {what} once, got {', '.join(twice)} more than once; name each only once"
            raise UserError(msg)
    if rounds < 1:
        msg = f"expected at least one round, got {rounds}; give --rounds 1 or more"
        raise UserError(msg)
    if warmups < 0:
        msg = f"expected zero or more warm-ups, got {warmups}; give --warmups 0 or more"
        raise UserError(msg)
    if interleave not in ("query", "round"):
        msg = f"expected interleaving by 'query' or 'round', got {interleave!r}"
        raise UserError(msg)


def _check_recurrence(arms: Sequence[str], queries: Sequence[str], seed: int, first: Schedule) -> None:
    strange = sorted((set(arms) - set(first.arms)) | (set(queries) - set(first.queries)))
    if strange:
        msg = f"expected a re-run of arms and queries of the first run, got {', '.join(strange)} besides"
        raise UserError(msg)
    if seed == first.seed:
        msg = f"expected a new seed for an independent re-run, got the first run's seed {seed}"
        raise UserError(msg)
