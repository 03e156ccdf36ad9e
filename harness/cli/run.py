"""`df-strategies run`: the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli._options import ARM_FILES

if TYPE_CHECKING:
    from harness.rundir import RunDirectory
    from harness.settings import RunSettings

EPILOG = """\b
Examples:
  df-strategies run                                      everything, SF1, 10 rounds
  df-strategies run --arms decorator --queries 1,6,18    one strategy and the baselines, three queries
  df-strategies run --sf 10 --rounds 5 --workers 4
  df-strategies run --arms inline,decorator --set distributed.compression=none
  df-strategies run --arm-file my-arm.toml --arms mine,native
  df-strategies run --cold --rounds 5                    new processes and an empty page cache each time
  df-strategies run --streams 4                          four clients at once: throughput and fairness
  df-strategies run --resume latest                      go on after Ctrl-C, a crash or a reboot

\b
How to read what it does: a round holds every query on every arm once, in a seeded order in which no arm keeps its
place, so that the drift of the machine meets all arms alike. Fewer than 5 rounds give figures but no verdicts.
Every answer is compared with DuckDB's and single-node DataFusion's, outside the timed window.
"""

WITH_RESUME = ("resume", "out", "report", "collect", "checks", "quiet")


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse `KEY=VALUE` options."""
    found = {}
    for value in values:
        key, equals, setting = value.partition("=")
        if not equals or not key.strip():
            msg = f"expected KEY=VALUE, for example datafusion.execution.batch_size=8192, got {value!r}"
            raise click.BadParameter(msg, ctx, param)
        found[key.strip()] = setting.strip()
    return found


