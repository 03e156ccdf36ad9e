"""Distributed queries against worker processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame, SessionConfig, SessionContext, col, functions
from datafusion.distributed import LocalCluster, Worker, build_info, worker_status

# Every file is worth a task, however small it is.
SPLIT_EVERYTHING = {"distributed.file_scan_config_bytes_per_partition": 1}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    for part in range(4):
        values = list(range(part * 250, (part + 1) * 250))
        data = pa.table({"id": values, "key": [value % 7 for value in values]})
        pq.write_table(data, folder / f"part-{part}.parquet")
    return folder


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(2) as running:
        yield running


@pytest.fixture
def ctx(cluster, table):
    config = SessionConfig().with_distributed(cluster, options=SPLIT_EVERYTHING)
    context = SessionContext(config)
    context.register_parquet("t", str(table))
    return context


@pytest.fixture
def local(table):
    context = SessionContext()
    context.register_parquet("t", str(table))
    return context


QUERIES = [
    "SELECT key, count(*) AS n, sum(id) AS s FROM t GROUP BY key ORDER BY key",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.key = 3 ORDER BY a.id",
    "SELECT id FROM t ORDER BY id DESC LIMIT 5",
    "SELECT count(*) AS n FROM t WHERE id > (SELECT avg(id) FROM t)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_sql_gives_the_local_answer(ctx, local, query):
    assert ctx.sql(query).to_pydict() == local.sql(query).to_pydict()


def test_workers_execute_the_query(ctx, cluster):
    before = sum(status["tasks_finished"] for status in cluster.status())
    ctx.sql(QUERIES[0]).collect()
    assert sum(status["tasks_finished"] for status in cluster.status()) > before


def test_dataframe_api_and_class_identity(ctx, local):
    def query(context):
        keep = context.table("t").filter(col("id") > 10)
        return keep.aggregate([col("key")], [functions.sum(col("id")).alias("s")]).sort(col("key"))

    assert isinstance(query(ctx), DataFrame)
    assert query(ctx).to_pydict() == query(local).to_pydict()


def test_plan_shows_stages(ctx):
    plan = ctx.sql(QUERIES[0]).execution_plan()
    text = plan.display_distributed()
    assert "Stage 1" in text


def test_plan_without_distribution_prints_as_usual(local):
    plan = local.sql(QUERIES[0]).execution_plan()
    assert "AggregateExec" in plan.display_distributed()
    assert "Stage" not in plan.display_distributed()


def test_stock_session_plans_as_before(table, local):
    plain = SessionContext(SessionConfig())
    plain.register_parquet("t", str(table))
    for query in QUERIES:
        plan = plain.sql(query).execution_plan()
        assert "Distributed" not in str(plan)
        assert str(plan) == str(local.sql(query).execution_plan())


def test_callable_names_the_workers(cluster, table):
    asked = []

    def resolve():
        asked.append(True)
        return cluster.urls

    config = SessionConfig().with_distributed(resolve, options=SPLIT_EVERYTHING)
    context = SessionContext(config)
    context.register_parquet("t", str(table))
    assert context.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [1000]}
    assert asked


@pytest.mark.parametrize(
    ("workers", "options", "error", "words"),
    [
        ([], {}, ValueError, "no workers"),
        (["localhost:1"], {}, ValueError, "no scheme"),
        (["http://h:1"], {"options": {"compresion": "lz4"}}, ValueError, "compression"),
        (["http://h:1"], {"strickt": True}, TypeError, "strict"),
    ],
)
def test_mistakes_are_named(workers, options, error, words):
    with pytest.raises(error, match=words):
        SessionConfig().with_distributed(workers, **options)


def test_worker_in_this_process():
    with Worker() as worker:
        assert worker.running
        assert worker.port > 0
        [status] = worker_status(worker.url)
        assert status["build"]["fingerprint"] == build_info()["fingerprint"]
    assert not worker.running


def test_address_in_use():
    with Worker() as worker, pytest.raises(OSError, match=str(worker.port)):
        Worker(port=worker.port).start()


def test_exposed_worker_needs_protection():
    with pytest.raises(ValueError, match="insecure"):
        Worker(host="0.0.0.0").start()


def test_worker_command_announces_itself_and_stops_on_sigterm():
    command = [sys.executable, "-m", "datafusion.distributed", "worker"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        assert worker_status(ready["url"])[0]["tasks_running"] == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("listen", ["50051", "127.0.0.1:70000", "0.0.0.0:0"])
def test_worker_command_refuses_bad_addresses(listen):
    command = [sys.executable, "-m", "datafusion.distributed", "worker"]
    done = subprocess.run([*command, "--listen", listen], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
