"""`df-strategies report`: show, export or publish the report of a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from reports.model import Report
    from reports.stored import Stored

FILES = {"text": "report.txt", "markdown": "report.md", "json": "report.json", "html": "report.html"}

MADE_AGAIN = ("scaling", "plot", "rebuild", "pr_comment", "junit", "exit_code", "samples", "publish")
"""Options that need the report itself, not only the file that the run wrote."""

MARKER = "<!-- datafusion-strategies -->"
"""First line of a pull-request comment: a workflow finds its own comment by it."""


@click.command(
    epilog="""\b
Examples:
  df-strategies report                             the newest run, as text
  df-strategies report 20261201-0931 --format html
  df-strategies report latest --plot               the ratios as bars in the terminal
  df-strategies report latest --rebuild            after an update of the report code
  df-strategies report latest --samples s.parquet  every execution as a table (.parquet or .csv)
  df-strategies report latest --pr-comment --junit junit.xml > comment.md
  df-strategies report latest --scaling 20261201-10 --scaling 20261201-11
                                                   runs with other numbers of workers: a curve
  df-strategies report latest --publish            write reports/published/latest.*

\b
For CI (--pr-comment, --junit, --exit-code): exit 0 ok; 1 a query newly fails, a gate failed, or, with --base, an arm
is slower than it; 3 nothing to compare. A workflow to copy: reports/ci/compare-wheel.yml.
"""
)
@click.argument("run", default="latest")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FILES)),
    default="text",
    show_default=True,
    help="text, markdown and json are printed; of html the path is.",
)
@click.option("--plot", is_flag=True, help="Print the ratios with their intervals as a plot of characters.")
@click.option("--rebuild", is_flag=True, help="Make it again from the samples.")
@click.option("--scaling", multiple=True, metavar="RUN", help="A run with another number of workers; may be repeated.")
@click.option("--pr-comment", is_flag=True, help="Print Markdown that fits into a pull-request comment.")
@click.option(
    "--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML: one case per query and check."
)
@click.option("--exit-code", is_flag=True, help="End with the exit code that a CI job should have.")
@click.option("--base", metavar="ARM", help="For the exit code: slower than this arm is a regression.")
@click.option(
    "--samples",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write every execution as a table; the name ends in .csv or .parquet.",
)
@click.option("--publish", is_flag=True, help="Write all forms and the decision record into reports/published/.")
@click.option(
    "--name", default="latest", show_default=True, metavar="NAME", help="With --publish: first part of the file names."
)
@click.option("--force", is_flag=True, help="Publish what is not fit to be published; every form says so.")
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --publish: the folder.  [default: reports/published of this checkout]",
)
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of run directories.  [default: runs]"
)
def command(run: str, **options: Any) -> int:  # fmt: skip
    """Show, export or publish a report: RUN is an id, the start of one, a path, a report.json, or `latest`."""
    from harness.errors import EXIT_OK
    from harness.settings import runs_root
    from reports.stored import load_report

    if (options["force"] or options["to"] or options["name"] != "latest") and not options["publish"]:
        msg = "--force, --to and --name belong to --publish"
        raise click.UsageError(msg)
    root = options["out"].resolve() if options["out"] else runs_root()
    if not any(options[key] for key in MADE_AGAIN) and (path := _made(run, root, FILES[options["form"]])):
        click.echo(path if options["form"] == "html" else path.read_text(encoding="utf-8"))
        return EXIT_OK
    stored = _scaling(load_report(run, root), options["scaling"], root)
    if options["samples"]:
        _samples(stored, options["samples"])
    if options["junit"]:
        from reports.junit import render_junit

        _write(options["junit"], render_junit(stored.report))
    if options["publish"]:
        _publish(stored.report, options)
    elif options["pr_comment"]:
        click.echo(comment(stored.report), nl=False)
    elif options["plot"]:
        from reports.terminal import render_plot

        click.echo(render_plot(stored.report), nl=False)
    elif not (options["junit"] or options["samples"]):
        _show(stored, options["form"])
    if options["pr_comment"] or options["junit"] or options["exit_code"]:
        return _judge(stored.report, options["base"])
    return EXIT_OK


def comment(report: Report) -> str:
    """The report as the text of a pull-request comment, at most 65 000 characters with its marker."""
    from reports.markdown import MAX_CHARACTERS, render_markdown

    return f"{MARKER}\n{render_markdown(report, limit=MAX_CHARACTERS - len(MARKER) - 1)}"


def _judge(report: Report, base: str | None) -> int:
    from reports.outcome import job_outcome

    if base is not None and report.arm(base) is None:
        msg = f"--base {base}: the run has no such arm; it has {', '.join(arm.name for arm in report.arms)}"
        raise click.UsageError(msg)
    outcome = job_outcome(report, base=base)
    for reason in outcome.reasons:
        click.echo(reason, err=True)
    return outcome.exit_code


def _publish(report: Report, options: dict[str, Any]) -> None:
    from reports.publish import publish
    from reports.stored import PUBLISHED

    written = publish(report, options["to"] or PUBLISHED, name=options["name"], force=options["force"])
    for path in written.values():
        click.echo(f"{path} {path.stat().st_size / 1e3:,.0f} kB")


def _samples(stored: Stored, path: Path) -> None:
    if stored.run is None:
        msg = "--samples: a report.json holds no samples; give the run"
        raise click.UsageError(msg)
    from harness.results import LoadedRun

    loaded = LoadedRun(stored.run)
    if path.suffix == ".parquet":
        loaded.to_parquet(path)
    elif path.suffix == ".csv":
        loaded.to_csv(path)
    else:
        msg = f"--samples {path}: the name must end in .csv or .parquet"
        raise click.UsageError(msg)
    click.echo(f"{len(loaded.samples)} samples: {path}", err=True)


def _scaling(stored: Stored, others: tuple[str, ...], root: Path) -> Stored:
    """The report with a scaling curve over its own run and others; the curve stays in the run directory."""
    from reports.collect import write_document
    from reports.curves import scaling
    from reports.stored import load_report

    if not others:
        return stored
    if stored.run is None:
        msg = "--scaling: a report.json cannot keep a curve; give the run"
        raise click.UsageError(msg)
    document = scaling([stored.report, *(load_report(other, root).report for other in others)])
    write_document(stored.folder, "scaling", document)
    return load_report(str(stored.folder), root)


def _write(path: Path, text: str) -> None:
    from harness.rundir import disk_errors, write_atomic

    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)


def _made(run: str, root: Path, name: str) -> Path | None:
    """The form that the run wrote at its end, if it did: showing it must not take as long as making it."""
    from harness.rundir import RunDirectory, find_run

    if run.endswith(".json"):
        return None
    path = RunDirectory.open(find_run(run, root)).path / name
    return path if path.is_file() else None


def _show(stored: Stored, form: str) -> None:
    from reports.build import FORMS, write_report

    if stored.run is not None:
        write_report(stored.report, stored.folder)
    elif form == "html":
        msg = "of a report.json only text, markdown and json can be shown; its HTML page lies beside it"
        raise click.UsageError(msg)
    click.echo(stored.folder / FILES[form] if form == "html" else FORMS[FILES[form]](stored.report))
