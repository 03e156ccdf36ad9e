"""Runs out of memory for real, under an address space limit; `FIXTURE_OOM` says how.

`python`: the interpreter raises MemoryError and survives. `abort`: a native allocation fails and the process aborts
with the words of Rust's allocator. `pool`: DataFusion's own memory limit is hit.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

from wrap import Context

HEADROOM = 256 << 20


def limit() -> None:
    """Allow 256 MB of address space beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def spoil(frame: Any) -> Any:
    how = os.environ.get("FIXTURE_OOM", "python")
    if how == "pool":
        return frame.collect()
    limit()
    try:
        return [bytearray(64 << 20) for _ in range(1000)]
    except MemoryError:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        if how == "python":
            raise
        os.write(2, b"memory allocation of 67108864 bytes failed\n")
        os.abort()


def make_context(config: dict[str, str], workers: list[str]) -> Any:
    del workers
    if os.environ.get("FIXTURE_OOM") == "pool":
        from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

        runtime = RuntimeEnvBuilder().with_disk_manager_disabled().with_fair_spill_pool(64 << 10)
        return SessionContext(SessionConfig(config), runtime)
    return Context(config, spoil)
