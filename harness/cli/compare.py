"""`df-strategies compare`: arms within a run, or stored runs with each other."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli._options import folder_of_runs


@click.command(
    epilog="""\b
Examples:
  df-strategies compare latest                                   every arm of the newest run against native
  df-strategies compare latest --base inline --new decorator
  df-strategies compare 20261130-2200 20261201-2200              the same arms, yesterday and today
  df-strategies compare 20261130-2200 20261201-2200 --arm decorator
  df-strategies compare old/tpch_sf1.json new/tpch_sf1.json      results of `dfbench ... -o FILE`
  df-strategies compare data/tpch_sf1/.results/main latest --arm native --force

\b
RUNS may also be result files of datafusion's dfbench, or folders of datafusion-distributed's benchmarks: these give
factors of medians without intervals or verdicts, and what cannot be shown to be alike is refused.

\b
Factors are ratios of medians paired by round, with a 95 % interval. A total is printed only where both sides
are valid on the same queries. Exit 1: something got slower or newly fails. Exit 3: not comparable.
"""
)
@click.argument("runs", nargs=-1, required=True)
@click.option("--base", metavar="ARM", help="Within one run: what to compare with.  [default: native, else local]")
@click.option("--new", metavar="ARM", help="Within one run: what to judge.  [default: every other arm]")
@click.option("--arm", metavar="ARM", help="Between runs: only this arm.  [default: all that they share]")
@click.option("--force", is_flag=True, help="Compare runs of other data, machines or settings; the output says so.")
@folder_of_runs("--out")
def command(
    runs: tuple[str, ...], base: str | None, new: str | None, arm: str | None, force: bool, runs_folder: Path
) -> int:
    """Compare stored results: RUNS are ids, starts of ids, paths or `latest`.

    With one run, its arms are compared with each other. With several, each later one is compared with the first.
    """
    from harness.cli import _comparing as comparing
    from harness.incumbents import is_results
    from harness.rundir import RunDirectory, find_run

    if any(is_results(Path(text)) for text in runs):
        if base or new:
            msg = "--base and --new are for arms within one run; with result files of other tools use --arm"
            raise click.UsageError(msg)
        return _lay_beside(runs, runs_folder, arm, force=force)
    found = [RunDirectory.open(find_run(text, runs_folder)) for text in runs]
    if len(found) == 1:
        if arm:
            msg = "--arm is for comparing runs; within one run use --base and --new"
            raise click.UsageError(msg)
        run = found[0]
        pairs = [
            (comparing.read_side(run, one, label=one), comparing.read_side(run, two, label=two))
            for one, two in comparing.pick_arms(run.manifest(), base, new)
        ]
    else:
        if base or new:
            msg = "--base and --new are for arms within one run; between runs use --arm"
            raise click.UsageError(msg)

        def side(run: RunDirectory, name: str) -> comparing.Side:
            return comparing.read_side(run, name, label=f"{name} of {run.path.name}")

        arms = comparing.shared_arms({run.path.name: run.manifest() for run in found}, arm)
        pairs = [(side(found[0], name), side(later, name)) for later in found[1:] for name in arms]
    codes = []
    for one, two in pairs:
        compared = comparing.compare(one, two, force=force)
        click.echo(comparing.render(compared))
        codes.append(compared.end.exit_code)
    return max(codes)


def _lay_beside(runs: tuple[str, ...], root: Path, arm: str | None, *, force: bool) -> int:
    """Results of other tools, and runs as far as they are wanted beside them; each later one against the first."""
    from harness.cli import _comparing as comparing
    from harness.errors import UserError
    from harness.incumbents import from_run, is_results, lay_beside, read_results
    from harness.rundir import RunDirectory, find_run

    sides = []
    for text in runs:
        if is_results(Path(text)):
            sides.append(read_results(Path(text)))
            continue
        run = RunDirectory.open(find_run(text, root))
        if arm is None:
            msg = f"say which arm of run {run.path.name} is meant: --arm, one of {', '.join(run.manifest().arms)}"
            raise UserError(msg)
        side = comparing.read_side(run, arm, label=f"{arm} of {run.path.name}")
        sides.append(from_run(side.label, arm, side.manifest, side.samples, side.rounds))
    if len(sides) < 2:
        msg = f"{runs[0]} is one set of results; give a second one to compare it with"
        raise UserError(msg)
    codes = []
    for later in sides[1:]:
        laid = lay_beside(sides[0], later, force=force)
        click.echo(comparing.render_laid(laid))
        codes.append(laid.exit_code)
    return max(codes)
