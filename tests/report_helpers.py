"""Makes the synthetic run that the report's tests read, through the same models that a real run is written with.

    python -m tests.report_helpers      writes tests/fixtures/run_small again

Times are a formula, not measurements. The command line starts with `synthetic`, so that every form says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path
from typing import Any

from harness.calibration import calibrate
from harness.model import Phase, ProcessUse, Reach, Sample, Status, Validation
from harness.provenance import ArmRecord, ConfigDifference, DataRecord, HostRecord, Manifest, SourceRecord
from harness.rundir import EVENTS, MANIFEST, SAMPLES
from harness.settings import RunSettings

RUN_SMALL = Path(__file__).parent / "fixtures" / "run_small"

QUERIES = ["q01", "q02", "q03", "q06", "q11", "q15", "q18", "q22"]
ROUNDS = 6
SEED = 1612
BASE_MS = {"q01": 210.0, "q02": 88.0, "q03": 140.0, "q06": 46.0, "q11": 61.0, "q15": 72.0, "q18": 430.0, "q22": 55.0}

SLOWDOWN = {"local": 0.8, "native": 1.0, "inline": 1.004, "external": 1.01, "decorator": 1.02, "aa": 1.021}
"""Time of an arm over native's."""

SPECIAL = {("decorator", "q18"): 1.30, ("aa", "q18"): 1.31, ("local", "q06"): 0.55, ("inline", "q22"): 1.09}
"""Factors of single queries that differ from the arm's."""

TROUBLE: dict[tuple[str, str], tuple[Status, str, tuple[int, ...]]] = {
    ("external", "q03"): (
        Status.WRONG,
        "values: row 3, column revenue: expected 391.10, got 391.11",
        tuple(range(ROUNDS)),
    ),
    ("external", "q15"): (Status.CRASH, "killed by signal 11 (SIGSEGV)", (4,)),
    ("native", "q22"): (Status.OK, "", ()),
}
"""(arm, query) -> status, reason and the rounds in which it happens."""

NOT_DISTRIBUTED = {("inline", "q02"), ("decorator", "q02"), ("aa", "q02"), ("native", "q02"), ("external", "q02")}
VACUOUS = {"q11"}

TITLES = {
    "local": ("stock datafusion, single node", "baseline"),
    "native": ("Rust driver on the same engine, no Python", "baseline"),
    "inline": ("built into datafusion-python", "strategy"),
    "external": ("third package that links both", "strategy"),
    "decorator": ("extension beside the stock wheel, over FFI", "strategy"),
    "aa": ("A/A (decorator)", "aa"),
}
FINGERPRINT = hashlib.sha256(b"synthetic engine").hexdigest()


def noise(*parts: object) -> float:
    """A repeatable number between -1 and 1."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**63 - 1


def elapsed_ms(arm: str, query: str, round_: int) -> float:
    """Time of one execution: base, arm's factor, a drift that all arms share, and 2 % of noise."""
    factor = SPECIAL.get((arm, query), SLOWDOWN[arm])
    drift = 1 + 0.05 * math.sin(round_)
    return round(BASE_MS[query] * factor * drift * (1 + 0.02 * noise(arm, query, round_)), 3)


def make_sample(arm: str, query: str, round_: int, sequence: int, phase: Phase = Phase.TIMED) -> Sample:
    """One execution as the runner would record it."""
    status, reason, rounds = TROUBLE.get((arm, query), (Status.OK, "", ()))
    bad = status is not Status.OK and (round_ in rounds or phase is Phase.WARMUP)
    base: dict[str, Any] = {"round": round_, "sequence": sequence, "arm": arm, "query": query, "phase": phase}
    started = 1_700_000_000.0 + sequence
    if bad and status is not Status.WRONG:
        return Sample(
            **base,
            status=status,
            reason=reason,
            started_at=started,
            log=f"logs/{arm}/child.log",
            repro=f"df-strategies run --arms {arm} --queries {query} --rounds 1",
        )
    time = elapsed_ms(arm, query, round_) * (1.8 if phase is Phase.WARMUP else 1.0)
    local = arm == "local" or (arm, query) in NOT_DISTRIBUTED
    right = Validation.VACUOUS if query in VACUOUS else Validation.VALIDATED
    answer = Validation.MISMATCH if bad else right
    reach = Reach.SINGLE_NODE if arm == "local" else Reach.NOT_DISTRIBUTED if local else Reach.DISTRIBUTED
    return Sample(
        **base,
        status=status if bad else Status.OK,
        reason=reason if bad else None,
        elapsed_ms=time,
        planning_ms=round(time * 0.06, 3),
        execution_ms=round(time * 0.94, 3),
        rows=0 if query in VACUOUS else 4,
        stages=1 if local else 3,
        planned_tasks=1 if local else 5,
        remote_tasks=None if arm == "local" else 0 if local else 4,
        reach=reach,
        validation=answer if phase is Phase.WARMUP else Validation.NOT_VALIDATED,
        oracles={"duckdb": answer, "datafusion": answer} if phase is Phase.WARMUP else {},
        started_at=started,
        processes=make_processes(arm, time, memory=phase is Phase.WARMUP),
        log=f"logs/{arm}/child.log",
        repro=f"df-strategies run --arms {arm} --queries {query} --rounds 1",
    )


