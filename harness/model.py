"""The vocabulary that crosses layers: closed enums and frozen records, no behaviour beyond validation.

Everything that is written to a run directory or read by a report is one of these models. This module imports
nothing of the project; every other module may import it.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 2
"""Version of everything a run directory holds; `harness.migrations` reads the older ones. History: 1 = first published
form; 2 = samples say what each process used and what the page cache held, settings know cold and throughput runs."""


class Frozen(BaseModel):
    """Base of all records: immutable, and a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Status(str, Enum):
    """What became of one execution. Closed: never encoded as 0 or null."""

    OK = "ok"
    """Ran to the end, answer validated or not (see `Validation`)."""
    WRONG = "wrong"
    """Ran to the end, answer differs from an oracle."""
    ERROR = "error"
    """Raised an exception."""
    TIMEOUT = "timeout"
    """Did not answer in the time allowed."""
    CRASH = "crash"
    """The process died by a signal or exited unasked."""
    OOM = "oom"
    """The process ran out of memory (limit or kernel)."""
    UNSUPPORTED = "unsupported"
    """Declared by the arm as impossible, with a reason."""
    NOT_RUN = "not_run"
    """Never started, with a reason."""


class Validation(str, Enum):
    """What is known about an answer. Never defaults to `VALIDATED`."""

    VALIDATED = "validated"
    MISMATCH = "mismatch"
    VACUOUS = "vacuous"
    """The expected answer is empty, so equality proves nothing."""
    NOT_VALIDATED = "not_validated"


class Reach(str, Enum):
    """Where one execution ran, as counted by the workers themselves."""

    DISTRIBUTED = "distributed"
    """At least one task ran in a worker process."""
    NOT_DISTRIBUTED = "not_distributed"
    """The arm can distribute, but no worker saw a task of this execution."""
    SINGLE_NODE = "single_node"
    """The arm is a single-node baseline."""


class Phase(str, Enum):
    """Which part of the schedule a sample belongs to."""

    WARMUP = "warmup"
    TIMED = "timed"
    RECURRENCE = "recurrence"


Form = Literal["sql", "dataframe"]

Role = Literal["coordinator", "worker"]

Cache = Literal["hot", "cold", "lukewarm"]
"""Of the data files, right before an execution: `cold` had at most `harness.runner.cold.COLD_SHARE` of them in the page
cache, `lukewarm` more although they were dropped, `hot` was warmed up or not looked at."""


class ProcessUse(Frozen):
    """What one process of an arm used. Null where it was not read: memory is read in warm-ups only, never near a time.

    CPU time is that of all threads, user and system. Memory comes from `smaps_rollup` (proportional: shared pages are
    divided among the processes that map them, those of other arms too) and from `VmHWM`, which is reset before each
    reading, because otherwise it remembers every earlier query.
    """

    role: Role
    index: int = Field(default=0, ge=0, description="Worker 0, 1, ...; 0 for the coordinator")
    pid: int
    cpu_ms: float | None = Field(default=None, description="In a sample: while the query ran. In events: since start")
    cpu_window: Literal["query", "request", "life"] | None = Field(
        default=None, description="`query`: the timed window; `request`: also writing the answer and asking workers"
    )
    pss_bytes: int | None = Field(default=None, description="Proportional memory after the execution")
    anon_bytes: int | None = Field(default=None, description="Part of it that no file backs: shared with nobody")
    rss_bytes: int | None = Field(default=None, description="Resident memory after the execution")
    peak_rss_bytes: int | None = Field(default=None, description="Highest resident memory during the execution")
    threads: int | None = None
    tasks: int | None = Field(default=None, description="Workers only: tasks counted by the worker itself")
    bytes_out: int | None = Field(default=None, description="Workers only: bytes of its answers, after compression")
    streams: int | None = Field(default=None, description="Workers only: outputs of tasks that were asked for")


class Sample(Frozen):
    """One execution of one query by one arm. Times in milliseconds, sizes in bytes."""

    round: int = Field(ge=0)
    sequence: int = Field(ge=0, description="Position of the execution in the schedule")
    arm: str
    query: str = Field(description="For example `q01`")
    form: Form = "sql"
    phase: Phase
    status: Status
    reason: str | None = Field(default=None, description="First line of the error or why it did not run")
    elapsed_ms: float | None = Field(default=None, description="From the call that parses to the last batch")
    planning_ms: float | None = None
    execution_ms: float | None = None
    rows: int | None = None
    batches: int | None = Field(default=None, description="Record batches that the rows came in")
    stages: int | None = Field(default=None, description="Stages of the plan")
    planned_tasks: int | None = Field(default=None, description="Tasks over all stages of the plan")
    remote_tasks: int | None = Field(default=None, description="Tasks that workers counted during this execution")
    reach: Reach | None = None
    validation: Validation = Validation.NOT_VALIDATED
    oracles: dict[str, Validation] = Field(default_factory=dict)
    started_at: float | None = Field(default=None, description="Unix time, seconds")
    cache: Cache = "hot"
    residency: float | None = Field(
        default=None, ge=0, le=1, description="Share of the data files in the page cache right before; null: not read"
    )
    processes: tuple[ProcessUse, ...] = Field(default=(), description="What each process of the arm used")
    log: str | None = Field(default=None, description="Path of the log, relative to the run directory")
    repro: str | None = Field(default=None, description="Command that repeats this one execution")


class Estimate(Frozen):
    """A point estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int


class VerdictKind(str, Enum):
    """What may be said about two arms on one query or on the suite."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not_comparable"


class Tier(str, Enum):
    """How sure a `faster`/`slower` is."""

    LIKELY = "likely"
    CONFIRMED = "confirmed"
    SINGLE_RUN = "single_run"
    """As far off as `confirmed`, between a single node and a cluster: such a difference is not run again."""


class Verdict(Frozen):
    """A verdict with the numbers that led to it. `ratio` is new/base of elapsed time: below 1 is faster."""

    kind: VerdictKind
    tier: Tier | None = None
    ratio: Estimate | None = None
    margin: float | None = Field(default=None, description="Relative margin used, e.g. 0.05")
    recurred: bool | None = Field(default=None, description="Whether an independent re-run agreed; null if none ran")
    reason: str | None = None
