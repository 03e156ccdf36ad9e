"""`df-strategies upstream-tests`: datafusion-python's own suite with a strategy's contexts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli._options import ARM_FILES, WHEELS

if TYPE_CHECKING:
    from harness.conformance.upstream import UpstreamFile

EPILOG = """\b
Examples:
  git clone https://github.com/apache/datafusion-python
  df-strategies upstream-tests --checkout datafusion-python
  df-strategies upstream-tests --checkout datafusion-python --arm decorator -k "udf or udaf"
  df-strategies upstream-tests --checkout datafusion-python --out runs/<id>

\b
Every `SessionContext` that a test makes is the strategy's, with two workers; Python functions are allowed. The suite
runs on stock first, and each test counts as the same or as differing. What differs is run a second time. Reasons of
known differences are in harness/conformance/upstream/differences.toml.
Exit 1: a test differs without a reason there, or one with a reason does not differ.
"""

SHOWN = 20
"""Problems that are listed on the screen; the file has them all."""


@click.command(name="upstream-tests", epilog=EPILOG)
@click.option(
    "--checkout", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Checkout of datafusion-python."
)
@click.option(
    "--arm", "arms", multiple=True, metavar="ARM", help="Arm to test; may be repeated.  [default: all three strategies]"
)
@click.option("-k", "select", metavar="EXPRESSION", help="Only tests whose names fit, as pytest's -k.")
@ARM_FILES
@click.option(
    "--stock", default="local", show_default=True, metavar="ARM", help="Arm that the others are held against."
)
@click.option("--timeout", type=click.FloatRange(1), metavar="SECONDS", help="Limit for one test.  [default: 90]")
@WHEELS
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path),
    help="Where to write upstream_tests.json (a run directory works too); logs go beside it.",
)  # fmt: skip
def command(
    checkout: Path, arms: tuple[str, ...], select: str | None, arm_files: tuple[Path, ...], stock: str,
    timeout: float | None, wheels: Path | None, out: Path | None,
) -> int:  # fmt: skip
    """Run datafusion-python's own tests with contexts made by a strategy, and compare each test with stock.

    Nothing of that suite is part of this project: give a checkout of it.
    """
    from harness.conformance.upstream import open_checkout, run_upstream
    from harness.conformance.upstream.session import Wanted
    from harness.conformance.upstream.suite import TEST_TIMEOUT_S
    from harness.errors import EXIT_OK, EXIT_REGRESSION

    found = open_checkout(checkout)
    wanted = Wanted(
        arms=arms, arm_files=arm_files, wheels=wheels, out=out, select=select, stock=stock,
        timeout_s=TEST_TIMEOUT_S if timeout is None else timeout,
    )  # fmt: skip
    done, path = run_upstream(found, wanted, say=lambda line: click.echo(line, err=True))
    _tell(done, path)
    return EXIT_OK if done.ok else EXIT_REGRESSION


def _tell(done: UpstreamFile, path: Path) -> None:
    record = done.checkout
    commit = (record.commit or "no git checkout")[:12] + (" with changes" if record.changed else "")
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in done.stock.items())
    click.echo(f"datafusion-python {commit}: {done.collected} tests collected; stock: {outcomes}")
    for arm, row in done.summary.upstream_tests.items():
        click.echo(
            f"{arm:<12} keeps {row.kept} of {row.stock_passed} that stock passes ({row.remote} ran on workers); "
            f"{row.differs} differ: {row.inherent} inherent, {row.unfinished} unfinished, {row.unexplained} unexplained"
        )
    for problem in done.problems[:SHOWN]:
        click.echo(f"  {problem}", err=True)
    if len(done.problems) > SHOWN:
        click.echo(f"  ... and {len(done.problems) - SHOWN} more, see the file", err=True)
    click.echo(f"wrote {path}")
