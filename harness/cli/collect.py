"""`df-strategies collect`: what a report has beside timings."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli._options import folder_of_runs

STANDARD = ("api_surface", "packaging", "calibration")
PARTS = (*STANDARD, "conformance", "generated_queries")

EPILOG = """\b
Examples:
  df-strategies collect latest                            what every report has; about two minutes
  df-strategies collect latest --part packaging           only the packages, again
  df-strategies collect latest --part conformance --part generated_queries
  df-strategies collect 20261201-0931 --wheels dist/      the wheels of that run are in dist/

\b
Parts:
  api_surface        public names against stock, by importing; the shortest script of each strategy, executed
  packaging          wheel and library sizes, import time and memory, lines of code, lock packages
  calibration        error rates of the statistics on simulated runs with known truth
  conformance        the fast checks. All of them: df-strategies check --out RUN
  generated_queries  200 per strategy. More of them: df-strategies fuzz --out RUN/generated_queries.json

\b
A part that fails becomes a blank with its reason in the report. The wheels must be those that ran.
"""


def _parts(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    del ctx, param
    return tuple(dict.fromkeys(values)) or STANDARD


@click.command(epilog=EPILOG)
@click.argument("run", default="latest")
@click.option(
    "--part",
    "parts",
    multiple=True,
    callback=_parts,
    type=click.Choice(PARTS),
    help="What to collect; may be repeated.  [default: api_surface, packaging, calibration]",
)
@click.option(
    "--wheels",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder with the prebuilt wheels of the run.  [default: as the run was told]",
)
@folder_of_runs("--out")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(run: str, parts: tuple[str, ...], wheels: Path | None, runs_folder: Path, quiet: bool) -> int:
    """Collect what a report has beside timings for a stored run, and write its report again.

    RUN is an id, the start of one, a path, or `latest`. `df-strategies run` does this by itself at its end; this is
    for a run that was stopped before, or whose wheels were not at hand. Do not start it while another run is timed.
    """
    from harness.errors import EXIT_OK, EXIT_REGRESSION
    from harness.rundir import RunDirectory, find_run
    from reports.build import build_report
    from reports.gather import gather

    directory = RunDirectory.open(find_run(run, runs_folder))
    with directory.lock():
        outcome = gather(directory, parts, wheels=wheels.resolve() if wheels else None, quiet=quiet)
    build_report(directory.path)
    for part, reason in outcome.items():
        click.echo(f"{part}: {'collected' if reason is None else f'none, {reason}'}")
    click.echo(f"report {directory.path / 'report.html'}")
    return EXIT_REGRESSION if any(outcome.values()) else EXIT_OK
