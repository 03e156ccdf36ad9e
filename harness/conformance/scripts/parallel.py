"""Area 29: threads, event loops, processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import kit
from .kit import BY_KEY, Arm, expected_by_key, short

SQL = BY_KEY.format(table="t")
CHILD_S = 30.0
SPAWN_S = 80.0
"""A fresh interpreter imports the arm first, which takes long on a busy machine."""


def threads(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ctx.sql(SQL).to_pydict(), range(24)))
    arm.figure["seconds"] = round(time.monotonic() - began, 2)
    wrong = [answer for answer in answers if answer != expected_by_key()]
    arm.equal(wrong, [], "wrong answers of 24 queries in 8 threads")
    with ThreadPoolExecutor(8) as pool:
        own = list(pool.map(lambda _: arm.with_table(arm.context()).sql(SQL).to_pydict(), range(8)))
    arm.equal([answer for answer in own if answer != expected_by_key()], [], "wrong answers with a session per thread")
    arm.on_workers(lambda: ctx.sql(SQL).collect())


def contexts_and_clusters(arm: Arm) -> None:
    with arm.worker() as other:
        first, second = arm.with_table(arm.context()), arm.with_table(arm.context(workers=[other.url]))
        before = arm.tasks(), arm.tasks(urls=[other.url])
        arm.equal(first.sql(SQL).to_pydict(), expected_by_key(), "the first cluster's answer")
        middle = arm.tasks(), arm.tasks(urls=[other.url])
        arm.check(middle[0] > before[0], "the first query reached no worker of its cluster")
        arm.equal(middle[1], before[1], "tasks of the second cluster after a query of the first")
        arm.equal(second.sql(SQL).to_pydict(), expected_by_key(), "the second cluster's answer")
        after = arm.tasks(), arm.tasks(urls=[other.url])
        arm.equal(after[0], middle[0], "tasks of the first cluster after a query of the second")
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda i: (first if i % 2 else second).sql(SQL).to_pydict(), range(12)))
        arm.equal([answer for answer in answers if answer != expected_by_key()], [], "wrong answers of both at once")
        if after[1] == middle[1]:
            arm.figure["note"] = "one worker alone: the second query ran on the coordinator"


def resolver_from_engine_threads(arm: Arm) -> None:
    calls: list[int] = []

    def resolver() -> list[str]:
        calls.append(threading.get_ident())
        time.sleep(0.01)  # gives the GIL away, as a real resolver that asks the network does
        return list(arm.urls)

    ctx = arm.with_table(arm.context(workers=resolver))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ctx.sql(SQL).to_pydict(), range(12)))
    arm.equal(
        [answer for answer in answers if answer != expected_by_key()], [], "wrong answers of 12 queries in 4 threads"
    )
    arm.check(calls, "the resolver was never called")
    arm.figure["calls"] = len(calls)
    arm.on_workers(lambda: ctx.sql(SQL).collect())


def asyncio_does_not_block(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    big = arm.parquet("big", rows=200_000)
    ctx.register_parquet("b", str(big))

    async def tick(pauses: list[float]) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            pauses.append(time.monotonic() - began)

    async def main() -> tuple[int, float]:
        pauses: list[float] = []
        ticker = asyncio.create_task(tick(pauses))
        frame = ctx.sql(
            "SELECT a.k, count(*) AS n FROM b a JOIN b ON a.k = b.k AND a.v < b.v AND a.v < 2000 GROUP BY a.k"
        )
        stream = frame.execute_stream()
        rows = sum([batch.to_pyarrow().num_rows async for batch in stream])
        ticker.cancel()
        return rows, max(pauses, default=0.0)

    rows, longest = asyncio.run(main())
    arm.equal(rows, 10, "rows of the stream")
    arm.figure["longest_pause_ms"] = round(longest * 1000)
    arm.check(longest < 2.0, f"the event loop stood still for {longest:.1f} s")


def _in_child(ctx: Any, pipe: Any) -> None:
    try:
        pipe.send(("answer", ctx.sql(SQL).to_pydict()))
    except BaseException as error:
        pipe.send((type(error).__name__, str(error)))


def fork(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer before the fork")
    receive, send = multiprocessing.get_context("fork").Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        _in_child(ctx, send)
        os._exit(0)
    told = receive.recv() if receive.poll(CHILD_S) else None
    if told is None:
        os.kill(pid, 9)
    os.waitpid(pid, 0)
    arm.figure["child"] = short(told, 300)
    arm.check(told is not None, f"the forked child hung for {CHILD_S:g} s (it was killed)")
    kind, value = told or ("", "")
    arm.check(kind != "PanicException", f"the forked child panicked: {value}")
    if kind == "answer":
        arm.equal(value, expected_by_key(), "the answer in the forked child")
    else:
        arm.check("fork" in str(value).lower(), f"the error does not speak of the fork: {kind}: {value}")
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the parent's next query")


SPAWNED = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("kit", {kit!r})
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)
arm = kit.open_arm(json.loads(sys.stdin.read()))
print(json.dumps(arm.with_table(arm.context()).sql({sql!r}).to_pydict()))
"""


def spawn(arm: Arm) -> None:
    import json
    import subprocess

    job = {
        "arm": arm.name, "distributed": arm.distributed, "urls": arm.urls, "pids": [], "worker_command": [], "prerequisites": {},
        "tmp": str(arm.tmp), "namespace": arm.df.__name__, "factory": arm.factory_name, "probe": getattr(arm.probe, "__name__", None),
    }  # fmt: skip
    ctx = arm.with_table(arm.context())
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the parent's answer")
    code = SPAWNED.format(kit=kit.__file__, sql=SQL)
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=SPAWN_S,
        check=False,
    )
    arm.equal(done.returncode, 0, f"exit code of the spawned process ({short(done.stderr, 300)})")
    arm.equal(json.loads(done.stdout), expected_by_key(), "the answer of the spawned process")
