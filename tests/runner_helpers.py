"""Runs for tests: settings for fixture arms on SF0.01, in this process or as the command a user types."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.model import Sample
from harness.rundir import RunDirectory
from harness.settings import SESSION_DEFAULTS, RunSettings

ROOT = Path(__file__).parents[1]


def run_settings(arm_files: Sequence[Path], **changes: Any) -> RunSettings:
    """Settings of a small run over the arms in `arm_files`, in that order."""
    values: dict[str, Any] = {
        "arms": [path.stem for path in arm_files],
        "scale_factor": "0.01",
        "queries": ["q01", "q06"],
        "query_set": "spec",
        "form": "sql",
        "rounds": 1,
        "warmups": 0,
        "workers": 2,
        "seed": 7,
        "timeout_s": 60.0,
        "interleave": "query",
        "config": SESSION_DEFAULTS,
        "arm_files": [str(path) for path in arm_files],
    }
    return RunSettings(**{**values, **changes})


def by_cell(run: RunDirectory) -> dict[tuple[str, str], list[Sample]]:
    """Samples per arm and query."""
    found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in run.samples():
        found[sample.arm, sample.query].append(sample)
    return found


def command_line(arm_files: Sequence[Path], out: Path, *more: str) -> list[str]:
    """The command for a small run over `arm_files`, as a user would type it."""
    words = [
        sys.executable,
        "-m",
        "harness",
        "run",
        "--no-baselines",
        "--no-report",
        "--sf",
        "0.01",
        "--queries",
        "1,6",
    ]
    words += ["--arms", ",".join(path.stem for path in arm_files), "--out", str(out), "--warmups", "0", "--quiet"]
    for path in arm_files:
        words += ["--arm-file", str(path)]
    return [*words, *more]


def environment(data_root: Path, **more: str) -> Mapping[str, str]:
    """Environment of a command under test."""
    return {**os.environ, "DF_STRATEGIES_DATA": str(data_root), "PYTHONPATH": str(ROOT), **more}


def invoke(words: Sequence[str], data_root: Path, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        list(words), cwd=ROOT, env=dict(environment(data_root, **env)), capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
