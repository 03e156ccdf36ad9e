"""Cold executions: new processes, and the data files out of the page cache, which is checked and not assumed.

What is cold are the data files and the arm's processes. Its libraries stay in the page cache, since what a query costs
after a restart of the service is the question, not what it costs after a restart of the machine; a session that has
been opened has read the footers. `posix_fadvise(DONTNEED)` is a hint that a kernel may ignore (dirty pages, other
mappings, a file system in memory), so the share that is still there is measured with mincore(2) and stored with the
sample.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.errors import UserError
from harness.model import Cache

COLD_SHARE = 0.01
"""Share of the data files' pages that may be in the page cache before a cold execution; above it is lukewarm. Footers
that the session has just read are about 0.1 %."""

DROP_ATTEMPTS = 3
"""Pages that are on their way to the kernel's lists survive the first advice; the second one finds them."""

DROP_PAUSE_S = 0.05
"""Seconds between attempts."""


def data_files(tables: Mapping[str, Path]) -> list[Path]:
    """All files of the tables."""
    return sorted(path for folder in tables.values() for path in folder.glob("*.parquet"))


def require_droppable(files: Sequence[Path]) -> None:
    """Try it once before a run relies on it.

    Raises:
        UserError: it cannot be checked here what the page cache holds, or the files do not leave it.
    """
    if sys.platform != "linux":
        msg = "--cold needs Linux: nowhere else can it be checked that the data left the page cache. Run without it."
        raise UserError(msg)
    # To everybody but the owner and who may write, mincore(2) says "resident", whatever is true.
    foreign = [path for path in files if not (path.stat().st_uid == os.geteuid() or os.access(path, os.W_OK))]
    if foreign:
        msg = (
            f"--cold cannot check the page cache of {foreign[0]}: the kernel tells only who owns the file or may write "
            "it. Use a data folder of your own (DF_STRATEGIES_DATA), or run without --cold."
        )
        raise UserError(msg)
    share = drop(files)
    if share > COLD_SHARE:
        msg = (
            f"--cold is not possible here: after fsync and DONTNEED {share:.0%} of the data below {files[0].parent} is "
            f"still in memory, at most {COLD_SHARE:.0%} may be. Put the data on a disk (not tmpfs) that no other "
            "process maps, or run without --cold."
        )
        raise UserError(msg)


def drop(files: Sequence[Path]) -> float:
    """Push the files out of the page cache; returns the share that is still in it."""
    share = 1.0
    for attempt in range(DROP_ATTEMPTS):
        if attempt:
            time.sleep(DROP_PAUSE_S)
        for path in files:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
        share = residency(files)
        if share <= COLD_SHARE:
            break
    return share


def residency(files: Iterable[Path]) -> float:
    """Share of the files' pages that the page cache holds, 0 to 1; 0 for no pages at all."""
    resident = pages = 0
    for path in files:
        there, of = _resident_pages(path)
        resident, pages = resident + there, pages + of
    return resident / pages if pages else 0.0


def label(share: float) -> Cache:
    """What an execution may be called that finds this share of the data in memory."""
    return "cold" if share <= COLD_SHARE else "lukewarm"


def _resident_pages(path: Path) -> tuple[int, int]:
    size = path.stat().st_size
    pages = -(-size // mmap.PAGESIZE)
    if not pages:
        return 0, 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_longlong]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Python's own mmap does not give the address of a read-only mapping. Mapping alone reads no page.
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap", str(path))
        try:
            seen = ctypes.create_string_buffer(pages)
            if libc.mincore(address, size, seen) != 0:
                raise OSError(ctypes.get_errno(), "mincore", str(path))
        finally:
            libc.munmap(address, size)
    finally:
        os.close(descriptor)
    # Only the lowest bit of each byte has a meaning.
    return sum(byte & 1 for byte in seen.raw[:pages]), pages
