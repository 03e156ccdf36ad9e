"""Area 31: Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from .kit import BY_KEY, SLOW, Arm, Blocked, expected_by_key, short, wait_until

LATENCY_S = 1.2
SETTLE_S = 1.0
"""Seconds that the query runs before the signal: planning is behind it, and stock runs Python code only while planning."""


def _interrupted(arm: Arm, act: Callable[[], object], ready: Callable[[], bool], what: str) -> float:
    """Run `act`, send SIGINT to this process once `ready`, and return the seconds until KeyboardInterrupt."""
    sent: list[float] = []

    def send() -> None:
        wait_until(ready, 30, 0.01)
        time.sleep(SETTLE_S)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        act()
    except KeyboardInterrupt:
        late = time.monotonic() - sent[0] if sent else 0.0
        thread.join()
        arm.check(sent, f"{what}: KeyboardInterrupt before the signal")
        return late
    ended = time.monotonic()
    thread.join(40)
    if sent and sent[0] > ended - 0.05:
        raise Blocked(f"{what} ended before the signal could be sent")
    arm.check(
        condition=False,
        otherwise=f"{what}: the signal was sent and no KeyboardInterrupt came ({ended - sent[0]:.1f} s)",
    )
    return 0.0


def _slow_session(arm: Arm) -> Any:
    return arm.with_slow_table(arm.with_table(arm.context({"datafusion.execution.batch_size": "256"})))


def _after(arm: Arm, ctx: Any, late: float) -> None:
    arm.figure["seconds_to_exception"] = round(late, 2)
    arm.check(late <= LATENCY_S, f"KeyboardInterrupt came after {late:.2f} s, the limit is {LATENCY_S} s")
    began = time.monotonic()
    gone = wait_until(lambda: _tasks(arm) == 0, 15)
    arm.figure["seconds_to_free_workers"] = round(time.monotonic() - began, 2)
    arm.check(gone, f"{_tasks(arm)} tasks still ran on workers 15 s later")
    arm.equal(ctx.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), "the next query")


def _running(arm: Arm) -> Callable[[], bool]:
    return (lambda: _tasks(arm) != 0) if arm.distributed else (lambda: True)


def _tasks(arm: Arm) -> int:
    """Tasks that run on the workers; -1 when a worker is too busy to say, which is an answer too."""
    try:
        return arm.tasks("tasks_running")
    except Exception as error:
        arm.figure["status while busy"] = short(error, 200)
        return -1


def collect(arm: Arm) -> None:
    ctx = _slow_session(arm)
    late = _interrupted(arm, lambda: ctx.sql(SLOW).collect(), _running(arm), "collect")
    _after(arm, ctx, late)


def stream(arm: Arm) -> None:
    ctx = _slow_session(arm)

    def read() -> None:
        for _ in ctx.sql(SLOW).execute_stream():
            pass

    late = _interrupted(arm, read, _running(arm), "reading a stream")
    _after(arm, ctx, late)


def worker_wait(arm: Arm) -> None:
    with arm.api.Worker() as worker:
        late = _interrupted(arm, worker.wait, lambda: True, "Worker.wait()")
        arm.figure["seconds_to_exception"] = round(late, 2)
        arm.check(late <= LATENCY_S, f"KeyboardInterrupt came after {late:.2f} s")
        arm.check(worker.running, "the interrupt stopped the worker")
    with arm.worker() as process:
        began = time.monotonic()
        arm.equal(process.end(signal.SIGINT), 0, "exit code of the worker command after Ctrl-C")
        arm.figure["seconds_to_exit"] = round(time.monotonic() - began, 2)
        arm.check("Traceback" not in process.said(), "Ctrl-C of the worker command prints a traceback")
