"""Batches side by side: each lane has its own processes, and results come out in the order of the batches."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

LOOK_AHEAD = 3
"""Batches begun per lane before the oldest one is finished: a lane that shrinks a case for minutes stops no other."""

Job_contra = TypeVar("Job_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)
Job = TypeVar("Job")
Result = TypeVar("Result")


class Lane(Protocol[Job_contra, Result_co]):
    """Runs one job at a time."""

    def run(self, job: Job_contra, /) -> Result_co:
        """Carry out a job; called from a thread that lives as long as all lanes do."""
        ...

    def close(self) -> None:
        """Give up at once, also in the middle of a job; called from another thread."""
        ...


def in_lanes(
    lanes: Sequence[Lane[Job, Result]], jobs: Iterable[Job], more: Callable[[], bool] = lambda: True
) -> Generator[Result, None, None]:
    """The results of `jobs` in their order. No job is begun once `more` says no; what has begun is finished.

    When the caller stops early, or a job raises, every lane is closed.
    """
    free: queue.SimpleQueue[Lane[Job, Result]] = queue.SimpleQueue()
    for lane in lanes:
        free.put(lane)

    def work(job: Job) -> Result | None:
        lane = free.get()
        try:
            return lane.run(job) if more() else None
        finally:
            free.put(lane)

    waiting: deque[Future[Result | None]] = deque()
    left = iter(jobs)
    with ThreadPoolExecutor(len(lanes), thread_name_prefix="lane") as pool:
        try:
            while True:
                while len(waiting) < LOOK_AHEAD * len(lanes) and more():
                    try:
                        waiting.append(pool.submit(work, next(left)))
                    except StopIteration:
                        break
                if not waiting:
                    return
                result = waiting.popleft().result()
                if result is None:
                    return
                yield result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in lanes:
                lane.close()
