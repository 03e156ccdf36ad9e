"""The wheels as a user gets them: what is in them, and how the Python of each behaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from harness.build.paths import OWN_PACKAGES, STRATEGIES
from strategy_helpers import Strategy

UPSTREAM_WHEELS = ("inline", "external")


def names(built: dict[str, Path], name: str) -> list[str]:
    with zipfile.ZipFile(built[name]) as wheel:
        return wheel.namelist()


@pytest.mark.parametrize("name", STRATEGIES)
def test_wheel_is_typed_and_says_what_it_was_built_from(built: dict[str, Path], name: str) -> None:
    top = OWN_PACKAGES[name].partition("/")[0]
    content = names(built, name)
    assert f"{top}/py.typed" in content
    assert f"{OWN_PACKAGES[name]}/_build.json" in content
    assert f"{OWN_PACKAGES[name]}/_native.pyi" in content
    assert any(file.endswith("licenses/NOTICE") for file in content)
    assert sum(file.endswith(".abi3.so") for file in content) == 1
    assert "-cp310-abi3-" in built[name].name


@pytest.mark.parametrize("name", UPSTREAM_WHEELS)
def test_wheels_with_upstream_code_carry_its_licence(built: dict[str, Path], name: str) -> None:
    with zipfile.ZipFile(built[name]) as wheel:
        [licence] = [file for file in wheel.namelist() if file.endswith("LICENSE.txt")]
        assert b"Apache License" in wheel.read(licence)


def test_record_in_the_wheel_is_what_the_binary_says(strategy: Strategy, built: dict[str, Path]) -> None:
    """Python and Rust compute the hashes on their own; they must agree."""
    with zipfile.ZipFile(built[strategy.name]) as wheel:
        record = json.loads(wheel.read(f"{OWN_PACKAGES[strategy.name]}/_build.json"))
    told = strategy.run("answer(factory.build_info())")
    assert {field: record[field] for field in ("source_hash", "lock_hash")} == {
        field: told[field] for field in ("source_hash", "lock_hash")
    }


def test_local_cluster_runs_a_query_and_leaves_nothing(strategy: Strategy, split_table: Path) -> None:
    code = f"""
    own = importlib.import_module(package)
    with own.LocalCluster(2) as cluster:
        pids, size = cluster.pids, len(cluster)
        ctx = make_context({{"distributed.file_scan_config_bytes_per_partition": "1"}}, cluster.urls)
        ctx.register_parquet("t", {str(split_table)!r})
        frame = ctx.sql("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k")
        info = plan_info(frame)
        got = frame.to_pydict()
        ran = sum(status["tasks_started"] for status in cluster.status())
        again = [cluster is cluster.__enter__(), list(cluster) == cluster.urls]
    answer([size, pids, got, info["distributed"], info["stages"], info["text"], ran, again, cluster.urls])
    """
    size, pids, got, spread, stages, text, ran, again, urls = strategy.run(code)
    assert (size, spread, again, urls) == (2, True, [True, True], [])
    assert got == {"k": list(range(10)), "n": [100] * 10}
    assert stages >= 2
    assert "Stage 1" in text
    assert ran > 0
    assert not any(alive(pid) for pid in pids)


def test_cluster_does_not_outlive_its_process(strategy: Strategy) -> None:
    """Not even when that is killed and cannot clean up."""
    code = f"""
