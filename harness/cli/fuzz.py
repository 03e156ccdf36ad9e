"""`df-strategies fuzz`: generated queries, every answer beside that of one node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.fuzz import Finding, FuzzResult
    from harness.fuzz.rerun import Rerun

EPILOG = """\b
Examples:
  df-strategies fuzz                                          1000 queries on each strategy
  df-strategies fuzz --arm inline --queries 1000 --seed 7
  df-strategies fuzz --minutes 30 --queries 100000 --out generated_queries.json
  df-strategies fuzz --resume generated_queries.json --minutes 8   goes on with that run, into the same file
  df-strategies fuzz --corpus --arm decorator                 the cases found so far
  df-strategies fuzz --arm native --set distributed.dynamic_task_count=true

\b
The seed decides tables, settings and queries: the same seed gives the same run on any machine. Tables are tiny, but
are split over files and tasks as if they were large. What differs is shrunk to a minimal repro and shown at the end.
Exit code 1 if an arm gave a wrong answer, an error where one node answers, a crash or a hang.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--arm", "arms", multiple=True, metavar="ARM", help="Arm to test; may be repeated.  [default: all three strategies]"
)
@click.option("--queries", type=click.IntRange(1), help="Queries per arm.  [default: 1000]")
@click.option("--seed", type=int, help="Seed of everything.  [default: 1612]")
@click.option("--minutes", type=click.FloatRange(0.01), help="Begin no batch after this long.")
@click.option("--lanes", type=click.IntRange(1), help="Batches run side by side.  [default: 2]")
@click.option("--timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="Limit for one query.  [default: 30]")
@click.option("--shrinks", type=click.IntRange(0), help="Differences shrunk per arm.  [default: 15]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Fix a distributed.* option instead of sampling it."
)
@click.option(
    "--oracle", default="local", show_default=True, metavar="ARM", help="Arm that gives the expected answers."
)
@click.option(
    "--arm-file",
    "arm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file of one more arm.",
)
@click.option("--wheels", metavar="DIR", type=click.Path(path_type=Path), help="Use prebuilt wheels from DIR.")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the result as JSON, findings included.",
)
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Go on with the run of an earlier --out: same seed and arms, figures are added up.",
)
@click.option("--corpus", is_flag=True, help="Generate nothing: run the committed cases again.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Generate nothing: run this case again; may be repeated.",
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each finding as a corpus file into DIR.",
)
def command(
    arms: tuple[str, ...], queries: int | None, seed: int | None, minutes: float | None, timeout: float | None,
    lanes: int | None, shrinks: int | None, settings: tuple[str, ...], oracle: str, arm_files: tuple[Path, ...],
    wheels: Path | None, out: Path | None, resume: Path | None, corpus: bool, cases: tuple[Path, ...],
    keep: Path | None,
) -> int:  # fmt: skip
    """Run generated queries on arms and compare every answer with that of single-node DataFusion."""
    from harness.errors import EXIT_OK, EXIT_REGRESSION
    from harness.fuzz.command import Request, fuzz, read_result, rerun_corpus

    if resume is not None and arms:
        msg = "--resume goes on with the arms of its file: leave out --arm"
        raise click.UsageError(msg)
    out = out or resume
    request = Request(
        arms=arms or ("inline", "external", "decorator"), oracle=oracle, arm_files=arm_files, wheels=wheels, keep=keep,
        given={
            "queries": queries, "seed": seed, "minutes": minutes, "timeout_s": timeout, "lanes": lanes,
            "shrinks": shrinks,
        },
        overrides=settings, before=read_result(resume) if resume is not None else None,
    )  # fmt: skip
    if corpus or cases:
        right = rerun_corpus(cases, request, say=lambda text: click.echo(text, err=True), told=_told)
        return EXIT_OK if right else EXIT_REGRESSION

    def store(result: FuzzResult) -> None:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            partial = out.with_name(out.name + ".part")
            partial.write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
            partial.replace(out)

    result = fuzz(request, say=lambda text: click.echo(text, err=True), found=_show, checkpoint=store)
    store(result)
    _summary(result)
    return EXIT_OK if all(tally.run == tally.equal for tally in result.arms.values()) else EXIT_REGRESSION


def _told(done: Rerun) -> None:
    """One case of the corpus."""
    mark = "ok" if done.as_expected else "BAD"
    click.echo(f"{mark:<4} {done.arm:<10} {done.case:<36} {done.verdict.value} {done.reason}"[:240])


def _show(finding: Finding) -> None:
    """One finding, at once: a run may last for hours."""
    rate = f", in {finding.rate:.0%} of runs" if finding.rate is not None else ""
    click.echo(
        f"\n{finding.arm}: {finding.signature} (seed {finding.seed}{rate})\n  {finding.reason}\n  {finding.case.sql}",
        err=True,
    )


def _summary(result: FuzzResult) -> None:
    for name, tally in result.arms.items():
        bad = {
            "wrong": tally.mismatch, "error only distributed": tally.error_only_distributed,
            "crash": tally.crash, "timeout": tally.timeout,
        }  # fmt: skip
        said = ", ".join(f"{count} {what}" for what, count in bad.items() if count) or "none bad"
        click.echo(
            f"{name}: {tally.equal} of {tally.run} equal ({tally.distributed} ran on workers, {tally.vacuous} without "
            f"rows); {said}; {tally.unsupported} refused by one node too, {tally.unstable} without one right answer"
        )
    click.echo(
        f"seed {result.settings.seed}, {result.elapsed_s:.0f} s, {result.queries_per_s:.0f} queries/s; "
        f"{result.stopped_because}"
    )
