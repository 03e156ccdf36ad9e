"""Release lag: days from a DataFusion major to an installable distributed wheel, per strategy, from dated releases.

The model is arithmetic on public dates, nothing fitted. A distributed wheel is usable when everything it needs is
released, so its date is the latest of its parts plus the package's own lag. What differs between strategies is mostly
*who* waits: under `inline`, users of plain `datafusion` wait for the engine as well.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from pydantic import Field

from harness.model import Frozen
from reports.datafiles import read_record

LAG_FILE = Path(__file__).parent / "release_lag.toml"


class Major(Frozen):
    """Dates of one DataFusion major; null: not released or not known on the day of reading."""

    version: int
    datafusion: date
    datafusion_distributed_main: date | None = None
    datafusion_distributed_crate: date | None = None
    datafusion_python_tag: date | None = None
    datafusion_python_crate: date | None = None
    ballista_tag: date | None = None

    @property
    def engine(self) -> date | None:
        """When the engine was ready: its crate, or its main branch in the time before it published crates."""
        return self.datafusion_distributed_crate or self.datafusion_distributed_main

    @property
    def python_cut(self) -> date | None:
        """When datafusion-python was ready to release: its tag, or its crate where no tag date is known."""
        return self.datafusion_python_tag or self.datafusion_python_crate

    @property
    def python(self) -> date | None:
        """When datafusion-python could be installed: its crate, which is uploaded with the wheels after the vote."""
        return self.datafusion_python_crate or self.datafusion_python_tag


class Chain(Frozen):
    """Which repositories release one after the other under a strategy."""

    strategy: str
    home: str
    repositories: list[str]
    also: list[str] = Field(default_factory=list, description="A second chain that must end too, in parallel")
    users_delayed: str

    @property
    def sequence(self) -> int:
        """Repositories that must release one after another: the longer chain."""
        return max(len(self.repositories), len(self.also))

    @property
    def involved(self) -> int:
        """Repositories that must release at all."""
        return len({*self.repositories, *self.also})


class LagData(Frozen):
    """The data file."""

    schema_version: int = Field(alias="schema")
    read_on: date
    major: list[Major]
    chain: list[Chain]


class LagRow(Frozen):
    """One major under one strategy, in days after the DataFusion release. Null with a reason when a date is missing."""

    version: int
    strategy: str
    days: int | None = Field(default=None, description="Until a distributed wheel can be installed")
    plain_wait: int | None = Field(default=None, description="Extra days that users of plain datafusion wait")
    engine_days: int | None = None
    python_days: int | None = None
    reason: str | None = None


class LagSummary(Frozen):
    """One strategy over all majors with known dates."""

    strategy: str
    home: str
    median_days: float | None
    worst_days: int | None
    n: int
    of: int
    plain_wait_median: float | None
    plain_wait_worst: int | None
    sequence: int
    involved: int
    repositories: list[str]
    users_delayed: str


class ReleaseLag(Frozen):
    """The release-lag section."""

    read_on: date
    own_lag_days: int = Field(description="Assumed lag of a package of its own after its parts")
    own_lag_observed: list[int] = Field(description="Days from datafusion-python's tag to Ballista's")
    rows: list[LagRow]
    strategies: list[LagSummary]


class WhatIf(Frozen):
    """Lags assumed for a future major, in days after the DataFusion release."""

    engine_days: int = Field(ge=0)
    python_days: int = Field(ge=0)
    own_days: int = Field(default=0, ge=0)


def load_lag(path: Path = LAG_FILE) -> LagData:
    """Read the data file.

    Raises:
        UserError: missing, not TOML, or not of the expected form.
    """
    return read_record(path, LagData, "release dates")


def lag_of(major: Major, strategy: str, own_lag_days: int = 0) -> LagRow:
    """Days until a distributed wheel of `strategy` could be installed on this major.

    Under `inline` datafusion-python cannot be cut before the engine is there, and its users wait as long as it does;
    the other two are packages of their own, usable once both parts are released, `own_lag_days` later.
    """
    engine, cut, python = major.engine, major.python_cut, major.python
    if engine is None or cut is None or python is None:
        missing = "the engine's" if engine is None else "datafusion-python's"
        return LagRow(version=major.version, strategy=strategy, reason=f"{missing} release date is unknown")
    engine_days, python_days = (engine - major.datafusion).days, (python - major.datafusion).days
    wait = max(0, (engine - cut).days)
    return LagRow(
        version=major.version,
        strategy=strategy,
        days=python_days + wait if strategy == "inline" else max(engine_days, python_days) + own_lag_days,
        plain_wait=wait if strategy == "inline" else 0,
        engine_days=engine_days,
        python_days=python_days,
    )


def build_release_lag(data: LagData, strategies: Sequence[str], own_lag_days: int = 0) -> ReleaseLag:
    """The whole section for the given strategies."""
    chains = {chain.strategy: chain for chain in data.chain}
    known = [name for name in strategies if name in chains]
    rows = [lag_of(major, name, own_lag_days) for name in known for major in data.major]
    observed = [
        (major.ballista_tag - major.python_cut).days
        for major in data.major
        if major.ballista_tag is not None and major.python_cut is not None
    ]
    return ReleaseLag(
        read_on=data.read_on,
        own_lag_days=own_lag_days,
        own_lag_observed=observed,
        rows=rows,
        strategies=[_summary(chains[name], [row for row in rows if row.strategy == name]) for name in known],
    )


def _summary(chain: Chain, rows: Sequence[LagRow]) -> LagSummary:
    days = [row.days for row in rows if row.days is not None]
    waits = [row.plain_wait for row in rows if row.plain_wait is not None]
    return LagSummary(
        strategy=chain.strategy,
        home=chain.home,
        median_days=float(statistics.median(days)) if days else None,
        worst_days=max(days) if days else None,
        n=len(days),
        of=len(rows),
        plain_wait_median=float(statistics.median(waits)) if waits else None,
        plain_wait_worst=max(waits) if waits else None,
        sequence=chain.sequence,
        involved=chain.involved,
        repositories=chain.repositories,
        users_delayed=chain.users_delayed,
    )


def what_if(assumed: WhatIf, strategies: Sequence[str], *, version: int = 0) -> dict[str, LagRow]:
    """The model on assumed lags: the same arithmetic as for the past, for a major that is not out yet."""
    start = date(2000, 1, 1)
    major = Major(
        version=version,
        datafusion=start,
        datafusion_distributed_crate=start + timedelta(days=assumed.engine_days),
        datafusion_python_tag=start + timedelta(days=assumed.python_days),
    )
    return {name: lag_of(major, name, assumed.own_days) for name in strategies}
