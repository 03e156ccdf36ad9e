"""What became of a process or a request, in the closed vocabulary of `Status`."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from harness.model import Status

OUT_OF_MEMORY = re.compile(
    r"MemoryError|memory allocation of \d+ bytes failed|std::bad_alloc|Resources exhausted|ENOMEM"
    r"|Cannot allocate memory|ArrowMemoryError|realloc of size \d+ failed|malloc of size \d+ failed"
)
"""How Python, Rust, C++, Arrow and DataFusion's memory pool say that there is no memory left."""

BY_KERNEL = "the kernel ended it because memory ran out"


class ArmFailure(Exception):
    """An arm's process or request came to a bad end. `fatal`: the process cannot be used any more."""

    def __init__(self, status: Status, reason: str, *, fatal: bool, detail: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.fatal = fatal
        self.detail = detail


def first_line(text: str, limit: int = 300) -> str:
    """First line of an error that says something, cut to `limit` characters."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot; 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def describe_exit(returncode: int, log_tail: str, *, oom_killed: bool) -> tuple[Status, str]:
    """Status and reason for a process that ended unasked. `oom_killed`: the kernel killed something meanwhile."""
    if returncode >= 0:
        how = f"exited with code {returncode} unasked"
    else:
        try:
            how = f"died by {signal.Signals(-returncode).name} (signal {-returncode})"
        except ValueError:
            how = f"died by signal {-returncode}"
    if returncode == -signal.SIGKILL and oom_killed:
        return Status.OOM, f"{how}: {BY_KERNEL}"
    out_of_memory = OUT_OF_MEMORY.search(log_tail)
    if out_of_memory:
        return Status.OOM, f"{how}: {first_line(log_tail[log_tail.rfind(chr(10), 0, out_of_memory.start()) + 1 :])}"
    return Status.CRASH, how


def describe_error(kind: str, message: str) -> tuple[Status, str]:
    """Status and reason for an exception inside an arm that survived it."""
    status = Status.OOM if OUT_OF_MEMORY.search(f"{kind}: {message}") else Status.ERROR
    return status, first_line(f"{kind}: {message}")