PSS_MORE = {("coordinator", 0): 0, ("worker", 0): -5_000_000, ("worker", 1): 5_000_000}
"""Bytes over 90 MB of each process."""


def make_processes(arm: str, time: float, *, memory: bool) -> tuple[ProcessUse, ...]:
    """A coordinator and, unless the arm is single-node, two workers. Memory is read in warm-ups only."""
    sizes = {"rss_bytes": 120_000_000, "peak_rss_bytes": 150_000_000, "threads": 5}
    roles = [("coordinator", 0)] if arm == "local" else [("coordinator", 0), ("worker", 0), ("worker", 1)]
    return tuple(
        ProcessUse(
            role=role,  # type: ignore[arg-type]
            index=index,
            pid=1000 + index,
            cpu_ms=round(time * (1.7 if arm == "local" else 0.6), 3),
            cpu_window="query",
            **(sizes | {"pss_bytes": 90_000_000 + PSS_MORE[role, index]} if memory else {}),
        )
        for role, index in roles
    )


def make_events(arms: list[str]) -> list[dict[str, Any]]:
    """The start and the stop of every arm."""
    times = {"startup_ms": 700.0, "import_ms": 350.0, "context_ms": 20.0, "register_ms": 60.0}

    def life(kind: str, arm: str, size: int) -> dict[str, Any]:
        uses = [
            use.model_copy(update={"pss_bytes": size + PSS_MORE[use.role, use.index]})
            for use in make_processes(arm, 100.0, memory=True)
        ]
        given = [use.model_dump(exclude_none=True) for use in uses]
        return {"kind": kind, "at": "2026-01-02T03:04:05+00:00", "arm": arm, "phase": "timed", "processes": given}

    starts = [
        life("start", arm, 40_000_000) | times | {"cluster_ms": None if arm == "local" else 420.0} for arm in arms
    ]
    return [*starts, *(life("stop", arm, 95_000_000) for arm in arms)]


def make_plans(arms: list[str], queries: list[str] = QUERIES) -> dict[str, Any]:
    """Plans in the form of `plans.json`: two stages on workers, the decorator's with one task less."""
    single = "AggregateExec: mode=Single, gby=[], aggr=[count(Int64(1))]\n  DataSourceExec: [[/d/a.parquet]]"

    def staged(tasks: int) -> str:
        return f"""┌───── DistributedExec
│ SortPreservingMergeExec: [n@0 ASC]
│   [Stage 2] => NetworkCoalesceExec: output_partitions=4, input_tasks=2
└──────────────────────────────────────────────────
  ┌───── Stage 2 ── tasks=2, partitions=2
  │ AggregateExec: mode=FinalPartitioned, gby=[k@0 as k], aggr=[count(Int64(1))]
  │   [Stage 1] => NetworkShuffleExec: output_partitions=2, input_tasks={tasks}
  └──────────────────────────────────────────────────
    ┌───── Stage 1 ── tasks={tasks}, partitions=4
    │ RepartitionExec: partitioning=Hash([k@0], 4), input_partitions=2
    │   AggregateExec: mode=Partial, gby=[k@0 as k], aggr=[count(Int64(1))]
    │     DataSourceExec: file_groups={{1 group: [[/data/sf1/lineitem/part-0.parquet]]}}
    └──────────────────────────────────────────────────"""

    def plan(arm: str) -> dict[str, Any]:
        if arm == "local":
            return {"stages": None, "tasks": None, "text": single}
        tasks = 2 if arm == "decorator" else 3
        return {"stages": 2, "tasks": 2 + tasks, "text": staged(tasks)}

    return {arm: {query: plan(arm) for query in queries} for arm in arms}


