"""What the processes of an arm use: read around an execution, outside the timed window, and at both ends of a life.

CPU time and the workers' own counters are read around every execution: a few system calls and one status call per
worker that proves reach anyway. Memory costs milliseconds per process and a lock on its address space, so it is read in
warm-ups only; a timed execution never has a memory reading beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.child import procfs
from harness.model import ProcessUse, Role

COUNTERS = {"tasks": "tasks_started", "bytes_out": "bytes_out", "streams": "streams"}
"""Field of `ProcessUse` and the counter of a worker's status that it comes from."""

Counters = Sequence[Mapping[str, Any]]


class Member(NamedTuple):
    """One process of an arm."""

    role: Role
    place: int
    pid: int


class Meter:
    """Reads all processes of an arm before and after one execution."""

    def __init__(self, members: Sequence[Member], *, memory: bool) -> None:
        self._members = members
        # Without a reset the peak would be that of some earlier query; then there is no figure.
        self._peaks = [memory and procfs.reset_peak(member.pid) for member in members]
        self._memory = memory
        self._before = self._read_cpu()
        self._after: list[float | None] = []

    def stop(self) -> None:
        """Read the processors' clocks again: as soon as the answer is there."""
        self._after = self._read_cpu()

    def read(self, answer: Mapping[str, Any], counters: Counters | None) -> tuple[ProcessUse, ...]:
        """What each process used until `stop`; `answer` is the arm's, `counters` what each worker counted meanwhile."""
        used = []
        for place, (member, before, after) in enumerate(zip(self._members, self._before, self._after, strict=True)):
            fields: dict[str, Any] = {}
            if member.role == "coordinator" and answer.get("cpu_ms") is not None:
                fields |= {"cpu_ms": answer["cpu_ms"], "cpu_window": "query"}
            elif before is not None and after is not None:
                fields |= {"cpu_ms": after - before, "cpu_window": "request"}
            if self._memory:
                fields |= _memory(member.pid, peak=self._peaks[place])
            if member.role == "worker" and counters and member.place < len(counters):
                fields |= {name: _count(counters[member.place], key) for name, key in COUNTERS.items()}
            used.append(ProcessUse(role=member.role, index=member.place, pid=member.pid, **fields))
        return tuple(used)

    def _read_cpu(self) -> list[float | None]:
        return [procfs.cpu_ms(member.pid) for member in self._members]


def lifetime(members: Sequence[Member]) -> list[dict[str, Any]]:
    """CPU, memory and threads of each process since it started, for the record of a start or a stop."""
    found = []
    for member in members:
        cpu = procfs.cpu_ms(member.pid)
        use = ProcessUse(
            role=member.role, index=member.place, pid=member.pid, cpu_ms=cpu,
            cpu_window=None if cpu is None else "life", **_memory(member.pid, peak=True),
        )  # fmt: skip
        found.append(use.model_dump(exclude_none=True))
    return found


def difference(before: Counters | None, after: Counters | None) -> Counters | None:
    """What each worker counted between two of its statuses; None unless both are known for the same workers."""
    if before is None or after is None or len(before) != len(after):
        return None
    keys = COUNTERS.values()
    return [
        {key: new[key] - old[key] for key in keys if key in old and key in new}
        for old, new in zip(before, after, strict=True)
    ]


def _memory(pid: int, *, peak: bool) -> dict[str, int | None]:
    memory = procfs.memory(pid)
    return {
        "pss_bytes": memory.pss,
        "anon_bytes": memory.anon,
        "rss_bytes": memory.rss,
        "peak_rss_bytes": memory.peak_rss if peak else None,
        "threads": memory.threads,
    }


def _count(counters: Mapping[str, Any], key: str) -> int | None:
    return int(counters[key]) if key in counters else None
