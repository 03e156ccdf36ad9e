"""What a run of generated queries was asked to do and what came out: frozen, and written as JSON."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from harness.fuzz.options import Options
from harness.fuzz.tables import DataTable
from harness.model import SCHEMA_VERSION, Frozen

DEFAULT_QUERIES = 1000
"""Queries per arm: about five minutes, and enough to meet every rule of the grammar many times."""

DEFAULT_BATCH = 40
"""Queries per set of tables: making and registering tables then costs a few percent of the time."""

DEFAULT_LANES = 2
"""Batches side by side. A query waits for other processes most of its time, so that one lane keeps no core busy."""

DEFAULT_TIMEOUT_S = 30.0
"""Seconds for one query. They take milliseconds; what takes a thousand times that hangs."""

DEFAULT_SHRINKS = 15
"""Differences that are shrunk per arm. A shrink costs as much as some hundred queries, and kinds repeat."""


class Verdict(str, Enum):
    """What became of one generated query on one arm, beside the single-node answer."""

    EQUAL = "equal"
    MISMATCH = "mismatch"
    """Both answered, with different answers."""
    ERROR_ONLY_DISTRIBUTED = "error_only_distributed"
    """One node answered, the arm raised an error."""
    ERROR_ONLY_LOCAL = "error_only_local"
    """The arm answered what one node refuses. Not counted as run: there is nothing to compare with."""
    UNSUPPORTED = "unsupported"
    """Both raised an error."""
    UNSTABLE = "unstable"
    """One node alone gives different answers under different plans, so the query proves nothing."""
    CRASH = "crash"
    TIMEOUT = "timeout"


BAD = (Verdict.MISMATCH, Verdict.ERROR_ONLY_DISTRIBUTED, Verdict.CRASH, Verdict.TIMEOUT)
"""Verdicts that are faults of the arm."""


class FuzzSettings(Frozen):
    """One run."""

    arms: tuple[str, ...]
    queries: int = Field(default=DEFAULT_QUERIES, ge=1, description="Queries per arm")
    seed: int
    batch: int = Field(default=DEFAULT_BATCH, ge=1, description="Queries per set of tables and options")
    lanes: int = Field(default=DEFAULT_LANES, ge=1, description="Batches run side by side, each with its own processes")
    minutes: float | None = Field(default=None, gt=0, description="Begin no batch after this long")
    timeout_s: float = Field(default=DEFAULT_TIMEOUT_S, gt=0)
    shrinks: int = Field(default=DEFAULT_SHRINKS, ge=0, description="Differences shrunk per arm; the rest is counted")
    distributed_config: dict[str, str] = Field(default_factory=dict, description="Override sampled options")


class Case(Frozen):
    """Everything that one comparison needs: tables, settings and the query."""

    sql: str
    tables: tuple[DataTable, ...]
    options: Options


class Finding(Frozen):
    """One difference, as small as the shrinker got it."""

    arm: str
    verdict: Verdict
    signature: str = Field(description="Groups findings that look alike")
    reason: str
    seed: str = Field(description="`seed/batch/index`: what the generator made the query from")
    case: Case
    original_sql: str
    shrunk: bool
    rate: float | None = Field(default=None, description="Share of repetitions of the shrunk case that differ")


class ArmTally(Frozen):
    """Counts of one arm. `run` = equal + mismatch + error_only_distributed + crash + timeout."""

    run: int = 0
    equal: int = 0
    distributed: int = Field(default=0, description="Of `run`, those in which at least one worker task ran")
    vacuous: int = Field(default=0, description="Of `equal`, those with an empty answer")
    unsupported: int = 0
    mismatch: int = 0
    error_only_distributed: int = 0
    error_only_local: int = 0
    crash: int = 0
    timeout: int = 0
    unstable: int = 0
    seed: int

    def with_one(self, verdict: Verdict, *, distributed: bool, vacuous: bool) -> ArmTally:
        """The tally with one more query."""
        update = {verdict.value: getattr(self, verdict.value) + 1}
        if verdict is Verdict.EQUAL or verdict in BAD:
            update["run"] = self.run + 1
            update["distributed"] = self.distributed + distributed
            update["vacuous"] = self.vacuous + (vacuous and verdict is Verdict.EQUAL)
        return self.model_copy(update=update)


class FuzzResult(Frozen):
    """The file `generated_queries.json`."""

    schema_version: int = SCHEMA_VERSION
    settings: FuzzSettings
    engine: dict[str, str] = Field(default_factory=dict, description="Engine fingerprint per arm")
    arms: dict[str, ArmTally]
    findings: tuple[Finding, ...] = ()
    batches: int = Field(default=0, description="Batches that were run; a resumed run begins with this number")
    elapsed_s: float
    queries_per_s: float = Field(description="Comparisons per second over all arms, shrinking left out")
    stopped_because: str
