"""The instrument proves itself: simulated arms with a known truth, judged by the code that judges real ones.

Estimates, margins, verdicts, recurrence, coverage and the schedule that places every execution in time are the
project's own; nothing is re-implemented here. What is simulated is in `harness.stats.simulate`. Each suite has arms
`base`, its A/A twin `aa`, and `new`; it goes through the whole procedure: first run, margin raised to the A/A noise,
verdicts, and an independent re-run of the candidates.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from harness.model import Frozen, Reach, Status, Tier, Validation, Verdict, VerdictKind
from harness.schedule import half_width, make_schedule
from harness.stats.coverage import Cell, coverage
from harness.stats.estimators import RESAMPLES, suite_log_value
from harness.stats.simulate import ARMS, DRIFT, SCENARIOS, Scenario, World, make_world, simulate
from harness.stats.verdicts import (
    DEFAULT_ROUNDS,
    MARGIN,
    NoiseMargin,
    flagged,
    needs_recurrence,
    noise_from,
    query_verdict,
    query_verdicts,
    settle,
    suite_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SUITES = 200
"""Simulated suites per scenario: with no false flag in 200 the true rate is below 1.9 % (95 %, Wilson)."""

SEED = 1612
"""Any number; fixed, so that every report of one version prints the same table."""

QUERIES = 22
"""As many as TPC-H has."""

SCALE_FACTOR = 1.0
"""The simulated times are those of SF1, and so is the absolute floor."""

WIDTH_SUITES = 50
"""Suites per scenario whose interval is always computed: it is the slowest part, and 50 fix the median width to 3 %."""

SCHEDULES = 20
"""Different schedules that the suites of a scenario share: more would only cost time."""


class CalibrationRow(Frozen):
    """Figures of one scenario. Rates are shares from 0 to 1; widths are relative half-widths (0.02 is +/-2 %)."""

    scenario: str
    what: str
    suites: int
    rounds: int
    false_flag_rate: float = Field(description="Suites with any false claim at the end of the whole procedure")
    false_flag_upper: float = Field(description="Upper end of that rate's 95 % interval (Wilson)")
    false_total_rate: float | None = Field(
        description="Suites with a total or suite ratio although queries failed in one arm; null if none failed"
    )
    candidate_rate: float = Field(description="Suites in which an unchanged query was a candidate in the first run")
    confirmed_rate: float = Field(description="Suites in which one was confirmed in the first run, before recurrence")
    power: float | None = Field(description="Changed queries found, in the right direction; null if none was changed")
    confirmed_power: float | None = Field(description="Of them, found in the confirmed tier")
    interval_coverage: float = Field(description="Query intervals that contain the true ratio")
    query_half_width: float = Field(description="Median over queries and suites")
    suite_half_width: float | None = Field(
        description="Median over the first suites (WIDTH_SUITES); null if none is comparable"
    )
    margin: float = Field(description="Median over suites of the margin after the A/A pair was heard")


class IncumbentRow(Frozen):
    """What a rule seen in public harnesses says of the same kind of simulated times, per query."""

    rule: str
    false_flag_rate: float = Field(description="Unchanged queries flagged")
    power: float = Field(description="Queries 20 % slower that are found")


class Calibration(Frozen):
    """The table that every report prints, with the three figures that stand for it and what they were computed from."""

    seed: int
    suites: int
    queries: int
    rounds: int
    resamples: int
    aa_false_flag_rate: float = Field(description="Suites of identical arms with any flag, whole procedure")
    power_20pct: float = Field(description="Queries 20 % slower that are found, whole procedure")
    suite_ci_half_width: float = Field(description="Of identical arms, median over the first suites (WIDTH_SUITES)")
    rows: tuple[CalibrationRow, ...]
    incumbents: tuple[IncumbentRow, ...]


class JudgedSuite(NamedTuple):
    """One judged suite; the lists have one entry per query."""

    first: list[Verdict]
    final: list[Verdict]
    suite: Verdict | None
    margin: float
    false_total: bool


class Settings(NamedTuple):
    """What a calibration was asked for; see `calibrate`."""

    seed: int
    suites: int
    rounds: int
    queries: int
    resamples: int


def calibrate(
    *,
    seed: int = SEED,
    suites: int = SUITES,
    rounds: int = DEFAULT_ROUNDS,
    queries: int = QUERIES,
    resamples: int = RESAMPLES,
    scenarios: Sequence[Scenario] = SCENARIOS,
) -> Calibration:
    """Run every scenario on `suites` simulated suites and return all figures. Same arguments, same figures.

    `scenarios` must contain `unchanged` and `slower_20pct`, from which the headline figures come.

    Raises KeyError if one of the two is missing, ValueError if it does not give its figure.
    """
    settings = Settings(seed, suites, rounds, queries, resamples)
    places = {count: places_of(settings, count) for count in {rounds} | {case.rounds or rounds for case in scenarios}}
    rows = {
        scenario.name: _row(scenario, settings, places, np.random.default_rng([seed, number]))
        for number, scenario in enumerate(scenarios)
    }
    unchanged, changed = rows["unchanged"], rows["slower_20pct"]
    return Calibration(
        **settings._asdict(),
        aa_false_flag_rate=unchanged.false_flag_rate,
        power_20pct=_figure(changed.power),
        suite_ci_half_width=_figure(unchanged.suite_half_width),
        rows=tuple(rows.values()),
        incumbents=tuple(_incumbents(settings, places[rounds], np.random.default_rng([seed, len(scenarios)]))),
    )


def _row(
    scenario: Scenario, settings: Settings, places: Mapping[int, Array], rng: np.random.Generator
) -> CalibrationRow:
    rounds = scenario.rounds or settings.rounds
    world = make_world(scenario, rng, settings.suites, settings.queries)
    first, again = (simulate(scenario, world, order, rng) for order in (places[rounds], places[rounds][::-1]))
    judged = judge_suites(world, first, again, settings)
    effects = world.effect.tolist()
    false = [_false(suite, truth) for suite, truth in zip(judged, effects, strict=True)]
    queries = [
        (early, late, effect)
        for suite, truth in zip(judged, effects, strict=True)
        for early, late, effect in zip(suite.first, suite.final, truth, strict=True)
    ]
    changed = [late for _, late, effect in queries if effect]
    found = [verdict for verdict in changed if verdict.kind is _direction(scenario)]
    ratios = [(early.ratio, effect) for early, _, effect in queries if early.ratio]
    widths = [half_width(suite.suite.ratio) for suite in judged[:WIDTH_SUITES] if suite.suite and suite.suite.ratio]
    return CalibrationRow(
        scenario=scenario.name,
        what=scenario.what,
        suites=settings.suites,
        rounds=rounds,
        false_flag_rate=_share(false),
        false_flag_upper=_wilson_upper(sum(false), settings.suites),
        false_total_rate=_share(suite.false_total for suite in judged) if scenario.failing else None,
        candidate_rate=_early_rate(judged, effects, tuple(Tier)),
        confirmed_rate=_early_rate(judged, effects, (Tier.CONFIRMED,)),
        power=len(found) / len(changed) if changed else None,
        confirmed_power=sum(verdict.tier is Tier.CONFIRMED for verdict in found) / len(changed) if changed else None,
        interval_coverage=_share(math.log(ratio.low) <= effect <= math.log(ratio.high) for ratio, effect in ratios),
        query_half_width=float(np.median([half_width(ratio) for ratio, _ in ratios])),
        suite_half_width=float(np.median(widths)) if widths else None,
        margin=float(np.median([suite.margin for suite in judged])),
    )


def places_of(settings: Settings, rounds: int) -> Array:
    """Return when each execution happens, 0 to 1, as real schedules have it: (schedules, arms, queries, rounds)."""
    names = _names(settings.queries)
    places = np.empty((SCHEDULES, len(ARMS), settings.queries, rounds))
    arm_of, query_of = ({name: place for place, name in enumerate(group)} for group in (ARMS, names))
    for number in range(SCHEDULES):
        timed = make_schedule(ARMS, names, rounds, seed=settings.seed + number, warmups=0).timed
        for place, step in enumerate(timed):
            places[number, arm_of[step.arm], query_of[step.query or ""], step.round] = place / len(timed)
    return places


def judge_suites(world: World, first: Array, again: Array, settings: Settings) -> list[JudgedSuite]:
    """Take all suites through the whole procedure. Times are (arms, suites, queries, rounds)."""
    base, twin, new = first
    suites = len(base)
    unraised = _verdicts(base, twin, np.full(base.shape[:2], MARGIN), settings)
    noises = [_noise(unraised[suite], base[suite], twin[suite], settings) for suite in range(suites)]
    margins = np.repeat([[noise.query] for noise in noises], base.shape[1], axis=1)
    verdicts = _verdicts(base, new, margins, settings)
    finals = _settled(verdicts, again[0], again[2], margins, settings)
    judged = []
    for suite, noise in enumerate(noises):
        whole = _whole(base[suite], new[suite], noise.suite, settings, in_full=suite < WIDTH_SUITES)
        lie = bool(world.failing[suite].any()) and (whole is None or _has_figure(base[suite], new[suite], whole))
        judged.append(JudgedSuite(verdicts[suite], finals[suite], whole, noise.query, lie))
    return judged


def _verdicts(base: Array, new: Array, margins: Array, settings: Settings) -> list[list[Verdict]]:
    """Judge every query of every suite: times (suites, queries, rounds), margins (suites, queries)."""
    suites, queries, rounds = base.shape
    flat_base, flat_new = base.reshape(-1, rounds), new.reshape(-1, rounds)
    whole = np.asarray(np.isfinite(flat_base + flat_new).all(axis=1))
    verdicts = iter(_batch(flat_base[whole], flat_new[whole], margins.ravel()[whole], settings))
    flat = [
        next(verdicts)
        if complete
        else query_verdict(_holes(flat_base[place]), _holes(flat_new[place]), sf=SCALE_FACTOR, seed=settings.seed)
        for place, complete in enumerate(whole.tolist())
    ]
    return [flat[start : start + queries] for start in range(0, suites * queries, queries)]


def _batch(base: Array, new: Array, margins: Array, settings: Settings) -> list[Verdict]:
    """Judge complete series, (series, rounds)."""
    if not len(base):
        return []
    return query_verdicts(
        base.tolist(),
        new.tolist(),
        sf=SCALE_FACTOR,
        seed=settings.seed,
        margins=margins.tolist(),
        resamples=settings.resamples,
    )


def _settled(
    verdicts: list[list[Verdict]], base: Array, new: Array, margins: Array, settings: Settings
) -> list[list[Verdict]]:
    """Run the candidates again, and only them."""
    wanted = np.array([[needs_recurrence(verdict) for verdict in row] for row in verdicts])
    reruns = iter(_batch(base[wanted], new[wanted], margins[wanted], settings))
    return [
        [settle(verdict, next(reruns)) if mark else verdict for verdict, mark in zip(row, marks, strict=True)]
        for row, marks in zip(verdicts, wanted.tolist(), strict=True)
    ]


def _noise(verdicts: Sequence[Verdict], base: Array, twin: Array, settings: Settings) -> NoiseMargin:
    """Return what `noise_margin` would."""
    suite = _whole(base, twin, MARGIN, settings, in_full=False)
    return noise_from(dict(zip(_names(len(verdicts)), verdicts, strict=True)), suite)


def _whole(base: Array, new: Array, margin: float, settings: Settings, *, in_full: bool) -> Verdict | None:
    """Judge one suite, (queries, rounds). A ratio inside the margin cannot be flagged: None then, unless `in_full`."""
    finite = bool(np.isfinite(new).all())
    if finite and not in_full and abs(suite_log_value(np.log(new) - np.log(base))) <= math.log1p(margin):
        return None
    names = _names(len(base))
    left, right = ({name: _holes(row) for name, row in zip(names, times, strict=True)} for times in (base, new))
    return suite_verdict(left, right, seed=settings.seed, margin=margin, resamples=settings.resamples)


def _has_figure(base: Array, new: Array, whole: Verdict) -> bool:
    """Tell whether any suite figure came out although queries failed in one arm: a lie, whatever its value."""
    return whole.ratio is not None or coverage(_cells("base", base), _cells("new", new)).total.factor is not None


def _cells(arm: str, times: Array) -> dict[str, Cell]:
    """Return one suite's times, (queries, rounds), as the cells that `collect` makes of samples."""
    return {name: _cell(arm, name, _holes(row)) for name, row in zip(_names(len(times)), times, strict=True)}


