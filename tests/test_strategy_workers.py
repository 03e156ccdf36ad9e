"""The worker command of each strategy: life cycle, refusals, failures that a session sees."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from strategy_helpers import Strategy, WorkerProcess, cluster, end_worker, start_worker

TINY = '{"datafusion.execution.target_partitions": "2", "distributed.file_scan_config_bytes_per_partition": "1"}'

QUERY = """
ctx = make_context(%s, urls)
ctx.register_parquet("t", %r)
try:
    answer(["ok", ctx.sql("SELECT k, count(*) FROM t GROUP BY k").to_pydict()])
except BaseException as error:
    answer([type(error).__name__, str(error)])
"""


def query(table: Path) -> str:
    """A script that runs one distributed query and tells how it went."""
    return QUERY % (TINY, str(table))


def test_sigterm_drains_and_exits_zero(strategy: Strategy) -> None:
    """A worker that is told to stop stops, quickly, with success."""
    worker = start_worker(strategy.worker_command("--listen", "127.0.0.1:0"))
    assert worker.url.startswith("http://127.0.0.1:")
    assert worker.ready["pid"] == worker.process.pid
    begun = time.monotonic()
    assert end_worker(worker) == 0
    assert time.monotonic() - begun < 10


def test_a_worker_tells_the_same_build_as_the_session(strategy: Strategy, workers: list[WorkerProcess]) -> None:
    """Over the wire and in process: one fingerprint."""
    code = "answer([factory.build_info(), worker_status(urls)])"
    own, statuses = strategy.run(code, [w.url for w in workers])
    assert {status["build"]["fingerprint"] for status in statuses} == {own["fingerprint"]}
    assert {w.ready["fingerprint"] for w in workers} == {own["fingerprint"]}


def test_all_strategies_and_native_have_one_fingerprint(fingerprints: dict[str, str]) -> None:
    """They link the same engine, compiled the same way."""
    assert len(set(fingerprints.values())) == 1, fingerprints


def test_port_in_use_is_one_clear_message(strategy: Strategy) -> None:
    """Exit 1, the address, no traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_worker(strategy, "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "127.0.0.1:", ":::"])
def test_bad_listen_address_is_a_usage_error(strategy: Strategy, listen: str) -> None:
    """Exit 2 and what was expected."""
    done = run_worker(strategy, "--listen", listen)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_listening_beyond_loopback_needs_protection(strategy: Strategy) -> None:
    """Open to everybody only when said explicitly."""
    done = run_worker(strategy, "--listen", "0.0.0.0:0")
    assert done.returncode != 0
    assert "insecure" in done.stderr
    worker = start_worker(strategy.worker_command("--listen", "0.0.0.0:0", "--insecure"))
    assert end_worker(worker) == 0


def test_token_keeps_strangers_out(strategy: Strategy, split_table: Path) -> None:
    """Without the token a query fails and says why; with it the query runs."""
    with cluster(strategy, 2, "--token", "sesame") as workers:
        urls = [w.url for w in workers]
        kind, message = strategy.run(query(split_table), urls)
        assert kind != "ok"
        assert "token" in message


def test_dead_worker_is_named(strategy: Strategy, split_table: Path) -> None:
    """Nobody listens there: an ordinary exception with the URL, in seconds."""
    # Two, since one worker leaves nothing to distribute.
    urls = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            urls.append(f"http://127.0.0.1:{free.getsockname()[1]}")
    begun = time.monotonic()
    kind, message = strategy.run(query(split_table), urls)
    assert kind not in {"ok", "PanicException"}
    assert any(url in message for url in urls)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "127.0.0.1:5", "http://127.0.0.1:70000", "http://"])
def test_bad_worker_url_is_refused_before_any_query(strategy: Strategy, url: str) -> None:
    """ValueError that quotes the URL and shows a good one."""
    code = f"""
    try:
        make_context({{}}, [{url!r}])
    except ValueError as error:
        answer(str(error))
    """
    message = strategy.run(textwrap.dedent(code))
    assert url in message
    assert "http" in message


def test_killed_worker_fails_the_query_and_the_next_session_works(strategy: Strategy, split_table: Path) -> None:
    """A query never hangs on, or silently does without, a worker that is gone."""
    with cluster(strategy, 2) as workers:
        urls = [w.url for w in workers]
        assert strategy.run(query(split_table), urls)[0] == "ok"
        os.kill(workers[1].process.pid, signal.SIGKILL)
        kind, message = strategy.run(query(split_table), urls)
        assert kind not in {"ok", "PanicException"}
        assert workers[1].url in message
        assert strategy.run(query(split_table), urls[:1])[0] == "ok"


def run_worker(strategy: Strategy, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A worker that is expected to refuse to start."""
    return subprocess.run(strategy.worker_command(*arguments), capture_output=True, text=True, timeout=60, check=False)
