"""Which command fills a section that a run does not have: a blank is an offer, not a dead end."""

from __future__ import annotations

from collections.abc import Iterable

AGAIN = "df-strategies report {run} --rebuild"
"""Makes the report again; the commands of other parts only write their file into the run directory."""

_COMMANDS = {
    "calibration": "df-strategies collect {run} --part calibration",
    "packaging": "df-strategies collect {run} --part packaging",
    "api_surface": "df-strategies collect {run} --part api_surface",
    "conformance": f"df-strategies check --out runs/{{run}} && {AGAIN}",
    "promises": f"df-strategies check --out runs/{{run}} && {AGAIN}",
    "surface_coverage": f"df-strategies check --check coverage.public_surface --out runs/{{run}} --add && {AGAIN}",
    "boundary": f"df-strategies check --check stream.cost --out runs/{{run}} --add && {AGAIN}",
    "boundary_tax": "df-strategies run --arms inline,decorator",
    "scaling": "df-strategies report {run} --scaling RUN",
    "generated_queries": f"df-strategies fuzz --out runs/{{run}}/generated_queries.json && {AGAIN}",
    "upstream_tests": f"df-strategies upstream-tests --checkout DIR --out runs/{{run}} && {AGAIN}",
}
"""Section -> command. `DIR` stands for a checkout of datafusion-python, `RUN` for a run with another number of
workers."""


def fills(run_id: str, absent: Iterable[str]) -> dict[str, str]:
    """The command per absent section; a section that no command of this project makes has none."""
    return {name: _COMMANDS[name].format(run=run_id) for name in absent if name in _COMMANDS}
