"""Stored runs as tables, for notebooks and scripts.

import harness
run = harness.load("latest")
run.frame()                                       # one row per execution, as pandas
run.frame().query("phase == 'timed'").groupby(["arm", "query"]).elapsed_ms.median()

Reads a run directory and nothing else; verdicts are in its report.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.rundir import RunDirectory, disk_errors, find_run
from harness.settings import runs_root

if TYPE_CHECKING:
    import pandas as pd

    from harness.model import Sample
    from harness.provenance import Manifest

CATEGORIES = ("arm", "query", "form", "phase", "status", "reach", "validation", "cache")
"""Columns with few different values: categories keep a table of a long run small."""


class LoadedRun:
    """A stored run. `frame()` gives its executions as pandas; a notebook shows a summary of the object itself."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.run.path

    @cached_property
    def manifest(self) -> Manifest:
        """What ran, where and with what."""
        return self.run.manifest()

    @cached_property
    def samples(self) -> list[Sample]:
        """All executions, in the order in which they ran."""
        return self.run.samples()

    def frame(self) -> pd.DataFrame:
        """One row per execution. Times in milliseconds, memory in bytes; what an execution does not have is missing.

        The columns are the fields of `harness.model.Sample`; what its processes used is summed over the arm's processes
        (`cpu_ms`, `pss_bytes`), and oracles are one column each (`oracle_duckdb`, ...).
        """
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame([_flat(sample) for sample in self.samples])
        if frame.empty:
            from harness.model import Sample

            frame = pd.DataFrame(columns=[name for name in Sample.model_fields if name not in ("oracles", "processes")])
        for name in CATEGORIES:
            if name in frame:
                frame[name] = frame[name].astype("category")
        frame.attrs = {"run_id": self.manifest.run_id, "scale_factor": self.manifest.settings.scale_factor}
        return frame

    def to_csv(self, path: Path | str) -> None:
        """Write `frame()` as CSV.

        Raises:
            HarnessFault: it cannot be written.
        """
        with disk_errors(Path(path)):
            self.frame().to_csv(path, index=False)

    def to_parquet(self, path: Path | str) -> None:
        """Write `frame()` as Parquet.

        Raises:
            HarnessFault: it cannot be written.
        """
        frame = self.frame()
        frame.attrs = {}
        with disk_errors(Path(path)):
            frame.to_parquet(path, index=False)

    def medians(self) -> pd.DataFrame:
        """Median milliseconds of the valid timed executions: a row per query, a column per arm."""
        frame = self.frame()
        valid = frame[(frame["phase"] == "timed") & (frame["status"] == "ok")]
        table = valid.pivot_table(index="query", columns="arm", values="elapsed_ms", aggfunc="median", observed=True)
        ordered: pd.DataFrame = table.reindex(columns=[arm for arm in self.manifest.arms if arm in table.columns])
        return ordered

    def __repr__(self) -> str:
        manifest = self.manifest
        arms, queries = ", ".join(manifest.arms), len(manifest.settings.queries)
        return (
            f"<run {manifest.run_id}: {manifest.status}, SF{manifest.settings.scale_factor}, {queries} queries, "
            f"arms {arms}, {len(self.samples)} executions>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the run in one line, and the medians."""
        text: str = self.medians().to_html(float_format=lambda value: f"{value:,.1f}", na_rep="no valid time")
        return f"<p>{escape(repr(self).strip('<>'))}. Median ms of the valid timed executions:</p>{text}"


def load(run: str | Path = "latest", root: Path | str | None = None) -> LoadedRun:
    """A stored run: `run` is an id, the start of one, a path, or `latest`; `root` holds the run directories.

    Raises:
        UserError: nothing fits; the message lists the newest runs.
    """
    folder = Path(root).resolve() if root is not None else runs_root()
    return LoadedRun(RunDirectory.open(find_run(str(run), folder)))


def _flat(sample: Sample) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in type(sample).model_fields:
        value = getattr(sample, name)
        if name == "oracles":
            row.update({f"oracle_{oracle}": found.value for oracle, found in value.items()})
        elif name == "processes":
            row.update(_usage(value))
        else:
            row[name] = value.value if isinstance(value, Enum) else value
    return row


def _usage(processes: Any) -> dict[str, float | None]:
    """CPU time and memory over all processes of the arm; None where no process was read."""
    found: dict[str, float | None] = {}
    for name in ("cpu_ms", "pss_bytes"):
        given = [getattr(process, name) for process in processes if getattr(process, name, None) is not None]
        found[name] = sum(given) if given else None
    return found
