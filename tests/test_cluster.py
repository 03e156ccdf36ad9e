"""Worker processes: start, proof of life, every way to fail, and teardown that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arm_helpers import FAKE_WORKER, alive, processes_with, wait_until
from harness.child.keeper import Keeper
from harness.cluster import Cluster, WorkerFailed, check_fingerprints
from harness.errors import EXIT_NOT_COMPARABLE, NotComparable
from harness.model import Status

Make = Callable[..., Cluster]
ROOT = Path(__file__).parents[1]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper() as opened:
        yield opened


@pytest.fixture
def make(keeper: Keeper, tmp_path: Path) -> Make:
    def _make(behaviour: str = "ready", count: int = 2, timeout_s: float = 20.0, **env: str) -> Cluster:
        command = [sys.executable, "-I", str(FAKE_WORKER), behaviour]
        return Cluster(keeper, "toy", command, count, logs=tmp_path, cwd=tmp_path, env=env, ready_timeout_s=timeout_s)

    return _make


def test_workers_start_answer_and_stop(make: Make) -> None:
    with make(count=3) as cluster:
        assert len(set(cluster.urls)) == 3
        assert {worker.fingerprint for worker in cluster.workers} == {"f" * 64}
        pids = [worker.pid for worker in cluster.workers]
        assert all(alive(pid) for pid in pids)
        assert all(worker.pid == worker.process.pid for worker in cluster.workers), "no process in between"
        assert cluster.failure() is None
        for worker in cluster.workers:
            port = int(worker.url.rpartition(":")[2])
            socket.create_connection(("127.0.0.1", port), 5).close()
    assert not any(alive(pid) for pid in pids)


def test_a_stopped_cluster_can_start_again(make: Make) -> None:
    cluster = make()
    cluster.start()
    assert cluster.stop() == ["terminated", "terminated"]
    cluster.start()
    assert len(cluster.urls) == 2
    cluster.stop()
    assert cluster.stop() == []


@pytest.mark.parametrize(
    ("behaviour", "status", "words"),
    [
        ("silent", Status.TIMEOUT, "worker 1 of 2 of arm `toy` was not ready within 1.5 s"),
        ("dies", Status.CRASH, "address already in use"),
        ("usage", Status.CRASH, "It did not accept its arguments"),
        ("crash", Status.CRASH, "died by SIGSEGV (signal 11) before it was ready"),
        ("nonsense", Status.ERROR, "printed 'Welcome to the worker!' first; expected one line of JSON"),
        ("bad-url", Status.ERROR, "ftp://127.0.0.1"),
        ("unreachable", Status.ERROR, "cannot be reached there"),
    ],
)
def test_a_worker_that_fails_to_start_says_why(make: Make, behaviour: str, status: Status, words: str) -> None:
    token = uuid.uuid4().hex
    cluster = make(behaviour, timeout_s=1.5 if behaviour == "silent" else 20.0, TOKEN=token)
    with pytest.raises(WorkerFailed) as caught:
        cluster.start()
    assert words in str(caught.value)
    assert caught.value.status is status
    assert processes_with(token) == [], "the other worker is taken down too"


def test_a_command_that_does_not_exist(keeper: Keeper, tmp_path: Path) -> None:
    cluster = Cluster(keeper, "toy", ["/no/such/worker"], 1, logs=tmp_path, cwd=tmp_path, env={}, ready_timeout_s=10)
    with pytest.raises(WorkerFailed, match="exited with code 127.*does not exist"):
        cluster.start()


def test_a_worker_that_ignores_sigterm_is_killed(make: Make) -> None:
    cluster = make("deaf")
    cluster.start()
    pids = [worker.pid for worker in cluster.workers]
    start = time.monotonic()
    assert cluster.stop(grace_s=0.5) == ["killed", "killed"]
    assert time.monotonic() - start < 5, "they are waited for side by side"
    assert not any(alive(pid) for pid in pids)


def test_a_worker_that_floods_stdout_is_not_blocked(make: Make) -> None:
    with make("chatty", count=1) as cluster:
        log = cluster.workers[0].log.with_suffix(".out")
        assert wait_until(lambda: log.stat().st_size > 1 << 20, 30), "a pipe would have been full at 64 kB"
        assert cluster.failure() is None


def test_what_a_worker_started_goes_with_it(make: Make) -> None:
    token = uuid.uuid4().hex
    with make("family", count=1, TOKEN=token):
        assert wait_until(lambda: len(processes_with(token)) == 2)
    assert wait_until(lambda: not processes_with(token))


def test_a_worker_that_dies_in_use_is_noticed(make: Make) -> None:
    with make() as cluster:
        os.kill(cluster.workers[1].pid, signal.SIGKILL)
        assert wait_until(lambda: cluster.failure() is not None)
        failure = cluster.failure()
        assert failure is not None
        assert "worker 2 of 2 of arm `toy` died by SIGKILL (signal 9) while it was in use" in str(failure)
        assert failure.status is Status.CRASH


def test_an_exception_inside_takes_the_cluster_down(make: Make) -> None:
    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt), make() as cluster:
        pids += [worker.pid for worker in cluster.workers]
        raise KeyboardInterrupt
    assert pids
    assert not any(alive(pid) for pid in pids)


HOLDER = """
import os, signal, sys, time
from pathlib import Path
from harness.child.keeper import Keeper
from harness.cluster import Cluster
with Keeper() as keeper:
    logs = Path({logs!r})
    cluster = Cluster(keeper, "toy", [sys.executable, "-I", {worker!r}, {behaviour!r}], 2, logs=logs, cwd=logs,
                      env={{"TOKEN": {token!r}}}, ready_timeout_s=30)
    cluster.start()
    print("up", flush=True)
    {then}
