"""The report as data. JSON is the source: text, Markdown and HTML are pure functions of `Report`.

Machines read `Report.summary`; its paths are stable within a schema version. Blocks that a run did not produce are
null, and every cell that holds no figure says why.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from harness.calibration import Calibration
from harness.model import Estimate, Frozen, Reach, Status, Validation, Verdict
from harness.provenance import ConfigDifference, DataRecord, HostRecord, SourceRecord
from reports.api_diff import ApiSurface
from reports.curves import BoundaryTax, MemoryTracks
from reports.decision_model import Decision
from reports.packaging import Packaging
from reports.plans import QueryPlans
from reports.promises import PromiseFigures, PromiseRow
from reports.release_lag import ReleaseLag
from reports.upstream import UpstreamArm, UpstreamSection
from reports.usage import UsageRow

REPORT_SCHEMA_VERSION = 1
"""Version of report.json. History: 1 = first published form."""

SCHEMA_FILE = Path(__file__).parent / "schema" / f"report-v{REPORT_SCHEMA_VERSION}.json"


BLOCK_NAMES = ("generated_queries", "surface_coverage", "boundary", "scaling", "peers", "faults")
"""Blocks that other parts of the project compute; a run directory holds each as `<name>.json`."""


class Interval(Frozen):
    """A ratio with its 95 % confidence interval; below 1 is faster than the base."""

    value: float
    low: float
    high: float
    n: int = Field(description="Rounds")


class ArmSummary(Frozen):
    """One arm in figures. Counts are queries; `ok` ran without failure, the rest are narrower."""

    queries: int
    ok: int
    validated: int
    distributed: int
    geomean_vs_native: Interval | None = None
    geomean_vs_local: Interval | None = None
    reason: str | None = Field(default=None, description="Why a geometric mean is missing")


class CalibrationSummary(Frozen):
    """The instrument's own error rates, from simulated suites."""

    aa_false_flag_rate: float
    power_20pct: float
    suite_ci_half_width: float


class ConformanceCounts(Frozen):
    """Outcomes of one arm's executed checks."""

    passed: int = Field(alias="pass", serialization_alias="pass")
    partial: int = 0
    fail: int = 0
    xfail: int = 0
    crash: int = 0
    timeout: int = 0
    blocked: int = 0
    total: int
    must_pass: int
    must_total: int


class Summary(Frozen):
    """What machines read. A null block was not part of this run."""

    arms: dict[str, ArmSummary]
    calibration: CalibrationSummary | None = None
    conformance: dict[str, ConformanceCounts] | None = None
    promises: dict[str, dict[str, PromiseFigures]] | None = Field(
        default=None, description="Strategy -> promise -> what the executed checks say"
    )
    upstream_tests: dict[str, UpstreamArm] | None = None
    generated_queries: dict[str, JsonValue] | None = None
    surface_coverage: dict[str, JsonValue] | None = None
    boundary: dict[str, JsonValue] | None = None
    scaling: dict[str, JsonValue] | None = None
    peers: dict[str, JsonValue] | None = None
    faults: dict[str, JsonValue] | None = None


class ArmInfo(Frozen):
    """One arm as it was when the run started."""

    name: str
    title: str
    kind: Literal["strategy", "baseline", "aa", "external"]
    copies: str | None = None
    distributed: bool
    python: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    fingerprint: str | None = Field(default=None, description="Engine build fingerprint; null for a stock wheel")
    build: dict[str, JsonValue] = Field(default_factory=dict)
    workers_match: bool | None = Field(default=None, description="Whether every worker told the same fingerprint")
    wheel: str | None = None
    wheel_sha256: str | None = None


class QueryCell(Frozen):
    """One query on one arm. Times in milliseconds, medians over `n` rounds; `reason` is set unless it counts."""

    arm: str
    status: Status
    validation: Validation
    reach: Reach | None = None
    counts: bool = Field(description="Valid in every round, and distributed where the arm can distribute")
    reason: str | None = None
    log: str | None = None
    repro: str | None = None
    n: int = Field(description="Rounds with a valid time")
    median_ms: float | None = None
    p95_ms: float | None = None
    planning_ms: float | None = None
    execution_ms: float | None = None
    first_ms: float | None = Field(default=None, description="First execution in the run, in a fresh process")
    rows: int | None = None
    stages: int | None = None
    planned_tasks: int | None = None
    remote_tasks: int | None = None
    vs: dict[str, Verdict] = Field(default_factory=dict, description="Verdict against each base arm")


class QueryRow(Frozen):
    """One query over all arms."""

    query: str
    cells: dict[str, QueryCell]


class GapRow(Frozen):
    """A query that one arm of a comparison cannot contribute, and why."""

    query: str
    arm: str
    status: Status
    reason: str
    log: str | None = None
    repro: str | None = None


class Comparison(Frozen):
    """Two arms over the suite. Totals and factor exist only where both are valid on the same queries."""

    base: str
    new: str
    counted: int = Field(description="k of `k of N`")
    planned: int = Field(description="N of `k of N`")
    base_ms: float | None = None
    new_ms: float | None = None
    factor: float | None = Field(default=None, description="new / base of the summed medians")
    reason: str | None = Field(default=None, description="Why there is no total")
    suite: Verdict
    words: dict[str, int] = Field(default_factory=dict, description="Number of queries per verdict")
    newly_failing: list[GapRow] = Field(default_factory=list, description="Valid in base, failing in new")
    newly_excluded: list[GapRow] = Field(default_factory=list)
    newly_passing: list[str] = Field(default_factory=list)
    not_distributed: list[str] = Field(default_factory=list)


