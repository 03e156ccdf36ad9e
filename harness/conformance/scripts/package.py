"""Areas 8 and 12: what importing costs, and what does not fit together."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .kit import Arm, Blocked, short

MEASURE = """
import json, os, sys, time
def rss(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20
sys.path.extend({path!r})
before, began = rss(), time.perf_counter()
import {module}
took = time.perf_counter() - began
maps = {{line.split()[-1] for line in open('/proc/self/maps') if line.rstrip().endswith('.so')}}
large = sorted(os.path.basename(m) for m in maps if os.path.getsize(m) > 20e6)
print(json.dumps(dict(seconds=round(took, 3), mib=round(rss() - before, 1), threads=len(os.listdir('/proc/self/task')), libraries=large)))
"""


def import_cost(arm: Arm) -> None:
    module = arm.package if arm.distributed else arm.df.__name__
    best: dict[str, Any] = {}
    for _ in range(3):
        code = MEASURE.format(module=module, path=[])
        done = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120, check=False
        )
        arm.equal(done.returncode, 0, f"exit code of `import {module}` ({short(done.stderr, 300)})")
        told = json.loads(done.stdout)
        best = told if not best or told["seconds"] < best["seconds"] else best
    arm.figure.update(best)
    arm.check(best["threads"] <= 4, f"importing {module} starts {best['threads']} threads: a runtime per core or more")
    mine = [name for name in best["libraries"] if "arrow" not in name and "parquet" not in name]
    arm.figure["native_libraries"] = mine
    arm.check(1 <= len(mine) <= 2, f"native libraries of more than 20 MB: {mine}")


FAKE = """
import importlib.metadata as m
real = m.version
m.version = lambda name: "54.1.0" if name == "datafusion" else real(name)
import {package}
"""


def versions(arm: Arm) -> None:
    code = FAKE.format(package=arm.package)
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    arm.figure["message"] = last
    arm.equal(done.returncode, 1, f"exit code with another major ({short(done.stderr, 300)})")
    arm.check("ImportError" in last, f"the failure is {last}")
    arm.check("54.1.0" in last and "55" in last, f"the message does not name both versions: {last}")
    require = importlib.metadata.metadata(arm.package.replace("_", "-")).get_all("Requires-Dist") or []
    arm.check(
        any("datafusion" in entry and "55" in entry for entry in require),
        f"the wheel's requirements do not pin the major: {require}",
    )


def python_mismatch(arm: Arm) -> None:
    command = os.environ.get("CONFORMANCE_OTHER_WORKER")
    if not command or not Path(command.split()[0]).exists():
        raise Blocked("needs a worker of another build: set CONFORMANCE_OTHER_WORKER in the arm file to its command")
    process = subprocess.Popen(command.split(), stdout=subprocess.PIPE, text=True)
    try:
        ready = json.loads(process.stdout.readline() if process.stdout else "{}")
        ctx = arm.with_table(arm.context(workers=[ready["url"]]))
        arm.figure["message"] = arm.raises(
            lambda: ctx.sql("SELECT k, count(*) FROM t GROUP BY k").collect(),
            "a worker of another build",
            ready["fingerprint"][:8],
        )
    finally:
        process.kill()
