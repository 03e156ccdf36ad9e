"""`df-strategies report`: show or rebuild the report of a stored run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  df-strategies report                  the newest run, as text
  df-strategies report 20261201-0931 --format html
  df-strategies report latest --rebuild after an update of the report code
"""
)
@click.argument("run", default="latest")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json", "html"]),
    default="text",
    show_default=True,
    help="text, markdown and json are printed; of html the path is.",
)
@click.option("--rebuild", is_flag=True, help="Make it again from the samples.")
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of run directories.  [default: runs]"
)
def command(run: str, form: str, rebuild: bool, out: Path | None) -> None:  # fmt: skip
    """Show the report of a stored run: RUN is an id, the start of one, a path, or `latest`."""
    from harness.rundir import RunDirectory, find_run
    from harness.settings import runs_root

    directory = RunDirectory.open(find_run(run, out.resolve() if out else runs_root()))
    path = (
        directory.path
        / {"text": "report.txt", "markdown": "report.md", "json": "report.json", "html": "report.html"}[form]
    )
    if rebuild or not path.is_file():
        from reports.build import build_report

        build_report(directory.path)
    click.echo(path if form == "html" else path.read_text(encoding="utf-8"))
