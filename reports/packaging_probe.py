"""Measure what importing packages costs. Standard library only: it runs inside an arm's own interpreter.

    python -I reports/packaging_probe.py import datafusion       one fresh import: milliseconds, memory, threads
    python -I reports/packaging_probe.py files datafusion        installed size and native libraries

One process per import measurement: a second import in the same process is free.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import mmap
import sys
import time
from pathlib import Path
from typing import Any

DATAFUSION_MARKS = (b"datafusion-physical-plan-", b"datafusion_physical_plan")
"""Text that a library holding DataFusion's executor cannot be without, stripped or not: the source paths of its
panic messages, or the crate name in its type names."""


def measure_import(packages: list[str]) -> dict[str, Any]:
    """Import `packages` in order: wall milliseconds, and kB of memory before and after."""
    before = memory_kb()
    started = time.perf_counter()
    for package in packages:
        importlib.import_module(package)
    elapsed = (time.perf_counter() - started) * 1000.0
    after = memory_kb()
    return {
        "import_ms": elapsed,
        "rss_before_kb": before["rss"],
        "pss_before_kb": before["pss"],
        "pss_after_kb": after["pss"],
        "rss_after_kb": after["rss"],
        "peak_kb": after["peak"],
        "threads": after["threads"],
        "modules": len(sys.modules),
    }


def memory_kb() -> dict[str, int | None]:
    """Memory of this process from /proc: proportional share, resident, own peak; null where the kernel has none."""
    status = _fields("/proc/self/status")
    return {
        "pss": _fields("/proc/self/smaps_rollup").get("Pss"),
        "rss": status.get("VmRSS"),
        "peak": status.get("VmHWM"),
        "threads": status.get("Threads"),
    }


def _fields(path: str) -> dict[str, int]:
    try:
        lines = Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            found[name] = int(number[0])
    return found


def installed_files(packages: list[str]) -> dict[str, Any]:
    """Distributions behind `packages`: version, installed bytes, and every native library with what it holds."""
    owners = importlib.metadata.packages_distributions()
    names = sorted({name for package in packages for name in owners.get(package.split(".")[0], [])})
    return {"distributions": [_distribution(name) for name in names]}


def _distribution(name: str) -> dict[str, Any]:
    found = importlib.metadata.distribution(name)
    paths = [Path(str(found.locate_file(file))) for file in found.files or []]
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    natives = [path for path in sizes if path.suffix in (".so", ".pyd", ".dylib") or ".so." in path.name]
    return {
        "name": name,
        "version": found.version,
        "installed_bytes": sum(sizes.values()),
        "native": [
            {"name": path.name, "bytes": sizes[path], "holds_datafusion": holds_datafusion(path)}
            for path in sorted(natives)
        ],
    }


def holds_datafusion(path: Path) -> bool:
    """Whether a native library contains a compiled copy of DataFusion's executor."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(mark) >= 0 for mark in DATAFUSION_MARKS)


def main(arguments: list[str]) -> int:
    """Print one measurement as JSON; 2 for wrong usage."""
    actions = {"import": measure_import, "files": installed_files}
    if len(arguments) < 2 or arguments[0] not in actions:
        sys.stderr.write("usage: python -I packaging_probe.py import|files PACKAGE [PACKAGE ...]\n")
        return 2
    json.dump(actions[arguments[0]](arguments[1:]), sys.stdout)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
