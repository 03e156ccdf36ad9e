"""Simulated timings with a known truth, disturbed as real machines are: the test bench of the estimators and verdicts.

The noise is set so that intervals come out as wide as measured on a real 2-core machine: about 14 % for one query and
3.4 % for a 22-query suite at 10 rounds. Times are positive milliseconds, NaN where an execution failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.stats.verdicts import MIN_ROUNDS_FOR_VERDICT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ARMS = ("base", "aa", "new")
"""First axis of all simulated times: an arm, the same arm under another name, and the arm that may differ."""

SHORTEST_MS, LONGEST_MS = 40.0, 460.0
"""Range of single-node SF1 query times on the 2-core machine where the method was worked out."""

NOISE = 0.064
"""Log-scale deviation of one execution: gives the 14 % wide interval measured for one query at 10 rounds."""

ARM_ROUND_NOISE = 0.008
"""Deviation shared by all queries of one arm in one round: gives the 3.4 % wide interval measured for the suite."""

PROCESS_NOISE = 0.02
"""Deviation that stays with a query as long as its process lives (memory layout, for example)."""

DRIFT = 0.3
"""Largest steady drift over a run: sequential runs minutes apart were seen to move by 25 to 60 %."""

WANDER = 0.05
"""Deviation of each of the eight steps of a random walk on top of the drift."""

LOAD = (1.25, 1.6)
"""Factor while another process runs, as seen when anything else was running on the 2-core machine."""

SPIKE_RATE = 0.03
"""Share of executions that something else on the machine hits."""

SPIKE = (1.5, 3.0)
"""Factor of an execution that was hit."""

FIRST_ROUND = (1.3, 4.0)
"""Factor of the first round in a fresh process without warm-up, as measured."""

FAILING = 3
"""Queries of arm `new` that fail in the scenario with failures; the first of them in one round only."""

RUNS, FAILS_ONCE, FAILS = 0, 1, 2
"""What `World.failing` holds: every round runs, the last one fails, all fail."""


class Scenario(NamedTuple):
    """What is true (`factor` on one query of arm `new` in every suite) and what disturbs the view of it."""

    name: str
    what: str
    factor: float = 1.0
    rounds: int | None = None
    noise: float = NOISE
    process: float = 0.0
    drift: float = 0.0
    load: bool = False
    spikes: float = 0.0
    slow_first: bool = False
    failing: int = 0


SCENARIOS = (
    Scenario("unchanged", "two identical arms"),
    Scenario("slower_20pct", "one query 20 % slower", factor=1.2),
    Scenario("slower_10pct", "one query 10 % slower", factor=1.1),
    Scenario("faster_20pct", "one query faster by the factor 1.2", factor=1 / 1.2),
    Scenario("drift", "the machine drifts by up to 30 % over the run, and wanders", drift=DRIFT),
    Scenario("load", "another process slows everything by 25 to 60 % for part of the run", load=True),
    Scenario("spikes", "3 % of executions take 1.5 to 3 times as long", spikes=SPIKE_RATE),
    Scenario("slow_first_round", "first round 1.3 to 4 times slower, by another factor in each arm", slow_first=True),
    Scenario("process_effects", "each process keeps its own 2 % accident per query", process=PROCESS_NOISE),
    Scenario("noisy_machine", "twice the noise", noise=2 * NOISE),
    Scenario("failing_queries", "three queries fail in one arm", failing=FAILING),
    Scenario("fewest_rounds", "two identical arms, no more rounds than a verdict needs", rounds=MIN_ROUNDS_FOR_VERDICT),
)
"""Everything the method claims to see through, one at a time."""


class World(NamedTuple):
    """The truth of all suites of a scenario, each array of shape (suites, queries)."""

    ms: Array
    effect: Array  # log-factor of arm `new`
    failing: NDArray[np.int64]  # RUNS, FAILS_ONCE or FAILS


def make_world(scenario: Scenario, rng: np.random.Generator, suites: int, queries: int) -> World:
    """Draw the true times, which query is changed and which ones fail."""
    ms = np.exp(rng.uniform(np.log(SHORTEST_MS), np.log(LONGEST_MS), (suites, queries)))
    order = np.argsort(rng.random((suites, queries)), axis=1)
    effect = np.where(order == 0, np.log(scenario.factor), 0.0)
    failing = np.where(order < scenario.failing, np.where(order == 0, FAILS_ONCE, FAILS), RUNS)
    return World(ms, effect, failing)


def simulate(scenario: Scenario, world: World, places: Array, rng: np.random.Generator) -> Array:
    """Return times in ms, (arms, suites, queries, rounds), of one run of every suite in new processes.

    `places` is (schedules, arms, queries, rounds): when each execution happens, from 0 to 1 over the run. Suites take
    the schedules in turn.
    """
    suites, queries = world.ms.shape
    rounds = places.shape[-1]
    when = np.moveaxis(places[np.arange(suites) % len(places)], 1, 0)
    logs = np.log(world.ms)[None, :, :, None] + rng.normal(0.0, scenario.noise, (len(ARMS), suites, queries, rounds))
    logs[ARMS.index("new")] += world.effect[:, :, None]
    logs += rng.normal(0.0, ARM_ROUND_NOISE, (len(ARMS), suites, 1, rounds))
    if scenario.process:
        logs += rng.normal(0.0, scenario.process, (len(ARMS), suites, queries, 1))
    if scenario.drift:
        logs += _drift(when, scenario.drift, rng)
    if scenario.load:
        logs += _load(when, rng)
    if scenario.spikes:
        logs += (rng.random(logs.shape) < scenario.spikes) * np.log(rng.uniform(*SPIKE, logs.shape))
    if scenario.slow_first:
        logs[..., 0] += np.log(rng.uniform(*FIRST_ROUND, (len(ARMS), suites, 1)))
    times: Array = np.exp(logs)
    failing = world.failing[:, :, None]
    last = np.arange(rounds) == rounds - 1
    times[ARMS.index("new")][(failing == FAILS) | ((failing == FAILS_ONCE) & last)] = np.nan
    return times


def _drift(when: Array, largest: float, rng: np.random.Generator) -> Array:
    """Return a steady slope up or down plus a random walk of eight steps, at the times (arms, suites, ...)."""
    suites = when.shape[1]
    knots = np.linspace(0.0, 1.0, 9)
    slopes = rng.uniform(-1.0, 1.0, suites) * np.log1p(largest)
    walks = np.cumsum(rng.normal(0.0, WANDER, (suites, knots.size)), axis=1) + slopes[:, None] * knots
    drift = np.stack([np.interp(when[:, suite], knots, walks[suite]) for suite in range(suites)], axis=1)
    return np.asarray(drift, dtype=np.float64)


def _load(when: Array, rng: np.random.Generator) -> Array:
    """Return the log-factor of a burst that covers 20 to 50 % of the run."""
    shape = (1, when.shape[1], 1, 1)
    length = rng.uniform(0.2, 0.5, shape)
    start = rng.uniform(0.0, 1.0, shape) * (1.0 - length)
    during = (when >= start) & (when <= start + length)
    return np.asarray(during * np.log(rng.uniform(*LOAD, shape)), dtype=np.float64)
