"""One generating process per scale factor, across processes, without stale locks."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCK_TIMEOUT_S = 1800.0
"""Longest wait for another generating process: SF10 takes about a minute, on a loaded machine with a slow disk some
more; half an hour means that something hangs."""

POLL_S = 0.1
"""Seconds between two tries. Taking a lock that nobody holds needs no wait at all."""


@contextmanager
def locked(path: Path, waiting: Callable[[str], None], timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[int]:
    """Hold an exclusive lock on `path` and yield its file descriptor.

    The kernel drops the lock when the last process that holds the descriptor is gone, so a killed process leaves none
    behind. Hand the descriptor down to a child that must be gone before anybody else may start. `waiting` is called
    once with the holder's process id if the lock is taken. Raises `UserError` after `timeout_s`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + timeout_s
        told = False
        while not _try_lock(descriptor):
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            if not told:
                waiting(holder)
                told = True
            if time.monotonic() > deadline:
                msg = f"process {holder} has held {path} for {timeout_s:.0f} s: end it if it hangs, then run this again"
                raise UserError(msg)
            time.sleep(POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
