"""What the evidence says about each public pull request: sentences made from figures, never typed in."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.model import Frozen
from reports.datafiles import read_record
from reports.decision_model import PrVerdict
from reports.evidence import SOURCES, Parts, surface

PR_FILE = Path(__file__).parent / "public_prs.toml"

_SAYS = {
    "geomean_vs_native": "time against the native driver",
    "share_valid": "validated and distributed",
    "conformance_must": "conformance",
    "api_changed": "stock API",
    "script_lines_changed": "shortest script against the local one",
    "native_delta_mb": "native bytes over stock",
    "import_ratio": "import time over stock",
    "private_uses": "private upstream symbols",
    "plain_wait_worst": "extra wait of plain datafusion users",
    "release_days_median": "from a DataFusion major to a distributed wheel",
}


class Pr(Frozen):
    """One entry of the data file."""

    id: str
    title: str
    links: list[str]
    strategy: str
    where: str
    how: str
    differs: list[str]
    cannot_say: list[str]


class PrFile(Frozen):
    """The data file."""

    schema_version: Literal[1] = Field(alias="schema")
    pr: list[Pr]


@lru_cache(maxsize=1)
def load_prs() -> PrFile:
    """The shipped data file."""
    return read_record(PR_FILE, PrFile, "pull requests")


def pr_verdict(entry: Pr, parts: Parts) -> PrVerdict:
    """The figures of the closest build, in words; what has no figure goes to `cannot_say` with the reason."""
    says, cannot = [], list(entry.cannot_say)
    if entry.strategy not in parts.summary:
        cannot.insert(0, f"anything: the closest build, {entry.strategy}, was not in this run")
    else:
        for source, words in _SAYS.items():
            figure = SOURCES[source](parts, entry.strategy)
            if figure.value is None:
                cannot.append(f"{words}: {figure.missing}")
            else:
                says.append(f"{words}: {figure.text}")
        row = surface(parts, entry.strategy)
        if row and row.diffs:
            added = ", ".join(f"{len(diff.added)} in {diff.package}" for diff in row.diffs if diff.error is None)
            says.append(f"public names added: {added}")
    return PrVerdict(
        id=entry.id,
        title=entry.title,
        links=entry.links,
        strategy=entry.strategy,
        where=entry.where,
        how=entry.how,
        says=says,
        differs=entry.differs,
        cannot_say=cannot,
    )
