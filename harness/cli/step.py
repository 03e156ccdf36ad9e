"""`df-strategies step`: what one tox environment does."""

from __future__ import annotations

import os

import click

SELECTED = "DF_STRATEGIES_SELECTED"
"""Environment variable in which `toxfile.py` names the environments of the tox call, in order."""

EPILOG = """\b
Examples:
  df-strategies step inline                          build, check and validate one strategy
  df-strategies step decorator --selected inline,decorator -- --sf 10 --rounds 5

\b
tox calls this once per strategy. The last selected one also runs the comparison of all of them.
"""

READY = ["--make-data"]
"""tox is the whole way from a fresh checkout to a report, so the tables are made on the way."""

ONE_PASS = ["--no-baselines", "--rounds", "1", "--warmups", "0", "--no-recurrence", "--no-report", "--no-checks"]
"""Every query once, every answer checked: a strategy that is not right has no business in a comparison."""


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("strategy")
@click.option("--selected", default=None, help=f"Strategies in order.  [default: ${SELECTED}, or this one]")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
def command(strategy: str, selected: str | None, run_options: tuple[str, ...]) -> int:
    """Build STRATEGY, make the data, validate its answers, and compare all selected once the last one is ready.

    The comparison ends with the fast conformance checks and some generated queries on every strategy; `--no-checks`
    leaves them out. RUN_OPTIONS go to `df-strategies run`.
    """
    from harness.arms import parse_names, select_arms, shipped_arms
    from harness.cli import main
    from harness.errors import EXIT_REGRESSION

    strategies = {name: arm for name, arm in shipped_arms().items() if arm.kind == "strategy"}
    select_arms([strategy], strategies)
    listed = parse_names(selected or os.environ.get(SELECTED) or strategy)
    names = [name for name in listed if name in strategies]
    if strategy not in names:
        names.append(strategy)

    click.echo(f"== {strategy}: every query once, every answer against both oracles", err=True)
    code = main(["run", *READY, *run_options, "--arms", strategy, *ONE_PASS])
    if strategy != names[-1] or code > EXIT_REGRESSION:
        return code
    click.echo(f"== comparison of {', '.join(names)} with the baselines", err=True)
    return main(["run", "--checks", *READY, *run_options, "--arms", ",".join(names)]) or code
