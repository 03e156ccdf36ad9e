"""A run from beginning to end, new or resumed."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path

from harness.errors import NotComparable, UserError
from harness.provenance import Manifest, harness_packages, host_record, source_record
from harness.rundir import RunDirectory, find_run, new_run_id, now_utc, write_atomic
from harness.runner.conduct import Conductor, read_schedule
from harness.runner.preflight import Preflight, preflight, require_unchanged
from harness.runner.prepare import Prepared, prepare_run
from harness.runner.session import ArmSession
from harness.runner.stage import Stage
from harness.schedule import Schedule, make_schedule, schedule_hash
from harness.settings import RunSettings

PLANS = "plans.json"


def start_run(settings: RunSettings, *, root: Path, command_line: Sequence[str], quiet: bool = False) -> RunDirectory:
    """Carry out a new run below `root`; returns its directory once it is complete.

    Raises:
        UserError: (and subclasses) it cannot be done; what was measured so far is on disk.
        RunInterrupted: by Ctrl-C or SIGTERM.
    """
    with Stage(settings, quiet=quiet) as stage:
        prepared = prepare_run(settings, stage.progress)
        # In a throughput run one arm has the machine to itself, as in rounds that are interleaved as a whole.
        interleave = "round" if settings.streams else settings.interleave
        schedule = make_schedule(
            settings.arms, settings.queries, settings.rounds, seed=settings.seed, warmups=settings.warmups,
            interleave=interleave,
        )  # fmt: skip
        run_id = new_run_id(root)
        run = RunDirectory.stage(root, run_id)
        try:
            sessions = stage.sessions(prepared, run)
            found = _preflight(stage, prepared, sessions)
            write_atomic(run.path / PLANS, json.dumps(found.plans_json(), indent=1))
            manifest = _manifest(settings, prepared, found, schedule, command_line, run_id)
            run.publish(manifest, schedule.model_dump_json())
        except BaseException:
            run.discard()
            raise
        stage.progress.say(f"run {run.path}")
        with run.lock():
            Conductor(stage.progress, settings, run, prepared, schedule, sessions, found).conduct()
        return run


def resume_run(text: str, *, root: Path, quiet: bool = False) -> RunDirectory:
    """Go on with a run where it stopped: same schedule, same arms, nothing lost and nothing timed twice.

    Raises:
        UserError: no such run, it is complete, or another process works on it.
        NotComparable: data, queries or an arm have changed since it started.
        RunInterrupted: by Ctrl-C or SIGTERM.
    """
    run = RunDirectory.open(find_run(text, root))
    manifest = run.manifest()
    if manifest.status == "complete":
        msg = f"run {manifest.run_id} is complete; nothing is left to do. Its report: {run.path / 'report.html'}"
        raise UserError(msg)
    with run.lock(), Stage(manifest.settings, quiet=quiet) as stage:
        run.repair()
        prepared = prepare_run(manifest.settings, stage.progress)
        schedule = read_schedule(run.schedule_json(), run)
        _require_same(manifest, prepared, schedule)
        sessions = stage.sessions(prepared, run)
        found = _preflight(stage, prepared, sessions)
        require_unchanged(manifest.arms, found.records)
        resumed = [*manifest.resumed_at, now_utc()]
        run.write_manifest(manifest.model_copy(update={"status": "running", "resumed_at": resumed}))
        Conductor(stage.progress, manifest.settings, run, prepared, schedule, sessions, found).conduct()
        return run


def _preflight(stage: Stage, prepared: Prepared, sessions: dict[str, ArmSession]) -> Preflight:
    stage.progress.stage("checking the arms", len(sessions))
    return preflight(sessions, list(prepared.queries.values()), stage.progress.step)


def _require_same(manifest: Manifest, prepared: Prepared, schedule: Schedule) -> None:
    """A resumed run needs the data, the queries and the schedule that it started with."""
    pairs = {
        "the data": (manifest.data.fingerprint, prepared.data.fingerprint),
        "the queries": (manifest.query_set_hash, prepared.query_set_hash),
        "the schedule": (manifest.schedule_hash, schedule_hash(schedule)),
        "the machine": (manifest.host.host_id, host_record().host_id),
    }
    changed = [f"{what} ({before[:12]} then, {now[:12]} now)" for what, (before, now) in pairs.items() if before != now]
    if changed:
        msg = f"run {manifest.run_id} cannot go on: {', '.join(changed)} changed since it started. Start a new run."
        raise NotComparable(msg)


def _manifest(
    settings: RunSettings,
    prepared: Prepared,
    found: Preflight,
    schedule: Schedule,
    command_line: Sequence[str],
    run_id: str,
) -> Manifest:
    return Manifest(
        run_id=run_id,
        status="running",
        created_at=now_utc(),
        command_line=list(command_line),
        settings=settings,
        arms=found.records,
        source=source_record(),
        host=host_record(),
        python=platform.python_version(),
        packages=harness_packages(),
        rustc=found.rustc,
        data=prepared.data_record(),
        query_set_hash=prepared.query_set_hash,
        queries=prepared.statements(),
        schedule_hash=schedule_hash(schedule),
        config_differences=found.differences,
    )
