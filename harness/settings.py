"""Every default of a run as a named constant that says where its figure comes from, and the record of one run.

Nothing here reads the machine: two hosts with the same command line get the same settings.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from harness.model import Form, Frozen
from harness.schedule import Interleave

DEFAULT_WORKERS = 2
"""Worker processes per cluster: the smallest number at which every shuffle crosses a process boundary, and what a
hosted runner with 2 cores can feed."""

DEFAULT_TARGET_PARTITIONS = 2
"""Partitions per session. Fixed rather than "one per core", so that plans are the same on every machine; 2 because
the smallest machines this runs on have 2 cores, and single-node arms get the same figure as distributed ones."""

DEFAULT_BATCH_SIZE = 8192
"""Rows per batch: DataFusion's own default, written out so that an arm that changes it shows in the config diff."""

SESSION_DEFAULTS: dict[str, str] = {
    "datafusion.execution.target_partitions": str(DEFAULT_TARGET_PARTITIONS),
    "datafusion.execution.batch_size": str(DEFAULT_BATCH_SIZE),
    "datafusion.catalog.information_schema": "true",
}
"""Session options that every arm gets, the single-node ones too. `information_schema` is what makes the effective
configuration readable (`df_settings`), which the comparison of arms relies on."""

DEFAULT_TIMEOUT_S = 300.0
"""Seconds for one execution. The slowest SF10 query took below 20 s on 2 cores; what takes 15 times that hangs."""

CHILD_START_TIMEOUT_S = 120.0
"""Seconds until a fresh interpreter has imported the arm and answered. Importing takes under a second; the rest
is room for a cold page cache under a 200 MB library."""

OPEN_TIMEOUT_S = 120.0
"""Seconds to make a session and register eight tables (schema inference reads the footers)."""

WORKER_READY_TIMEOUT_S = 60.0
"""Seconds until a worker prints its ready line; an arm file may set its own."""

WORKER_STOP_TIMEOUT_S = 10.0
"""Seconds between SIGTERM and SIGKILL: workers drain within 10 s by their own contract."""

CHILD_STOP_TIMEOUT_S = 5.0
"""Seconds for an arm process to leave after `close` before it is killed."""

STDERR_TAIL_LINES = 15
"""Lines of a dead process' log that are quoted in the message about it."""

DEFAULT_THROUGHPUT_ROUNDS = 3
"""Rounds of a throughput run: enough to see how far they lie apart; it makes no verdicts."""

DEFAULT_SEED = 1612
"""Any fixed number would do; this one is the upstream issue that asks the question."""

BASELINES = ("local", "single", "native")
"""Arms of every run: stock on a single node, which users know; the engine without Python on a single node, which says
what distribution costs and what the build does; and the engine without Python on workers, the floor of bindings."""

AA_ARM = "aa"
"""One strategy a second time: what differs between it and its original is noise."""


CACHE_VARIABLE = "DF_STRATEGIES_CACHE"


def cache_root() -> Path:
    """Folder for what may be made again at any time: compiled code, wheels, virtual environments. Not created here.

    `DF_STRATEGIES_CACHE` names it; otherwise it is `datafusion-strategies` below `XDG_CACHE_HOME`, or below `~/.cache`.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser().resolve()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of XDG_CACHE_HOME says that a relative path is to be ignored.
    return (base if base.is_absolute() else Path.home() / ".cache").resolve() / "datafusion-strategies"


def runs_root() -> Path:
    """Folder that holds the run directories: `runs` below the current folder, or `DF_STRATEGIES_RUNS`."""
    return Path(os.environ.get("DF_STRATEGIES_RUNS", "runs")).resolve()


class RunSettings(Frozen):
    """What one run was asked to do. Written to the manifest; `--resume` takes it from there and nowhere else."""

    arms: list[str]
    scale_factor: str = Field(description="As written by the user, e.g. `0.01`")
    queries: list[str]
    query_set: str
    form: Form
    rounds: int = Field(ge=1)
    warmups: int = Field(ge=0)
    workers: int = Field(ge=1, description="Worker processes per distributed arm")
    seed: int
    timeout_s: float = Field(gt=0, description="Seconds allowed per execution")
    interleave: Interleave = Field(description="Unit that is interleaved across arms")
    config: dict[str, str] = Field(description="Session options of every arm, `SESSION_DEFAULTS` included")
    recurrence: bool = Field(default=True, description="Re-run queries flagged `likely` in fresh processes")
    adaptive: bool = Field(default=False, description="Stop when every interval is narrow enough")
    time_cap_s: float | None = Field(default=None, gt=0, description="Begin no round that would end beyond this")
    cold: bool = Field(default=False, description="New processes and an empty page cache before every execution")
    streams: int = Field(default=0, ge=0, description="Concurrent streams of a throughput run; 0 for a timing run")
    arm_files: list[str] = Field(default_factory=list)
    wheels: str | None = None