"""


@pytest.mark.parametrize("behaviour", ["ready", "deaf", "family"])
@pytest.mark.parametrize(
    "then",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os._exit(0)",
        "raise RuntimeError('bug')",
        "sys.exit(3)",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    ],
)
def test_no_worker_outlives_the_harness(tmp_path: Path, behaviour: str, then: str) -> None:
    token = uuid.uuid4().hex
    code = textwrap.dedent(HOLDER).format(
        worker=str(FAKE_WORKER), behaviour=behaviour, logs=str(tmp_path), token=token, then=then
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert "up" in done.stdout, done.stderr
    assert wait_until(lambda: not processes_with(token), 15), "a worker is still there"


def test_equal_fingerprints_pass() -> None:
    build = {"fingerprint": "a" * 64}
    assert check_fingerprints({"inline": build, "inline worker 1": build, "native": build}) == "a" * 64
    assert check_fingerprints({"local": {}}, excused={"local": "stock wheel"}) is None


def test_different_fingerprints_are_refused_with_both_sides() -> None:
    builds = {
        "inline": {"fingerprint": "a" * 64, "rustc": "1.90", "lock_hash": "1"},
        "inline worker 1": {"fingerprint": "b" * 64, "rustc": "1.91", "lock_hash": "1"},
        "native": {"fingerprint": "a" * 64, "rustc": "1.90", "lock_hash": "1"},
    }
    with pytest.raises(NotComparable) as caught:
        check_fingerprints(builds)
    text = str(caught.value)
    assert "aaaaaaaaaaaa: inline, native | bbbbbbbbbbbb: inline worker 1" in text
    assert "rustc '1.90' / '1.91'" in text
    assert "lock_hash" not in text, "only what differs"
    assert caught.value.exit_code == EXIT_NOT_COMPARABLE


def test_a_missing_fingerprint_is_refused_unless_declared() -> None:
    builds = {"inline": {"fingerprint": "a" * 64}, "ballista": {}}
    with pytest.raises(NotComparable, match="no engine fingerprint from ballista"):
        check_fingerprints(builds)
    assert check_fingerprints(builds, excused={"ballista": "another engine"}) == "a" * 64