def make_generated() -> dict[str, Any]:
    """Results of generated queries in the form of `generated_queries.json`, with one difference."""
    counts = {"run": 200, "equal": 200, "distributed": 190, "mismatch": 0, "vacuous": 9, "seed": SEED}
    return {
        "schema_version": 1,
        "settings": {"arms": ["inline", "external", "decorator"], "queries": 200, "seed": SEED},
        "engine": {"inline": FINGERPRINT, "external": FINGERPRINT, "decorator": hashlib.sha256(b"other").hexdigest()},
        "arms": {"inline": counts, "external": counts | {"equal": 199, "mismatch": 1}, "decorator": counts},
        "findings": [
            {
                "arm": "external",
                "verdict": "mismatch",
                "signature": "mismatch: sum over an empty group",
                "reason": "row 0, column s: expected NULL, got 0",
                "seed": f"{SEED}/3/14",
                "case": {"sql": "SELECT sum(a) AS s FROM t WHERE a < 0", "tables": [{"name": "t", "rows": [[1], [2]]}]},
            }
        ],
        "stopped_because": "all 200 queries were run",
    }


def make_samples(arms: list[str], queries: list[str] = QUERIES, rounds: int = ROUNDS) -> list[Sample]:
    """Warm-ups, timed rounds, and a re-run of one query for the recurrence."""
    steps = [(arm, query, 0, Phase.WARMUP) for query in queries for arm in arms]
    steps += [(arm, query, round_, Phase.TIMED) for round_ in range(rounds) for query in queries for arm in arms]
    again = [query for query in queries if query in ("q06", "q18", "q22")]
    steps += [(arm, query, round_, Phase.RECURRENCE) for round_ in range(rounds) for query in again for arm in arms]
    return [make_sample(arm, query, round_, number, phase) for number, (arm, query, round_, phase) in enumerate(steps)]


def make_arm(name: str) -> ArmRecord:
    """One arm of the manifest."""
    title, kind = TITLES[name]
    build = {"fingerprint": FINGERPRINT, "profile": "release", "rustc": "1.94.0", "target": "x86_64-unknown-linux-gnu"}
    engine = name != "local"
    return ArmRecord(
        name=name,
        title=title,
        kind=kind,  # type: ignore[arg-type]
        copies="decorator" if kind == "aa" else None,
        distributed=engine,
        definition={},
        python=None if name == "native" else "3.11.7",
        versions={} if name == "native" else {"datafusion": "55.0.0", "pyarrow": "26.0.1"},
        build=build if engine else {},
        worker_build=[build, build] if engine else [],
        wheel=f"{name}-0.1.0-cp310-abi3-linux_x86_64.whl" if kind == "strategy" else None,
        wheel_sha256=hashlib.sha256(name.encode()).hexdigest() if kind == "strategy" else None,
        config={"datafusion.execution.target_partitions": "2"},
    )


def make_manifest(arms: list[str], queries: list[str] = QUERIES, rounds: int = ROUNDS) -> Manifest:
    """The manifest of the synthetic run."""
    return Manifest(
        run_id="synthetic-small",
        status="complete",
        created_at="2026-01-02T03:04:05+00:00",
        finished_at="2026-01-02T03:24:05+00:00",
        command_line=["synthetic", "run", "--sf", "1"],
        settings=RunSettings(
            arms=arms,
            scale_factor="1",
            queries=queries,
            query_set="spec",
            form="sql",
            rounds=rounds,
            warmups=1,
            workers=2,
            seed=SEED,
            timeout_s=300,
            interleave="query",
            config={"datafusion.execution.target_partitions": "2"},
        ),
        arms={name: make_arm(name) for name in arms},
        source=SourceRecord(git_sha="0" * 40, dirty=False, harness_version="0.1.0"),
        host=HostRecord(
            cpu_model="Invented CPU",
            cores=2,
            governor=None,
            temperature_c=None,
            load_1m=0.1,
            memory_bytes=8 * 2**30,
            swap_bytes=0,
            kernel="6.1",
            system="Linux x86_64",
            libc="glibc 2.36",
            host_id="synthetic000",
        ),
        python="3.11.7",
        packages={"datafusion": "55.0.0", "pyarrow": "26.0.1"},
        rustc="1.94.0",
        data=DataRecord(
            scale_factor="1",
            fingerprint=hashlib.sha256(b"data").hexdigest(),
            rows={"lineitem": 6001215},
            files={"lineitem": 3},
            bytes=345_000_000,
        ),
        query_set_hash=hashlib.sha256(b"spec").hexdigest(),
        queries={query: [f"select '{query}'"] for query in queries},
        schedule_hash=hashlib.sha256(b"schedule").hexdigest(),
        config_differences=[
            ConfigDifference(
                key="datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
                values={"local": "true", "inline": "false"},
                reasons={"local": "the distributed planner turns this off; stock keeps its default"},
            )
        ],
    )


