"""`df-strategies history`: nights, compared with the nights before them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli._options import folder_of_runs

if TYPE_CHECKING:
    from reports.history import Night

FILE = click.option(
    "--file",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The history.  [default: runs/history/history.jsonl, or $DF_STRATEGIES_HISTORY]",
)

STANDARD = ("--rounds", "10")
"""Options of a night: a default run, which takes about a quarter of an hour on two cores."""

LARGE = {"10": ("--rounds", "1", "--interleave", "round")}
"""The same for scale factors at which a verdict's rounds take too long. At SF10 a round is a warm-up pass and a timed
pass of all arms, about 25 minutes on two cores; five of them and the re-run can take four hours, which with a cold
build and SF1 is more than a job on a hosted runner may take. The clusters of all arms would not fit beside the data in
16 GB, so they take turns by round."""

OWN = ("--out", "--resume", "--streams")
"""Options of a run that a night cannot pass on: it finds its runs by their folder, and a history holds timing runs."""


@click.group(
    epilog="""\b
Examples:
  df-strategies history night --sf 1 --sf 10      run both, add, compare, write the page: what `tox -e nightly` does
  df-strategies history add latest                add a run that is there
  df-strategies history compare                   the newest night against the last comparable one
  df-strategies history page --out site           history.html and history.md
  df-strategies history prune --keep 30           remove run directories of older nights

\b
The history is one line of JSON per run, only ever added to. Nights of different machines, data, queries or settings are
never compared; hosted runners of one kind share a name: DF_STRATEGIES_MACHINE=github-ubuntu-24.04.
"""
)
def command() -> None:
    """Keep a history of runs and say what changed from one night to the next.

    A difference seen on one night is a candidate; it is an alarm when the next comparable night shows it too. A query
    that newly fails is one at once.
    """


@command.command(epilog="\b\nExamples:\n  df-strategies history add latest\n")
@click.argument("run", default="latest")
@FILE
@folder_of_runs("--runs")
def add(run: str, path: Path | None, runs_folder: Path) -> None:
    """Add a finished RUN (id, start of one, path, or `latest`)."""
    from harness.rundir import RunDirectory, find_run
    from reports.history import append, history_file, night_of

    night = night_of(RunDirectory.open(find_run(run, runs_folder)))
    append(path or history_file(), night)
    click.echo(f"added {night.run_id} to {path or history_file()}")


@command.command(epilog="\b\nExamples:\n  df-strategies history compare --run 20261201-0217\n")
@FILE
@click.option("--run", metavar="RUN", help="Judge this night instead of the newest of every scale factor.")
def compare(path: Path | None, run: str | None) -> int:
    """Say what the newest nights show.

    Exit 1: an arm is confirmed slower, or a query newly fails. Exit 3: no comparable night before.
    """
    from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION
    from reports.history import judge
    from reports.history_page import judgement_lines, newest

    nights = _nights(path)
    pairs = [(night, judge(nights, night)) for night in nights if night.run_id == run] if run else newest(nights)
    if not pairs:
        msg = f"--run {run}: the history has no such night; the newest is {nights[-1].run_id}"
        raise click.UsageError(msg)
    codes = []
    for night, found in pairs:
        click.echo(f"SF{night.scale_factor} {night.run_id}")
        for line in judgement_lines(night, found):
            click.echo(f"  {line}")
        codes.append(EXIT_REGRESSION if found.alarms() else EXIT_NOT_COMPARABLE if found.base is None else EXIT_OK)
    return EXIT_REGRESSION if EXIT_REGRESSION in codes else max(codes)


@command.command(epilog="\b\nExamples:\n  df-strategies history page --out site\n")
@FILE
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder for the page.  [default: beside the history]"
)
def page(path: Path | None, out: Path | None) -> None:
    """Write the history as history.html and history.md."""
    from reports.history import history_file
    from reports.history_page import write_pages

    for written in write_pages(_nights(path), out or (path or history_file()).parent).values():
        click.echo(written)


@command.command(epilog="\b\nExamples:\n  df-strategies history prune --keep 30\n")
@click.option("--keep", type=click.IntRange(1), required=True, help="Nights per scale factor whose runs stay.")
@FILE
@folder_of_runs("--runs")
def prune(keep: int, path: Path | None, runs_folder: Path) -> None:
    """Remove the run directories of older nights; the history keeps their figures. Other runs are left alone."""
    from reports.history import history_file, prune_runs

    removed = prune_runs(path or history_file(), runs_folder, keep)
    click.echo(f"{len(removed)} run directories removed")


@command.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  df-strategies history night
  df-strategies history night --sf 0.01 --queries 1,6 --rounds 5
  df-strategies history night --sf 10 --rounds 5             verdicts on times at SF10, in hours

\b
Rounds: 10, and 1 at SF10. One round runs every query on every arm and validates every answer, so a query that newly
fails is an alarm; verdicts on times need 5. --rounds is for all scale factors of the night.
""",
)
@click.option("--sf", "scales", multiple=True, default=("1", "10"), show_default=True, help="Scale factors in order.")
@click.option("--keep", type=click.IntRange(1), default=30, show_default=True, help="As for `prune`.")
@FILE
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
def night(scales: tuple[str, ...], keep: int, path: Path | None, run_options: tuple[str, ...]) -> int:
    """Run every scale factor, add the runs, compare them and write the page. RUN_OPTIONS go to `df-strategies run`.

    A scale factor that fails does not keep the others from running. In a GitHub workflow the page also becomes the
    summary of the job. Exit code: the worst of what happened; 0 for a first night, which nothing can be compared with.
    """
    from harness.cli import EXIT_INTERRUPTED, main
    from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK
    from harness.settings import runs_root

    _refuse(run_options)
    file = ["--file", str(path)] if path else []
    codes = []
    for scale in scales:
        click.echo(f"== night at SF{scale}", err=True)
        before = _runs(runs_root())
        code = main(["run", "--sf", scale, "--make-data", *LARGE.get(scale, STANDARD), *run_options])
        if code == EXIT_INTERRUPTED:
            return code
        codes.append(code)
        codes += [main(["history", "add", str(found), *file]) for found in sorted(_runs(runs_root()) - before)]
    judged = main(["history", "compare", *file])
    # The first night of a machine has nothing before it: that is no failure of this night.
    codes.append(EXIT_OK if judged == EXIT_NOT_COMPARABLE else judged)
    codes.append(main(["history", "page", *file]))
    codes.append(main(["history", "prune", "--keep", str(keep), *file]))
    _summarise(path)
    return max(codes)


def _refuse(run_options: tuple[str, ...]) -> None:
    given = [option for option in OWN if any(word.partition("=")[0] == option for word in run_options)]
    if given:
        msg = f"{', '.join(given)}: not for a night. Its runs go below $DF_STRATEGIES_RUNS, or runs."
        raise click.UsageError(msg)


def _runs(root: Path) -> set[Path]:
    return {manifest.parent for manifest in root.glob("*/manifest.json")}


def _summarise(path: Path | None) -> None:
    """Append the Markdown page to the summary of a GitHub job, if this is one."""
    import os

    from reports.history import history_file

    summary: Any = os.environ.get("GITHUB_STEP_SUMMARY")
    text = (path or history_file()).parent / "history.md"
    if summary and text.is_file():
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(text.read_text(encoding="utf-8"))


def _nights(path: Path | None) -> list[Night]:
    from harness.errors import UserError
    from reports.history import history_file, read

    found = read(path or history_file())
    if not found:
        msg = f"{path or history_file()} holds no night yet; add one with: df-strategies history add RUN"
        raise UserError(msg)
    return found