import importlib, sys, time
cluster = importlib.import_module({strategy.package!r}).LocalCluster(2).start()
print(*cluster.pids, flush=True)
time.sleep(300)
"""
    process = subprocess.Popen([str(strategy.python), "-I", "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 15
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in pids)


def test_cluster_that_cannot_start_quotes_the_worker(strategy: Strategy) -> None:
    code = """
    own = importlib.import_module(package)
    try:
        own.LocalCluster(2, init="no_such_module:f").start()
    except RuntimeError as error:
        answer(str(error))
    """
    message = strategy.run(code)
    assert "exit code 2" in message
    assert "no_such_module" in message


def test_worker_object_lives_through_its_states(strategy: Strategy) -> None:
    code = """
    import asyncio
    own = importlib.import_module(package)
    worker = own.Worker()
    seen = [worker.running, worker.wait(0)]
    with worker as same:
        seen += [same is worker, worker.running, worker.port > 0, worker.wait(0.05)]
        seen += [own.worker_status(worker.url)[0]["pid"] == os.getpid(), worker.status()["tasks_started"]]
        try:
            own.Worker(port=worker.port).start()
        except OSError as error:
            seen.append(str(worker.port) in str(error))
    worker.stop()
    async def session():
        async with own.Worker() as other:
            waiting = asyncio.create_task(other.wait_async())
            await asyncio.sleep(0.05)
            running = other.running
            await other.stop_async()
            await asyncio.wait_for(waiting, 10)
            return [running, other.running]
    answer(seen + [worker.running] + asyncio.run(session()))
    """
    expected = [False, True, True, True, True, False, True, 0, True, False, True, False]
    assert strategy.run(code) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("port=70000", "ValueError: port must be from 0 to 65535"),
        ("tls_cert=__file__", "NameError"),
        ("tls_key='/nowhere'", "ValueError: tls_key: cannot read '/nowhere'"),
        ("init='json'", "ValueError: init must be MODULE:FUNCTION"),
        ("init='json:nothing'", "ValueError: init 'json:nothing': module 'json' has no function"),
        ("insecure='yes'", "TypeError: insecure must be True or False"),
        ("tokn='x'", "TypeError: unknown worker option 'tokn'"),
        ("memory_limit=0", "ValueError: memory_limit must be a positive number of bytes"),
        ("drain_timeout=-1", "ValueError: drain_timeout must be zero or a positive number"),
    ],
)
def test_worker_options_are_checked(environments: dict[str, object], options: str, words: str) -> None:
    """One strategy is enough: the file is the same in all of them."""
    python = environments["decorator"].python  # type: ignore[attr-defined]
    code = f"""
    try:
        importlib.import_module(package).Worker({options})
    except Exception as error:
        answer(type(error).__name__ + ": " + str(error))
    """
    assert words in Strategy("decorator", python).run(code)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "the following arguments are required: COMMAND"),
        (["wrker"], 2, "invalid choice: 'wrker'"),
        (["worker", "--listen", "[::1"], 2, "--listen expects HOST:PORT"),
        (["worker", "--token-file", "/nowhere"], 2, "--token-file: cannot read '/nowhere'"),
        (["worker", "--memory-limit", "much"], 2, "--memory-limit"),
        (["worker", "--init", "os"], 2, "MODULE:FUNCTION"),
        (["status", "ftp://h:1"], 2, "scheme 'ftp'"),
        (["status", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1"),
    ],
)
def test_command_line_mistakes(strategy: Strategy, arguments: list[str], code: int, words: str) -> None:
    command = [str(strategy.python), "-I", "-m", strategy.package, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_teaches(strategy: Strategy) -> None:
    command = [str(strategy.python), "-I", "-m", strategy.package, "worker", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    for words in (
        "examples:",
        "security:",
        "exit codes:",
        f"python -m {strategy.package} worker",
        "--allow-python-udfs",
    ):
        assert words in done.stdout


def test_status_command_prints_json_per_worker(strategy: Strategy) -> None:
    code = f"""
    import subprocess
    own = importlib.import_module(package)
    with own.LocalCluster(2) as cluster:
        command = [sys.executable, "-I", "-m", {strategy.package!r}, "status", *cluster.urls]
        done = subprocess.run(command, capture_output=True, text=True)
        answer([done.returncode, done.stdout.splitlines(), cluster.urls])
    """
    returned, lines, urls = strategy.run(code)
    assert returned == 0
    assert [json.loads(line)["url"] for line in lines] == urls


def test_decorator_refuses_another_major_and_names_both(environments: dict[str, object]) -> None:
    python = environments["decorator"].python  # type: ignore[attr-defined]
    code = """
    from datafusion_decorator import _native, _version_check
    try:
        _version_check.check_major("54.1.0")
    except ImportError as error:
        answer([str(error), error.name, _version_check.ENGINE_MAJOR, _native.DATAFUSION_MAJOR])
    """
    message, module, ours, native = Strategy("decorator", python).run(code)
    assert "54.1.0" in message
    assert "55" in message
    assert (module, ours) == ("datafusion", native)


def test_external_shows_frames_without_the_stock_package(environments: dict[str, object]) -> None:
    python = environments["external"].python  # type: ignore[attr-defined]
    code = """
    df.configure_formatter(max_rows=2, min_rows=1)
    frame = df.SessionContext().from_pydict({"a": [1, 2, 3]})
    empty = df.SessionContext().sql("SELECT 1 AS x WHERE false")
    answer([repr(frame), frame._repr_html_(), repr(empty), "datafusion" in sys.modules])
    """
    text, html, empty, stock = Strategy("external", python).run(code)
    assert "| 1 |" in text
    assert "Data truncated" in text
    assert "| 3 |" not in text
    assert "<table" in html
    assert empty == "No data to display"
    assert stock is False


FOREIGN = """
import datafusion as stock
rows = df.SessionContext()
frame, other = rows.from_pydict({"a": [1]}), stock.SessionContext().from_pydict({"a": [1]})
def refused(call):
    try:
        call()
    except TypeError as error:
        return str(error)
    return "accepted"
tries = {
    "config": lambda: df.DistributedSessionContext(["http://h:1"], config=stock.SessionConfig()),
    "runtime": lambda: df.DistributedSessionContext(["http://h:1"], runtime=stock.RuntimeEnvBuilder()),
    "plain config": lambda: df.SessionContext(stock.SessionConfig()),
    "filter": lambda: frame.filter(stock.col("a") > stock.lit(0)),
    "select": lambda: frame.select(stock.col("a")),
    "operator": lambda: df.col("a") > stock.lit(0),
    "function": lambda: df.functions.sum(stock.col("a")),
    "join": lambda: frame.join(other, on="a"),
    "union": lambda: frame.union(other),
    "view": lambda: rows.register_view("v", other),
    "table": lambda: rows.register_table("v", other),
    "plan": lambda: rows.create_dataframe_from_logical_plan(other.logical_plan()),
    "store": lambda: rows.register_object_store("file://", stock.object_store.LocalFileSystem()),
}
answer([{name: refused(call) for name, call in tries.items()}, rows.from_arrow(other).to_pydict()])
"""


def test_external_names_objects_of_the_stock_package(
    environments: dict[str, object], built: dict[str, Path], tmp_path: Path
) -> None:
    """Both packages in one interpreter, which the arm's own environment does not have."""
    folder = tmp_path / "site"
    with zipfile.ZipFile(built["external"]) as wheel:
        wheel.extractall(folder)
    preamble = f"import json, sys; sys.path.insert(0, {str(folder)!r})\nimport datafusion_external as df\n"
    preamble += "def answer(value): print(json.dumps(value))\n"
    done = subprocess.run(
        [sys.executable, "-c", preamble + FOREIGN], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    messages, rows = json.loads(done.stdout)
    assert rows == {"a": [1]}
    for name, message in messages.items():
        assert "of the stock `datafusion` package" in message, (name, message)


def alive(pid: int) -> bool:
    """A zombie that nobody has waited for is not alive."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
