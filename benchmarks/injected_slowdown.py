# ruff: noqa: INP001 - a script, no package
"""Does the instrument find a slowdown of 20 % on real processes, and nothing where there is none?

    python benchmarks/injected_slowdown.py --data DIR [--sf 1] [--queries 1,5,9,13,18] [--rounds 10] [--out DIR]

Three arms in one real run: a stock session, the same under another name (A/A), and one that sleeps for a fifth of what
each query took (`arms/slow20.toml`). The run is made and judged as any other: interleaved schedule, margin raised to
the A/A noise, re-run of candidates in fresh processes. Exit 0 if every query of the slowed arm that is long enough to
show (its fifth is above the absolute floor) is found slower, and no query of the A/A pair is flagged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.model import Phase, Tier, Verdict, VerdictKind
from harness.rundir import RunDirectory
from harness.schedule import Schedule, finished_rounds
from harness.stats import (
    Cell,
    absolute_floor_ms,
    collect,
    flagged,
    needs_recurrence,
    noise_margin,
    query_verdict,
    series,
    settle,
    suite_ratio,
)
from harness.stats.verdicts import MARGIN

ARMS = Path(__file__).parent / "arms"
SHARE = 0.2
"""What `slow20.toml` adds."""


def say(text: object) -> None:
    """One line on stdout."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def make_run(given: argparse.Namespace, out: Path) -> RunDirectory:
    """The comparison, as a user would start it."""
    names = ("plain", "slow20", "plain-again")
    words = [sys.executable, "-m", "harness", "run", "--no-baselines", "--no-report", "--arms", ",".join(names)]
    words += ["--sf", given.sf, "--queries", given.queries, "--rounds", str(given.rounds), "--out", str(out)]
    for name in names:
        words += ["--arm-file", str(ARMS / f"{name}.toml")]
    done = subprocess.run(words, env={**os.environ, "DF_STRATEGIES_DATA": str(given.data)}, check=False)
    if done.returncode != 0:
        msg = f"the run ended with exit code {done.returncode}"
        raise SystemExit(msg)
    return RunDirectory.open(max(out.glob("*/manifest.json")).parent)


def cells_of(run: RunDirectory, arm: str, phase: Phase) -> dict[str, Cell]:
    """One arm's cells in one phase."""
    schedule = Schedule.model_validate_json(run.schedule_json())
    samples = run.samples()
    own = {step.sequence for step in schedule.steps if step.query}
    rounds = finished_rounds(schedule, {sample.sequence for sample in samples} & own)
    return collect(samples, arm=arm, queries=schedule.queries, rounds=rounds, phase=phase)


def verdicts(run: RunDirectory, base: str, new: str, sf: float, margin: float) -> dict[str, Verdict]:
    """Verdicts of the whole procedure: candidates are settled by their re-run."""
    seed = run.manifest().settings.seed
    first = [series(cells_of(run, arm, Phase.TIMED)) for arm in (base, new)]
    again = [series(cells_of(run, arm, Phase.RECURRENCE)) for arm in (base, new)]
    found = {}
    for query in first[0]:
        verdict = query_verdict(first[0][query], first[1][query], sf=sf, seed=seed, margin=margin)
        if needs_recurrence(verdict):
            rerun = query_verdict(again[0][query], again[1][query], sf=sf, seed=seed + 1, margin=margin)
            verdict = settle(verdict, rerun)
        found[query] = verdict
    return found


def main() -> int:
    """Make the run, judge it, print every verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="data root that has this scale factor")
    parser.add_argument("--sf", default="1")
    parser.add_argument("--queries", default="1,5,9,13,18")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="folder for the run directory  [default: a temporary one]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return judge(make_run(given, given.out or Path(folder)), float(given.sf))


def judge(run: RunDirectory, sf: float) -> int:
    """Print every verdict of a finished run; 0 if all are as they must be."""
    plain, twin = (series(cells_of(run, arm, Phase.TIMED)) for arm in ("plain", "plain-again"))
    noise = noise_margin(plain, twin, sf=sf, seed=run.manifest().settings.seed)
    say(noise.reason)
    medians = {query: cell.median_ms or 0.0 for query, cell in cells_of(run, "plain", Phase.TIMED).items()}
    visible = [query for query, median in medians.items() if median * SHARE > absolute_floor_ms(sf)]
    slowed = verdicts(run, "plain", "slow20", sf, noise.query)
    same = verdicts(run, "plain", "plain-again", sf, MARGIN)
    for name, found in (("slow20", slowed), ("A/A", same)):
        for query, verdict in found.items():
            tier = f" ({verdict.tier.value})" if verdict.tier else ""
            say(f"{name:>7} {query} {medians[query]:7.1f} ms: {verdict.kind.value}{tier}: {verdict.reason}")
    suite = suite_ratio(plain, series(cells_of(run, "slow20", Phase.TIMED)), seed=1)
    say(f"suite of slow20: {suite.value:.3f} [{suite.low:.3f}, {suite.high:.3f}]")
    missed = [query for query in visible if slowed[query].kind is not VerdictKind.SLOWER]
    false = [query for query, verdict in same.items() if flagged(verdict)]
    confirmed = [query for query in false if same[query].tier is Tier.CONFIRMED]
    say(
        json.dumps(
            {"visible": len(visible), "found": len(visible) - len(missed), "missed": missed, "aa_flags": false,
             "aa_confirmed": confirmed, "margin": noise.query}
        )
    )  # fmt: skip
    return 1 if missed or false or not visible else 0


if __name__ == "__main__":
    sys.exit(main())