def _cell(arm: str, query: str, times: tuple[float | None, ...]) -> Cell:
    valid = None not in times
    return Cell(
        arm=arm,
        query=query,
        times_ms=times,
        status=Status.OK if valid else Status.ERROR,
        reason=None if valid else "simulated failure",
        validation=Validation.VALIDATED,
        reach=Reach.DISTRIBUTED,
        valid=valid,
    )


def _incumbents(settings: Settings, places: Array, rng: np.random.Generator) -> Iterable[IncumbentRow]:
    """Judge simulated times by rules seen in public harnesses, for comparison."""
    plain = Scenario("incumbents", "", factor=1.2)
    drifting = Scenario("sequential", "", factor=1.2, drift=DRIFT)
    one_after_another = (np.arange(len(ARMS))[:, None, None] + places) / len(ARMS)
    for rule, scenario, when in (
        ("fastest of 5, flagged beyond +/-5 %", plain, places),
        ("mean of 5, flagged beyond a factor of 1.2", plain, places),
        ("median of the paired ratios, flagged beyond +/-5 %, arms one after another", drifting, one_after_another),
    ):
        world = make_world(scenario, rng, settings.suites, settings.queries)
        base, _, new = simulate(scenario, world, when, rng)
        if rule.startswith("fastest"):
            ratio, limit = new[..., :5].min(axis=-1) / base[..., :5].min(axis=-1), 1 + MARGIN
        elif rule.startswith("mean"):
            ratio, limit = new[..., :5].mean(axis=-1) / base[..., :5].mean(axis=-1), 1.2
        else:
            ratio, limit = np.median(new / base, axis=-1), 1 + MARGIN
        changed = world.effect != 0
        beyond = (ratio > limit) | (ratio < 1 / limit)
        yield IncumbentRow(
            rule=rule, false_flag_rate=float(beyond[~changed].mean()), power=float((ratio > limit)[changed].mean())
        )