@click.command(epilog=EPILOG)
@click.option("--arms", default="inline,external,decorator", show_default=True, help="What to compare, by name.")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Add local, single, native and the A/A arm. Without them figures have no floor and no noise to hold against.",
)
@ARM_FILES
@click.option(
    "--wheels",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Use prebuilt wheels from DIR instead of compiling; their fingerprint must match this checkout.",
)
@click.option("--sf", default="1", show_default=True, help="Scale factor of the data: 0.01, 0.1, 1 or 10.")
@click.option("--queries", default="all", show_default=True, help="For example 1,6,18 or 1-5 or all.")
@click.option(
    "--query-set",
    default="spec",
    show_default=True,
    help="spec: as the TPC-H standard has them. upstream: as the engine's own benchmarks run them.",
)
@click.option(
    "--form",
    type=click.Choice(["sql", "dataframe"]),
    default="sql",
    show_default=True,
    help="Run the queries as SQL text or as DataFrame code.",
)
@click.option("--make-data", is_flag=True, help="Make the tables of this scale factor first if they are not there.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Timed rounds.  [default: 10]")
@click.option("--warmups", type=click.IntRange(0, 100), help="Untimed executions after each start.  [default: 1]")
@click.option("--workers", type=click.IntRange(1, 64), help="Worker processes per arm.  [default: 2]")
@click.option("--seed", type=int, help="Seed of the order and of the statistics.  [default: 1612]")
@click.option(
    "--timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="Limit for one execution.  [default: 300]"
)
@click.option(
    "--interleave",
    type=click.Choice(["query", "round"]),
    default="query",
    show_default=True,
    help="query: arms take turns at every query, all clusters live. round: one cluster at a time.",
)
@click.option(
    "--set",
    "config",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_pairs,
    help="Engine option for all arms; may be repeated. distributed.* goes to distributed arms only.",
)
@click.option(
    "--recurrence/--no-recurrence",
    default=True,
    show_default=True,
    help="Run likely differences again in fresh processes before believing them.",
)
@click.option(
    "--cold",
    is_flag=True,
    help="Start every execution with new processes and with the data out of the page cache, which is measured.",
)
@click.option(
    "--streams",
    type=click.IntRange(2, 64),
    help="Throughput mode: this many clients at once per arm, 3 rounds unless --rounds says more. No TPC result.",
)
@click.option("--adaptive", is_flag=True, help="Stop as soon as every interval is narrow enough.")
@click.option(
    "--time-cap", type=click.FloatRange(0.01), metavar="MINUTES", help="Begin no round that ends beyond this."
)
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder for run directories.  [default: runs]"
)
@click.option("--resume", metavar="RUN", help="Go on with a run (id, path or `latest`); settings come from it.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write the report at the end.")
@click.option(
    "--collect/--no-collect",
    default=True,
    show_default=True,
    help="Behind the timing, read public names, packages and calibration for the report (about two minutes).",
)
@click.option(
    "--checks/--no-checks",
    default=False,
    show_default=True,
    help="Behind the timing, also run the fast conformance checks and 200 generated queries per strategy; a failed "
    "must-check or a query that answers otherwise than one node gives exit code 1.",
)
@click.option("--quiet", is_flag=True, help="No progress, results only.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:  # fmt: skip
    """Compare arms on the TPC-H queries and write one report.

    Builds what is missing, gives every arm its own environment and its own worker processes, checks that all hold
    the same engine with the same settings, and then runs a schedule that was written down before it starts. A crash,
    a hang or a wrong answer of an arm is a result; the run goes on. Ctrl-C stops cleanly; --resume goes on.
    """
    from harness.runner import resume_run, start_run
    from harness.settings import runs_root

    root = options["out"].resolve() if options["out"] else runs_root()
    if options["resume"]:
        _refuse_other_options(ctx)
        run = resume_run(options["resume"], root=root, quiet=options["quiet"])
    else:
        import sys

        settings = _settings(options)
        if options["make_data"]:
            from tpch.generate import ensure_data

            ensure_data(settings.scale_factor, progress=not options["quiet"])
        if not options["quiet"]:
            _warn_about_machine(settings)
        run = start_run(settings, root=root, command_line=["df-strategies", *sys.argv[1:]], quiet=options["quiet"])
    return _finish(run, options)


def _settings(options: dict[str, Any]) -> RunSettings:
    """The settings of a new run, names checked as far as that costs nothing."""
    from harness import settings as defaults
    from harness.arms import all_arms, load_arm, parse_names, select_arms
    from harness.errors import UserError
    from harness.schedule import DEFAULT_WARMUPS
    from harness.stats import DEFAULT_ROUNDS
    from tpch.query_sets import load_query, parse_query_selection

    names = parse_names(options["arms"])
    names += [name for path in options["arm_files"] if (name := load_arm(path).name) not in names]
    if options["baselines"]:
        names += [name for name in (*defaults.BASELINES, defaults.AA_ARM) if name not in names]
    select_arms(names, all_arms(list(options["arm_files"])))
    queries = list(parse_query_selection(options["queries"]))
    for query in queries:
        load_query(options["query_set"], query, options["sf"])
    if options["form"] == "dataframe" and options["query_set"] != "spec":
        msg = (
            f"the DataFrame queries answer as the set `spec` does; --query-set {options['query_set']} has no such form"
        )
        raise UserError(msg)
    cold, streams = options["cold"], options["streams"] or 0
    _check_mode(options)
    given = {key: options[key] for key in ("rounds", "warmups", "workers", "seed") if options[key] is not None}
    standard = {
        "rounds": defaults.DEFAULT_THROUGHPUT_ROUNDS if streams else DEFAULT_ROUNDS,
        "warmups": 0 if cold else DEFAULT_WARMUPS, "workers": defaults.DEFAULT_WORKERS,
        "seed": defaults.DEFAULT_SEED,
    }  # fmt: skip
    return defaults.RunSettings(
        **{**standard, **given},
        arms=names,
        scale_factor=options["sf"],
        queries=queries,
        query_set=options["query_set"],
        form=options["form"],
        timeout_s=options["timeout"] or defaults.DEFAULT_TIMEOUT_S,
        interleave=options["interleave"],
        config={**defaults.SESSION_DEFAULTS, **options["config"]},
        recurrence=options["recurrence"],
        adaptive=options["adaptive"],
        time_cap_s=options["time_cap"] * 60 if options["time_cap"] else None,
        cold=cold,
        streams=streams,
        arm_files=[str(path.resolve()) for path in options["arm_files"]],
        wheels=str(options["wheels"].resolve()) if options["wheels"] else None,
    )


def _check_mode(options: dict[str, Any]) -> None:
    """Cold and throughput runs leave some options without a meaning: say so instead of ignoring them."""
    if options["cold"] and options["warmups"]:
        msg = "--cold times first executions: leave out --warmups"
        raise click.UsageError(msg)
    without_meaning = ("cold", "adaptive", "time_cap")
    given = [f"--{name.replace('_', '-')}" for name in without_meaning if options["streams"] and options[name]]
    if given:
        msg = f"--streams runs every planned round with warm clients: leave out {', '.join(given)}"
        raise click.UsageError(msg)


def _refuse_other_options(ctx: click.Context) -> None:
    from click.core import ParameterSource

    given = [
        name for name in ctx.params
        if name not in WITH_RESUME and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]  # fmt: skip
    if given:
        msg = f"--resume takes all settings from the run; leave out: {', '.join(sorted(given))}"
        raise click.UsageError(msg, ctx)


def _warn_about_machine(settings: RunSettings) -> None:
    from harness.machine import look

    for finding in look(settings.scale_factor, quick=True):
        if finding.level != "ok":
            click.echo(f"{finding.level}: {finding.name}: {finding.found}. {finding.advice}", err=True)


def _finish(run: RunDirectory, options: dict[str, Any]) -> int:
    """Collect what timing does not tell, write the report, and say how it went; the exit code follows from that."""
    from harness.errors import EXIT_REGRESSION
    from harness.runner.ending import ending

    if run.manifest().settings.streams:
        return _finish_throughput(run)
    end = ending(run.samples())
    failed = _gather(run, options)
    if options["report"]:
        from reports.build import build_report

        build_report(run.path)
        text = run.path / "report.txt"
        if text.is_file():
            click.echo(text.read_text(encoding="utf-8"))
    for line in end.troubled:
        click.echo(f"  {line}", err=True)
    if failed:
        click.echo(f"checks failed: {'; '.join(failed)}", err=True)
    click.echo(end.sentence + ".")
    click.echo(f"run {run.path}")
    return EXIT_REGRESSION if failed else end.exit_code


def _gather(run: RunDirectory, options: dict[str, Any]) -> list[str]:
    """What the report has beside timings, and what failed of the checks that were asked for.

    A part that cannot be collected is a blank in the report, with its reason.
    """
    from reports.gather import CHECKS, STANDARD, gather
    from reports.outcome import failed_checks

    standard = STANDARD if options["report"] and options["collect"] else ()
    parts = (*standard, *(CHECKS if options["checks"] else ()))
    if not parts:
        return []
    outcome = gather(run, parts, quiet=options["quiet"])
    return failed_checks(run.path, [part for part, reason in outcome.items() if reason is None])


def _finish_throughput(run: RunDirectory) -> int:
    """Say what a throughput run came to."""
    import json

    from harness.errors import EXIT_OK, EXIT_REGRESSION
    from harness.runner.throughput import FIGURES, failed, render

    click.echo(render(json.loads((run.path / FIGURES).read_text(encoding="utf-8"))), nl=False)
    troubled = failed(run)
    for line in troubled:
        click.echo(f"  {line}", err=True)
    click.echo(f"run {run.path}")
    return EXIT_REGRESSION if troubled else EXIT_OK
