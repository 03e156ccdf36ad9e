"""`df-strategies decide`: the decision record of a run, under the weights of a file."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli._options import folder_of_runs


@click.command(
    epilog="""\b
Examples:
  df-strategies decide                                         the newest run, weights of reports/criteria.toml
  df-strategies decide latest --print-weights > mine.toml      start a weights file of your own
  df-strategies decide latest --weights mine.toml              ... and see what it changes
  df-strategies decide reports/published/latest.json --weights mine.toml --out -

\b
A weights file holds gates, criteria with their value functions, and judged scores with their ranges. Gates are no
trade-off: a failed one takes an option out. Below 80 % of first places under drawn weights nothing is announced.
"""
)
@click.argument("run", default="latest")
@click.option("--weights", metavar="FILE", type=click.Path(path_type=Path), help="Weights file of your own (TOML).")
@click.option("--print-weights", is_flag=True, help="Print the weights file that comes with this project, and stop.")
@click.option(
    "--out",
    metavar="FILE",
    help="Where to write the record; `-` prints it.  [default: decision.md beside the report]",
)
@folder_of_runs("--runs")
def command(run: str, weights: Path | None, print_weights: bool, out: str | None, runs_folder: Path) -> None:
    """Write the decision record (MADR) that a run's evidence gives under stated weights.

    RUN is an id, the start of one, a path, a report.json, or `latest`. Where the code should live and how it should
    bind are answered apart, with how firmly each answer stands and what the evidence cannot say.
    """
    from reports.criteria import CRITERIA_FILE, load_criteria
    from reports.madr import render_madr
    from reports.stored import load_report

    if print_weights:
        click.echo(CRITERIA_FILE.read_text(encoding="utf-8"), nl=False)
        return
    criteria = load_criteria(weights) if weights else None
    stored = load_report(run, runs_folder, criteria)
    record = render_madr(stored.report)
    if out == "-":
        click.echo(record, nl=False)
        return
    from harness.rundir import disk_errors, write_atomic

    path = Path(out) if out else stored.folder / "decision.md"
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, record)
    for sentence in stored.report.decision.says:
        click.echo(sentence)
    click.echo(f"decision record {path}")
