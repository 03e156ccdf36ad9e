"""Areas 18 and 30: workers as objects, as processes, as a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from .kit import BY_KEY, Arm, expected_by_key, short, wait_until

SQL = BY_KEY.format(table="t")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def worker_answers(arm: Arm, urls: list[str], what: str) -> None:
    arm.equal(arm.with_table(arm.context(workers=urls)).sql(SQL).to_pydict(), expected_by_key(), what)


def life_of_object(arm: Arm) -> None:
    worker = arm.api.Worker()
    arm.check(not worker.running, "a worker runs before it is started")
    worker.start()
    arm.check(worker.running and worker.port > 0, f"after start: running={worker.running}, port={worker.port}")
    arm.check(worker.url.startswith("http://127.0.0.1:"), f"the URL is {worker.url}")
    arm.raises(worker.start, "a second start")
    worker_answers(arm, [worker.url], "an answer through the worker object")
    url, began = worker.url, time.monotonic()
    worker.stop()
    arm.figure["seconds_to_stop"] = round(time.monotonic() - began, 2)
    arm.check(time.monotonic() - began < 5, f"stopping an idle worker took {arm.figure['seconds_to_stop']} s")
    worker.stop()
    arm.check(not worker.running, "it runs after stop")
    arm.raises(lambda: arm.status([url]), "status of a stopped worker", url.rpartition(":")[2])
    worker.start()
    arm.check(worker.running, "it does not run after a restart")
    worker.stop()
    with arm.api.Worker() as inside:
        arm.equal(inside.status()["pid"], os.getpid(), "process id of a worker in this process")
        arm.check(not inside.wait(timeout=0.05), "wait() returned although the worker runs")
    arm.check(not inside.running, "it runs after the with block")
    arm.raises(lambda: arm.api.Worker(port=70_000), "a port that does not exist", "70000", kinds=(ValueError,))
    arm.raises(lambda: arm.api.Worker(no_such=1), "an unknown option", "no_such", kinds=(TypeError, ValueError))


def async_object(arm: Arm) -> None:
    async def main() -> tuple[object, bool]:
        async with arm.api.Worker() as one, arm.api.Worker() as two:
            ctx = arm.with_table(arm.context(workers=[one.url, two.url]))
            rows: dict[str, list[int]] = {}
            async for batch in ctx.sql(SQL).execute_stream():
                rows = batch.to_pyarrow().to_pydict() if batch.to_pyarrow().num_rows else rows
            ran = sum(worker["tasks_started"] for worker in arm.status([one.url, two.url]))
        return rows, ran > 0

    rows, ran = asyncio.run(main())
    arm.equal(rows, expected_by_key(), "an answer inside a running loop")
    arm.check(ran, "the workers in this process saw no task")


def local_cluster(arm: Arm) -> None:
    with arm.api.LocalCluster(2) as cluster:
        pids = list(cluster.pids)
        arm.equal(len(set(cluster.urls)), 2, "number of URLs")
        ctx = arm.with_table(arm.context(workers=cluster))
        before = arm.tasks(urls=cluster.urls)
        arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "an answer from LocalCluster(2)")
        arm.check(arm.tasks(urls=cluster.urls) > before, "the workers of LocalCluster saw no task")
        arm.check(os.getpid() not in pids and len(set(pids)) == 2, f"process ids are {pids}")
    arm.check(wait_until(lambda: not any(map(_alive, pids)), 5), "processes are left after the with block")
    arm.raises(lambda: arm.api.LocalCluster(0), "a cluster of none", "0", kinds=(ValueError,))


def address_in_use(arm: Arm) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arm.raises(lambda: arm.api.Worker(port=port).start(), "a port in use", str(port), kinds=(OSError,))
        done = _command(arm, listen=f"127.0.0.1:{port}")
    arm.equal(done.returncode, 1, f"exit code ({short(done.stderr)})")
    arm.check(str(port) in done.stderr and "Traceback" not in done.stderr, f"the message is {short(done.stderr, 400)}")
    arm.equal(done.stdout, "", "standard output of a worker that did not start")


def _command(arm: Arm, *arguments: str, listen: str = "127.0.0.1:0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arm.command(*arguments, listen=listen), capture_output=True, text=True, timeout=60, check=False
    )


def bad_arguments(arm: Arm) -> None:
    for listen in ("nonsense", "127.0.0.1:99999", "127.0.0.1:", ":::"):
        done = _command(arm, listen=listen)
        arm.equal(done.returncode, 2, f"exit code for --listen {listen} ({short(done.stderr)})")
        arm.check(
            "Traceback" not in done.stderr and len(done.stderr) > 10, f"--listen {listen}: {short(done.stderr, 400)}"
        )
    for arguments in (
        ["--no-such-flag"],
        ["--init", "nowhere"],
        ["--init", "no_such_module_here:f"],
        ["--tls-cert", "/nowhere.pem"],
    ):
        done = _command(arm, *arguments)
        arm.equal(done.returncode, 2, f"exit code for {arguments} ({short(done.stderr)})")
        arm.check("Traceback" not in done.stderr, f"{arguments}: a traceback: {short(done.stderr, 400)}")


def sigterm_drains(arm: Arm) -> None:
    big = arm.parquet("big", rows=300_000)
    with arm.worker() as one, arm.worker() as two:
        ctx = arm.context(workers=[one.url, two.url])
        ctx.register_parquet("b", str(big))
        answers: list[object] = []
        sql = "SELECT count(*) AS n FROM b x JOIN b y ON x.k = y.k AND x.v < 600 AND y.v > 100"
        want = sum(1 for v in range(600)) and 60 * 10 * (30_000) - sum(
            1 for x in range(600) for y in range(x % 10, 101, 10)
        )

        def run() -> None:
            try:
                answers.append(ctx.sql(sql).to_pydict()["n"][0])
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")

        thread = threading.Thread(target=run)
        thread.start()
        running = wait_until(
            lambda: arm.tasks("tasks_running", [one.url, two.url]) > 0 or not thread.is_alive(), 20, 0.001
        )
        began = time.monotonic()
        one.process.send_signal(signal.SIGTERM)
        thread.join(60)
        code = one.wait(30)
        arm.figure.update(
            {"seconds": round(time.monotonic() - began, 2), "was_running": running, "answer": short(answers)}
        )
        arm.equal(code, 0, "exit code after SIGTERM")
        arm.check(
            answers and answers[0] == want, f"the query that ran at SIGTERM gave {short(answers, 300)}, expected {want}"
        )
        arm.check(time.monotonic() - began < 20, "draining took longer than 20 s")


PARENT = "import sys, time; from {package} import LocalCluster; c = LocalCluster(2).start(); print(*c.pids, flush=True); time.sleep(60)"


def dies_with_parent(arm: Arm) -> None:
    code = PARENT.format(package=arm.package)
    parent = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, text=True)
    line = parent.stdout.readline() if parent.stdout else ""
    pids = [int(part) for part in line.split()]
    arm.equal(len(pids), 2, "number of workers that the parent started")
    arm.check(all(map(_alive, pids)), "a worker is gone before its parent")
    parent.kill()
    parent.wait()
    began = time.monotonic()
    gone = wait_until(lambda: not any(map(_alive, pids)), 20)
    arm.figure["seconds"] = round(time.monotonic() - began, 2)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if _alive(pid):
                os.kill(pid, signal.SIGKILL)
    arm.check(gone, "workers outlived their killed parent by 20 s")


def replaced_between_queries(arm: Arm) -> None:
    with arm.worker() as one, arm.worker() as two:
        now = list(arm.urls)
        ctx = arm.with_table(arm.context(workers=lambda: list(now)))
        arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer of the first workers")
        now[:] = [one.url, two.url]
        time.sleep(6)  # longer than a membership answer is used
        arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer of the new workers")
        arm.check(arm.tasks(urls=[one.url, two.url]) > 0, "no task reached the workers that the resolver names now")


def in_process(arm: Arm) -> None:
    with arm.api.Worker() as own, arm.worker() as other:
        urls = [own.url, other.url]
        ctx = arm.with_table(arm.context(workers=urls))
        began = time.monotonic()
        arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "an answer with a worker in the coordinator's process")
        arm.figure["milliseconds"] = round((time.monotonic() - began) * 1000)
        status = arm.status([own.url])[0]
        arm.figure["bytes_out_of_own_worker"] = status["bytes_out"]
        arm.check(status["tasks_started"] > 0, "the worker in this process saw no task")