def make_api_surface() -> dict[str, Any]:
    """Small dumps in the form that `reports/api_surface.py` prints."""

    def callable_(*parameters: str, doc: bool = True) -> dict[str, Any]:
        listed = [
            {"name": name, "kind": "positional_or_keyword", "default": None, "annotation": "str"} for name in parameters
        ]
        return {"kind": "callable", "parameters": listed, "doc": doc}

    def package(version: str, names: dict[str, Any]) -> dict[str, Any]:
        return {"version": version, "error": None, "modules": [], "failed_modules": {}, "names": names}

    stock = {
        "datafusion.SessionContext": {"kind": "class", "parameters": None, "doc": True},
        "datafusion.SessionContext.sql": callable_("query"),
        "datafusion.SessionConfig.set": callable_("key", "value"),
        "datafusion.col": {"kind": "alias", "of": "datafusion.col", "parameters": None, "doc": True},
    }
    inline = {
        **stock,
        "datafusion.SessionConfig.with_distributed": callable_("workers"),
        "datafusion.distributed.Worker": callable_(),
    }
    external = {path.replace("datafusion.", "datafusion_external.", 1): entry for path, entry in stock.items()}
    external["datafusion_external.SessionContext.sql"] = callable_("query", "strict")
    external["datafusion_external.DistributedSessionContext"] = callable_("workers", doc=False)
    own = {"datafusion_decorator.distributed": callable_("ctx", "workers"), "datafusion_decorator.Worker": callable_()}
    dumps = {
        "local": {"datafusion": package("55.0.0", stock)},
        "inline": {"datafusion": package("55.0.0+distributed", inline)},
        "external": {"datafusion_external": package("0.1.0", external)},
        "decorator": {"datafusion": package("55.0.0", stock), "datafusion_decorator": package("0.1.0", own)},
    }
    return {"dumps": {arm: {"dump_version": 1, "python": "3.11.7", "packages": found} for arm, found in dumps.items()}}


def make_packaging() -> dict[str, Any]:
    """Measurements in the form of `packaging.json`."""

    def arm(packages: list[str], libraries: dict[str, int], import_ms: float, wheel: int) -> dict[str, Any]:
        one = {"import_ms": import_ms, "rss_before_kb": 12_000, "rss_after_kb": 12_000 + int(import_ms * 300)}
        imports = [{**one, "threads": 3, "import_ms": import_ms + extra} for extra in (90.0, 0.0, 2.0)]
        distributions = [
            {
                "name": name,
                "version": "1",
                "installed_bytes": size,
                "native": [{"name": f"_{name}.so", "bytes": size, "holds_datafusion": True}],
            }
            for name, size in libraries.items()
        ]
        return {
            "packages": packages,
            "imports": imports,
            "distributions": distributions,
            "wheel": {"name": "w.whl", "bytes": wheel},
        }

    return {
        "schema_version": 1,
        "arms": {
            "local": arm(["datafusion"], {"datafusion": 126_000_000}, 300.0, 43_000_000),
            "inline": arm(["datafusion"], {"datafusion": 160_000_000}, 330.0, 55_000_000),
            "external": arm(["datafusion_external"], {"datafusion_external": 162_000_000}, 340.0, 56_000_000),
            "decorator": arm(
                ["datafusion", "datafusion_decorator"],
                {"datafusion": 126_000_000, "datafusion_decorator": 118_000_000},
                520.0,
                41_000_000,
            ),
        },
    }


