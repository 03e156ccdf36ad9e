"""One build at a time: two tox environments may ask for the same wheels at once."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

POLL_S = 0.5
"""Seconds between two tries for the lock; a build takes seconds to minutes."""


@contextlib.contextmanager
def build_lock(path: Path, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on `path` for the block; wait for whoever holds it.

    The operating system drops the lock when its holder dies, so a killed build never blocks the next one.

    Args:
        path: lock file; made when missing, never deleted (deleting it would race with a waiter).
        on_wait: called once with a message when another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        told = False
        while not _try_lock(file.fileno()):
            if not told and on_wait is not None:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                on_wait(f"another build is running (pid {holder}); waiting for it")
                told = True
            time.sleep(POLL_S)
        try:
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield
        finally:
            file.seek(0)
            file.truncate()
            file.flush()
            _unlock(file.fileno())


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)
