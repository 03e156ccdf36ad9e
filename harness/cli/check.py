"""`df-strategies check`: the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli._options import ARM_FILES, WHEELS

if TYPE_CHECKING:
    from harness.conformance import Check, ConformanceFile

EPILOG = """\b
Examples:
  df-strategies check                                 every check on every arm
  df-strategies check --arm decorator --tier must
  df-strategies check --arm inline --area 23,25       writes and Python functions
  df-strategies check --check sources.csv_options     one check, with its log path
  df-strategies check --arm inline --out runs/<id> --add    more outcomes for the same file
  df-strategies check --list --area 35                what is checked, without running it
  df-strategies check --arm-file my-arm.toml --arm mine

\b
Outcomes: pass, partial (works, the reason says what is missing), fail, xfail (a known failure, see
harness/conformance/expected.toml), crash, timeout, blocked (the reason names the prerequisite).
Exit 1: a check failed, crashed or hung, or an expected failure did not happen.
"""


def _parts(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Split comma-separated values of an option that may be repeated."""
    del ctx, param
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


@click.command(epilog=EPILOG)
@click.option(
    "--arm",
    "--arms",
    "arms",
    multiple=True,
    callback=_parts,
    metavar="NAMES",
    help="Arms to check, by name.  [default: local,inline,external,decorator]",
)
@click.option("--area", "areas", multiple=True, callback=_parts, metavar="NUMBERS", help="Only these areas, 1 to 36.")
@click.option("--tier", "tiers", multiple=True, callback=_parts, metavar="TIERS", help="Only must, should or may.")
@click.option("--check", "ids", multiple=True, callback=_parts, metavar="IDS", help="Only these checks.")
@click.option("--fast", is_flag=True, help="Only the subset of the normal test run.")
@ARM_FILES
@WHEELS
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write conformance.json (a run directory works too); logs go beside it.",
)
@click.option("--add", is_flag=True, help="Keep what the file of --out says of other checks and arms.")
@click.option(
    "--junit", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML, for CI."
)
@click.option("--list", "list_only", is_flag=True, help="Show the checks and run nothing.")
@click.option("--quiet", is_flag=True, help="Only what is not as it should be, and the totals.")
def command(**options: Any) -> int:  # fmt: skip
    """Run small checks of what works and what differs, each in its own process against real worker processes.

    Builds what is missing, gives every arm its environment and its workers, runs the checks, and writes the outcomes
    with the reason, the log and the command that repeats it for every cell.
    """
    from harness.conformance import load_expected, load_registry, select_checks
    from harness.errors import EXIT_OK, EXIT_REGRESSION

    registry = load_registry()
    load_expected(registry)
    checks = select_checks(registry, areas=_areas(options["areas"]), tiers=options["tiers"], ids=options["ids"])
    checks = [check for check in checks if check.fast or not options["fast"]]
    if options["list_only"]:
        for check in checks:
            click.echo(f"{check.area:>2} {check.tier:<6} {check.id:<40} {check.title}")
        click.echo(f"{len(checks)} checks")
        return EXIT_OK
    if options["add"] and options["out"] is None:
        msg = "--add keeps what is in the file of --out: give --out too"
        raise click.UsageError(msg)
    done, path = _run(checks, options)
    if options["junit"]:
        from harness.conformance.junit import render_junit

        options["junit"].parent.mkdir(parents=True, exist_ok=True)
        options["junit"].write_text(render_junit(done), encoding="utf-8")
    _tell(done, path)
    return EXIT_OK if done.ok else EXIT_REGRESSION


def _areas(texts: list[str]) -> list[int]:
    for text in texts:
        if not text.isdecimal():
            msg = f"--area takes numbers from 1 to 36, got {text!r}"
            raise click.UsageError(msg)
    return [int(text) for text in texts]


def _run(checks: list[Check], options: dict[str, Any]) -> tuple[ConformanceFile, Path]:
    from harness.conformance.session import check_arms

    def say(line: str) -> None:
        if not options["quiet"] or not line.startswith(("pass ", "xfail", "blocked")):
            click.echo(line)

    names = options["arms"]
    selection = {key: list(options[key]) for key in ("areas", "tiers", "ids")}
    return check_arms(
        checks, names, arm_files=list(options["arm_files"]), wheels=options["wheels"], out=options["out"],
        add=options["add"], selection={**selection, "fast": options["fast"]}, say=say,
    )  # fmt: skip


def _tell(done: ConformanceFile, path: Path) -> None:
    click.echo()
    click.echo(
        f"{'arm':<12} {'pass':>5} {'partial':>8} {'fail':>5} {'xfail':>6} {'crash':>6} {'timeout':>8} {'blocked':>8} "
        f"{'of':>5}   must"
    )
    for arm, row in done.summary.conformance.items():
        click.echo(
            f"{arm:<12} {row.passed:>5} {row.partial:>8} {row.fail:>5} {row.xfail:>6} {row.crash:>6} {row.timeout:>8} "
            f"{row.blocked:>8} {row.total:>5}   {row.must_pass} of {row.must_total}"
        )
    for problem in done.problems:
        click.echo(f"  {problem}", err=True)
    click.echo(f"wrote {path}")