def make_conformance() -> dict[str, Any]:
    """A few checks with every kind of outcome."""
    passes = {"local": "pass", "inline": "pass", "external": "pass", "decorator": "pass"}
    checks = [
        ("sources.parquet_file", "21 Sources", "must", passes),
        ("sources.avro", "21 Sources", "should", passes | {"decorator": "xfail"}),
        ("writes.copy_to", "23 Writes", "must", passes | {"decorator": "partial"}),
        ("udf.window_by_value", "25 Python functions", "should", passes | {"inline": "xfail", "external": "fail"}),
        ("workers.in_process", "18 In-process path", "should", passes | {"local": "blocked"}),
        ("stores.s3", "22 Object stores", "should", dict.fromkeys(passes, "blocked")),
    ]
    reasons = {
        ("decorator", "xfail"): "inherent: the wire form of a plan knows no Avro [AvroFormat]",
        ("inline", "xfail"): "unfinished: frames are not handed over [row 3 differs]",
        ("decorator", "partial"): "COPY to CSV is written by the host",
        ("external", "fail"): "UDF not found",
        ("local", "blocked"): "does not apply to `local`: it is for distributed",
    }
    return {
        "checks": [
            {
                "id": id_,
                "area": area,
                "tier": tier,
                "title": f"{area.partition(' ')[2]}: {id_}",
                "outcomes": {
                    arm: {
                        "outcome": kind,
                        "reason": None if kind == "pass" else reasons.get((arm, kind), "no S3 server can be started"),
                    }
                    for arm, kind in outcomes.items()
                },
            }
            for id_, area, tier, outcomes in checks
        ]
    }


def make_upstream() -> dict[str, Any]:
    """Results of upstream's suite in the form of `upstream_tests.json`, made by the code that writes it."""
    from harness.conformance.upstream.model import (
        Cell,
        CheckoutRecord,
        SuiteRow,
        Summary,
        UpstreamCounts,
        UpstreamFile,
    )

    def test(name: str, stock: str, **arms: Cell) -> SuiteRow:
        same = Cell(same=True, outcome=stock, remote_tasks=3 if stock == "passed" else 0)  # type: ignore[arg-type]
        cells = {arm: arms.get(arm, same) for arm in ("inline", "external", "decorator")}
        return SuiteRow(test=f"tests/test_context.py::{name}", stock=stock, arms=cells)  # type: ignore[arg-type]

    inherent = Cell(
        same=False, outcome="failed", reason="Exception: AvroFormat", explained="inherent: the wire form knows no Avro"
    )
    rows = [
        test("test_select", "passed"),
        test("test_avro", "passed", decorator=inherent),
        test("test_panics", "passed", external=Cell(same=False, outcome="crash", reason="killed by SIGSEGV")),
        test("test_needs_network", "skipped"),
    ]
    counts = {
        "stock_passed": 3, "kept": 3, "differs": 0, "inherent": 0, "unfinished": 0, "unexplained": 0, "remote": 3,
        "contexts": 4,
    }  # fmt: skip
    figures = {
        "inline": counts,
        "external": counts | {"kept": 2, "differs": 1, "unexplained": 1, "remote": 2},
        "decorator": counts | {"kept": 2, "differs": 1, "inherent": 1, "remote": 2},
    }
    made = UpstreamFile(
        checkout=CheckoutRecord(commit="0123456789abcdef0123456789abcdef01234567", changed=False, datafusion="55.0.0"),
        collected=4,
        stock={"passed": 3, "skipped": 1},
        summary=Summary(upstream_tests={arm: UpstreamCounts(**given) for arm, given in figures.items()}),
        tests=rows,
        problems=["tests/test_context.py::test_panics on external: crash, on stock passed: killed by SIGSEGV"],
    )
    return made.model_dump(mode="json")


def write_run(
    folder: Path,
    samples: list[Sample],
    manifest: Manifest,
    extras: dict[str, Any] | None = None,
) -> Path:
    """Write a run directory as the runner would leave it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (folder / SAMPLES).write_text(
        "".join(sample.model_dump_json(exclude_defaults=True) + "\n" for sample in samples), encoding="utf-8"
    )
    (folder / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in make_events(list(manifest.arms))))
    for name, value in (extras or {}).items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return folder


def write_small(folder: Path = RUN_SMALL) -> Path:
    """Write the synthetic run that is committed under tests/fixtures."""
    arms = list(TITLES)
    extras = {
        "api_surface": make_api_surface(),
        "packaging": make_packaging(),
        "conformance": make_conformance(),
        "generated_queries": make_generated(),
        "upstream_tests": make_upstream(),
        "plans": make_plans(arms),
        "calibration": calibrate(suites=20, resamples=1000).model_dump(mode="json"),
    }
    if folder.exists():
        shutil.rmtree(folder)
    return write_run(folder, make_samples(arms), make_manifest(arms), extras)


if __name__ == "__main__":
    write_small()
