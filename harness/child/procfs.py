"""What Linux tells about a running process: CPU time of all its threads, memory, threads.

Reading it needs no help from the process, so an arm without Python is read in exactly the same way as one with it. A
process that is gone, or a system without `/proc`, gives None and never 0.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

RESET_PEAK = "5"
"""What resets `VmHWM` when it is written to `/proc/<pid>/clear_refs` (man proc_pid_clear_refs)."""


class Memory(NamedTuple):
    """Memory of one process in bytes, and its threads."""

    pss: int | None
    anon: int | None
    rss: int | None
    peak_rss: int | None
    threads: int | None


def cpu_ms(pid: int) -> float | None:
    """Milliseconds of CPU that all threads of a process have used since it started, or None."""
    if sys.platform != "linux":
        return None
    try:
        # The kernel's clock of another process (what clock_getcpuclockid(3) computes): nanoseconds, where the ticks
        # of /proc/<pid>/stat are ten milliseconds long.
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e6
    except (OSError, OverflowError):
        return None


def memory(pid: int) -> Memory:
    """Memory of a process; each figure is None where the kernel does not give it."""
    rollup, status = _kilobytes(pid, "smaps_rollup"), _kilobytes(pid, "status")
    return Memory(
        pss=_bytes(rollup.get("Pss")),
        anon=_bytes(rollup.get("Pss_Anon")),
        rss=_bytes(status.get("VmRSS")),
        peak_rss=_bytes(status.get("VmHWM")),
        threads=status.get("Threads"),
    )


def reset_peak(pid: int) -> bool:
    """Make `VmHWM` start again from the present; False where that is not allowed."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def _kilobytes(pid: int, name: str) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    return {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+)(?: kB)?$", text, re.MULTILINE)}


def _bytes(kilobytes: int | None) -> int | None:
    return None if kilobytes is None else kilobytes * 1024
