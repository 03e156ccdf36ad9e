"""Runs one check inside an arm's environment: started as a plain file with `python -I`, imports nothing of the harness.

Standard input carries one JSON object that describes the arm and the check. The outcome goes to a file, whole or not at
all, so that whatever the arm prints can never pass for an answer, and a crash leaves none.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from typing import Any

PACKAGE = "conformance_checks"
"""Name under which the bodies are imported in the child. Workers do not have it, so what it holds cannot go by name."""

REASON_LIMIT = 1500
"""Characters of a reason that are kept; the log has the rest."""


def load_package(name: str, folder: str) -> None:
    """Import a folder as a package of that name, without touching the import path."""
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        msg = f"{path} is not a Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def outcome_of(job: dict[str, Any]) -> dict[str, Any]:
    """Run the check and put a name on how it ended."""
    sys.path[:0] = job.get("path", [])
    load_package(PACKAGE, job["scripts"])
    kit: Any = importlib.import_module(f"{PACKAGE}.kit")

    figure: dict[str, Any] = {}
    began = time.monotonic()
    try:
        arm = kit.open_arm(job)
        figure = arm.figure
        getattr(importlib.import_module(f"{PACKAGE}.{job['group']}"), job["function"])(arm)
    except kit.Blocked as blocked:
        return {"outcome": "blocked", "reason": str(blocked), "figure": figure}
    except kit.Partial as partial:
        return {"outcome": "partial", "reason": str(partial), "figure": figure}
    except kit.Unmet as unmet:
        traceback.print_exc()
        return {"outcome": "fail", "reason": str(unmet), "figure": figure}
    except BaseException as error:  # noqa: BLE001 - panics of native code and interrupts are no `Exception`
        traceback.print_exc()
        return {"outcome": "fail", "reason": f"{type(error).__name__}: {error}", "figure": figure}
    if not figure.get("asserted"):
        return {"outcome": "fail", "reason": "the check asserted nothing", "figure": figure}
    return {"outcome": "pass", "reason": None, "figure": {**figure, "seconds": round(time.monotonic() - began, 2)}}


def main() -> int:
    """Read the job, run it, write the outcome."""
    job = json.loads(sys.stdin.read())
    faulthandler.enable(all_threads=True)
    # The harness asks for this before it kills a check that hangs: the stack ends up in the log.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    result = outcome_of(job)
    if result["reason"]:
        result["reason"] = result["reason"][:REASON_LIMIT]
    partial = job["result"] + ".part"
    with open(partial, "w", encoding="utf-8") as stream:
        json.dump(result, stream, default=str)
    os.replace(partial, job["result"])
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not `sys.exit`: a native runtime that does not end must not turn an outcome into a hang.
    os._exit(code)
