"""Would this machine spoil the numbers? Reads what Linux tells, for two seconds, and changes nothing."""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from harness.model import Frozen
from harness.provenance import available_cores, host_record, meminfo
from harness.settings import cache_root, runs_root

Level = Literal["ok", "warning", "bad"]

LOOK_S = 2.0
"""Seconds over which processes and stolen time are counted: 200 ticks, so that 1 % is two of them."""

LOAD_PER_CORE_WARNING = 0.25
LOAD_PER_CORE_BAD = 0.75
"""Share of the machine that is busy already. Sequential passes moved by 25-60 % beside one busy core of two."""

HEAVY_SHARE = 0.10
"""Share of one core from which another process is named."""

STEAL_SHARE = 0.01
"""Share of time that the hypervisor may take: 1 % is a fifth of the margin."""

MEMORY_PER_SF = 1.5e9
MEMORY_FLOOR = 3e9
"""Bytes of memory wanted: SF10 peaked near 12 GB over a coordinator and two workers, a small SF only processes."""

DISK_WANTED = 2e9
"""Bytes of free disk wanted for environments and run directories; building from source needs more and says so."""

FILES_WANTED = 4096
"""Open files: each worker holds every data file and its channels."""

SLOW_CLOCKS = ("acpi_pm", "hpet", "jiffies")
"""Clock sources that cost a microsecond or more per reading."""


class Finding(Frozen):
    """One thing that was looked at."""

    name: str
    level: Level
    found: str
    advice: str = ""


def look(scale_factor: str, *, quick: bool = False) -> list[Finding]:
    """All findings; `quick` leaves out what takes seconds."""
    sf = float(scale_factor)
    findings = [_cores(), _load(), _governor(), _clock(), _quota(), _memory(sf), _swap(), *_disks(), _files()]
    if not quick:
        findings += _watch(LOOK_S)
    return findings


def _cores() -> Finding:
    cores = available_cores()
    level: Level = "ok" if cores >= 2 else "warning"
    return Finding(name="cores", level=level, found=f"{cores}", advice="Two workers on one core measure the scheduler.")


def _load() -> Finding:
    load, cores = os.getloadavg()[0], available_cores()
    level: Level = "ok"
    if load > LOAD_PER_CORE_WARNING * cores:
        level = "bad" if load > LOAD_PER_CORE_BAD * cores else "warning"
    return Finding(
        name="load", level=level, found=f"{load:.2f} over the last minute, {cores} cores",
        advice="Stop what else is running, or wait a minute if it has just ended.",
    )  # fmt: skip


def _governor() -> Finding:
    governor = host_record().governor
    if governor is None:
        return Finding(name="CPU governor", level="ok", found="not told (usual for a virtual machine)")
    level: Level = "ok" if governor == "performance" else "warning"
    advice = "Clock speed will follow the load: `cpupower frequency-set -g performance`."
    return Finding(name="CPU governor", level=level, found=governor, advice=advice)


def _clock() -> Finding:
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "not told"
    level: Level = "warning" if source in SLOW_CLOCKS else "ok"
    return Finding(name="clock source", level=level, found=source, advice="Reading the clock is slow; prefer tsc.")


def _quota() -> Finding:
    """A container's CPU quota: throttling looks like slow queries."""
    text = _read("/sys/fs/cgroup/cpu.max") or _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or "max"
    unlimited = text.startswith(("max", "-1"))
    return Finding(
        name="CPU quota", level="ok" if unlimited else "warning", found="none" if unlimited else text,
        advice="A quota pauses processes in bursts; give the container whole cores instead.",
    )  # fmt: skip


def _memory(sf: float) -> Finding:
    free, wanted = meminfo().get("MemAvailable", 0), max(MEMORY_FLOOR, MEMORY_PER_SF * sf)
    level: Level = "ok" if free >= wanted else "bad"
    found = f"{free / 1e9:.1f} GB available, {wanted / 1e9:.1f} GB wanted for SF{sf:g}"
    return Finding(
        name="memory", level=level, found=found, advice="Use a smaller --sf or fewer --workers, or free some."
    )


def _swap() -> Finding:
    info = meminfo()
    used = info.get("SwapTotal", 0) - info.get("SwapFree", 0)
    level: Level = "warning" if used > 100e6 else "ok"
    return Finding(
        name="swap", level=level, found=f"{used / 1e6:.0f} MB used", advice="Pages may come back in a timed window."
    )


def _disks() -> Iterator[Finding]:
    from tpch.dataset import data_root

    for name, folder in (
        ("disk for runs", runs_root()),
        ("disk for cache", cache_root()),
        ("disk for data", data_root()),
    ):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        level: Level = "ok" if free >= DISK_WANTED else "bad"
        found = f"{free / 1e9:.1f} GB free below {existing}"
        yield Finding(name=name, level=level, found=found, advice=f"{DISK_WANTED / 1e9:.0f} GB are wanted.")


def _files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    level: Level = "ok" if soft == resource.RLIM_INFINITY or soft >= FILES_WANTED else "warning"
    return Finding(name="open files", level=level, found=f"limit {soft}", advice=f"Raise it: ulimit -n {FILES_WANTED}.")


def _watch(seconds: float) -> list[Finding]:
    """What else uses the processors, over some seconds."""
    before, total_before = _busy_ticks(), _cpu_ticks()
    time.sleep(seconds)
    after, total_after = _busy_ticks(), _cpu_ticks()
    per_second = os.sysconf("SC_CLK_TCK")
    shares = {
        pid: (ticks - before[pid][1]) / per_second / seconds
        for pid, (_, ticks) in after.items()
        if pid in before and pid != os.getpid()
    }
    heavy = sorted((pid for pid, share in shares.items() if share > HEAVY_SHARE), key=lambda pid: -shares[pid])
    named = ", ".join(f"{after[pid][0]} (pid {pid}, {shares[pid]:.0%} of a core)" for pid in heavy[:4])
    elapsed = max(1, sum(total_after) - sum(total_before))
    steal = (total_after[7] - total_before[7]) / elapsed if len(total_after) > 7 else 0.0
    return [
        Finding(
            name="other processes", level="bad" if heavy else "ok", found=named or "none busy",
            advice="Stop them for the time of the run.",
        ),
        Finding(
            name="stolen time", level="warning" if steal > STEAL_SHARE else "ok", found=f"{steal:.1%}",
            advice="The hypervisor gives the processors to others; more rounds help, another host helps more.",
        ),
    ]  # fmt: skip


def _busy_ticks() -> dict[int, tuple[str, int]]:
    """Name and CPU ticks of every process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        text = _read(str(folder / "stat"))
        if text is None or ")" not in text:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        found[int(folder.name)] = (name, int(fields[11]) + int(fields[12]))
    return found


def _cpu_ticks() -> list[int]:
    """The machine's ticks by kind: user, nice, system, idle, iowait, irq, softirq, steal."""
    text = _read("/proc/stat") or "cpu 0"
    return [int(value) for value in text.splitlines()[0].split()[1:9]]


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