def _false(suite: JudgedSuite, effects: Sequence[float]) -> bool:
    claims = any(
        flagged(verdict)
        and not (verdict.kind is VerdictKind.SLOWER and effect > 0)
        and not (verdict.kind is VerdictKind.FASTER and effect < 0)
        for verdict, effect in zip(suite.final, effects, strict=True)
    )
    # No scenario moves a whole suite beyond the margin, so any claim about the suite is false.
    return claims or (suite.suite is not None and flagged(suite.suite)) or suite.false_total


def _direction(scenario: Scenario) -> VerdictKind:
    return VerdictKind.SLOWER if scenario.factor > 1 else VerdictKind.FASTER


def _early_rate(judged: Sequence[JudgedSuite], effects: Sequence[Sequence[float]], tiers: Sequence[Tier]) -> float:
    """Return the share of suites in which an unchanged query was in one of the tiers in the first run."""
    return _share(
        any(verdict.tier in tiers and not effect for verdict, effect in zip(suite.first, truth, strict=True))
        for suite, truth in zip(judged, effects, strict=True)
    )


def _names(queries: int) -> list[str]:
    return [f"q{number:02d}" for number in range(1, queries + 1)]


def _holes(times: Array) -> tuple[float | None, ...]:
    return tuple(time if math.isfinite(time) else None for time in times.tolist())


def _figure(figure: float | None) -> float:
    if figure is None:
        msg = "expected a figure from the scenarios `unchanged` and `slower_20pct`, got none"
        raise ValueError(msg)
    return figure


def _share(marks: Iterable[bool]) -> float:
    given = list(marks)
    return sum(given) / len(given)


def _wilson_upper(count: int, of: int) -> float:
    """Return the upper end of the 95 % Wilson interval of a share."""
    z = 1.959964
    share = count / of
    return (share + z * z / (2 * of) + z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))) / (
        1 + z * z / of
    )