class Noise(Frozen):
    """What the A/A pair, one arm under two names, shows: margins are raised to it."""

    arm: str | None = None
    copies: str | None = None
    query_margin: float
    suite_margin: float
    worst_query: str | None = None
    flags: list[str] = Field(default_factory=list, description="Queries on which the A/A pair shows a difference")
    reason: str


class RunSettingsInfo(Frozen):
    """What the run was asked to do, in the words of the command line."""

    scale_factor: str
    query_set: str
    form: str
    rounds: int
    rounds_finished: int
    warmups: int
    workers: int
    seed: int
    interleave: str
    timeout_s: float
    cache: Literal["hot", "cold"] = Field(
        default="hot", description="`cold`: new processes and an empty page cache for every execution"
    )
    config: dict[str, str]
    queries: list[str]


class Provenance(Frozen):
    """Where the figures come from."""

    run_id: str
    status: Literal["running", "interrupted", "complete"]
    created_at: str
    finished_at: str | None = None
    stopped_because: str | None = None
    resumed_at: list[str] = Field(default_factory=list)
    command_line: list[str]
    source: SourceRecord
    host: HostRecord
    python: str
    packages: dict[str, str]
    rustc: str | None = None
    data: DataRecord
    query_set_hash: str
    schedule_hash: str
    config_differences: list[ConfigDifference]
    fingerprints_equal: bool | None = Field(
        description="Whether all arms with an engine share one build; null: none has"
    )


class MethodFact(Frozen):
    """One figure of the method, read from the code that uses it."""

    name: str
    value: str
    meaning: str


class CheckOutcome(Frozen):
    """One executed check on one arm."""

    outcome: Literal["pass", "partial", "fail", "xfail", "crash", "timeout", "blocked"]
    reason: str | None = None
    log: str | None = None
    repro: str | None = None


class CheckRow(Frozen):
    """One conformance check over the arms."""

    id: str
    area: str
    tier: Literal["must", "should", "may"]
    title: str | None = None
    rationale: str | None = None
    outcomes: dict[str, CheckOutcome]


class Headline(Frozen):
    """The verdict paragraph: sentences in reading order, each true on its own."""

    title: str
    sentences: list[str]
    caveats: list[str] = Field(default_factory=list)


class Report(Frozen):
    """Everything that a report shows. See the module docstring."""

    schema_version: Literal[1] = 1
    synthetic: bool = Field(description="Made from invented samples, for tests and documentation")
    headline: Headline
    summary: Summary
    arms: list[ArmInfo]
    queries: list[QueryRow]
    comparisons: list[Comparison]
    noise: Noise
    settings: RunSettingsInfo
    provenance: Provenance
    methods: list[MethodFact]
    calibration: Calibration | None = None
    conformance: list[CheckRow] | None = None
    promises: list[PromiseRow] | None = Field(default=None, description="What a user gets, from executed checks")
    upstream_tests: UpstreamSection | None = Field(default=None, description="datafusion-python's own suite")
    api_surface: ApiSurface | None = None
    packaging: Packaging | None = None
    release_lag: ReleaseLag | None = None
    usage: list[UsageRow] | None = Field(default=None, description="Processor time, memory and start-up per arm")
    memory: list[MemoryTracks] | None = Field(default=None, description="Memory of every process, reading by reading")
    boundary_tax: BoundaryTax | None = Field(default=None, description="Time over FFI against linked, per query")
    plans: list[QueryPlans] | None = Field(default=None, description="Physical plans, arms with the same one together")
    decision: Decision
    blocks: dict[str, JsonValue] = Field(default_factory=dict, description="Further results, shown as they are")
    absent: dict[str, str] = Field(default_factory=dict, description="Sections without content, and why")
    fills: dict[str, str] = Field(default_factory=dict, description="Commands that fill absent sections")

    def arm(self, name: str) -> ArmInfo | None:
        """The arm of that name, or None."""
        return next((arm for arm in self.arms if arm.name == name), None)

    def comparison(self, new: str, base: str) -> Comparison | None:
        """The comparison of two arms, or None when it was not made."""
        return next((entry for entry in self.comparisons if (entry.new, entry.base) == (new, base)), None)

    def failing(self) -> list[tuple[str, QueryCell]]:
        """All (query, cell) that do not count, in table order."""
        return [(row.query, cell) for row in self.queries for cell in row.cells.values() if not cell.counts]

    def to_json(self) -> str:
        """The JSON form, stable in key order and ending in a newline."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read the JSON form back; raises pydantic's ValidationError for anything else."""
        return cls.model_validate_json(text)


def interval(estimate: Estimate) -> Interval:
    """An estimate in the summary's form."""
    return Interval(value=estimate.value, low=estimate.low, high=estimate.high, n=estimate.n)


def json_schema() -> str:
    """JSON Schema of the report, as it is committed under `reports/schema/`."""
    schema = Report.model_json_schema(by_alias=True, mode="serialization")
    schema["$id"] = f"report-v{REPORT_SCHEMA_VERSION}.json"
    schema["title"] = "datafusion-strategies report"
    return json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def day(value: date | None) -> str:
    """A date as text, or `unknown`."""
    return "unknown" if value is None else value.isoformat()
