"""Measure and check: arms, clusters, schedule, runner, validation, statistics, provenance and the command line.

Imports run one way: `model` <- `stats`, `validate` <- `runner` <- `reports` <- `cli`.
What runs inside an arm's environment (`harness/child/arm_child.py`) imports nothing of this package: the timed process
holds the arm and the standard library only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from harness.results import LoadedRun

__all__ = ["load"]


def load(run: str | Path = "latest", root: Path | str | None = None) -> LoadedRun:
    """A stored run for a notebook: `harness.load("latest").frame()` gives its executions as a pandas table.

    `run` is an id, the start of one, a path, or `latest`; `root` is the folder of run directories, `runs` by default.

    Raises:
        UserError: nothing fits; the message lists the newest runs.
    """
    from harness.results import load as load_run

    return load_run(run, root)
