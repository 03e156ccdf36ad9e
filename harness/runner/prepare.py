"""From what the user asked for to what a run needs: arms, data, queries, environments, expected answers.

What costs nothing is checked first, so that a typing error shows at once and not behind a build of half an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.arms import Arm, all_arms, select_arms
from harness.environments import ArmEnvironment, prepare
from harness.errors import HarnessFault
from harness.provenance import DataRecord, content_hash
from harness.runner import cold
from harness.runner.answers import OracleAnswers, ensure_answers
from harness.settings import RunSettings
from tpch.dataset import load_data
from tpch.query_sets import Query, load_query, query_set_hash

if TYPE_CHECKING:
    from harness.runner.progress import RunProgress
    from tpch.dataset import DataSet


@dataclass(frozen=True)
class Prepared:
    """Everything that exists before the first process of an arm starts."""

    arms: list[Arm]
    environments: dict[str, ArmEnvironment]
    data: DataSet
    queries: dict[str, Query]
    query_set_hash: str
    oracles: dict[str, OracleAnswers]

    def data_record(self) -> DataRecord:
        """The manifest's record of the data."""
        data = self.data
        files = {name: len(list(folder.glob("*.parquet"))) for name, folder in data.tables.items()}
        return DataRecord(
            scale_factor=data.sf, fingerprint=data.fingerprint, rows=dict(data.rows), files=files, bytes=data.bytes
        )

    def statements(self) -> dict[str, list[str]]:
        """Statements of every query, as they are run."""
        return {name: list(query.statements) for name, query in self.queries.items()}


def prepare_run(settings: RunSettings, progress: RunProgress) -> Prepared:
    """Check the settings and make what is missing.

    Raises:
        UserError: an arm, query, option or file that does not exist; no data; a damaged file.
        NotComparable: prebuilt wheels from other sources.
        HarnessFault: something could not be built or installed.
    """
    arms = select_arms(settings.arms, all_arms([Path(path) for path in settings.arm_files]))
    queries = {name: load_query(settings.query_set, name, settings.scale_factor) for name in settings.queries}
    data = load_data(settings.scale_factor)
    if settings.cold:
        cold.require_droppable(cold.data_files(data.tables))
    built = build(arms, settings.wheels)
    environments = environments_for(arms, built, progress)
    progress.stage("expected answers", len(queries))
    oracles = ensure_answers(
        settings.scale_factor, data.root, settings.query_set, queries, lambda name: progress.step(f"expected {name}")
    )
    return Prepared(arms, environments, data, queries, run_query_hash(settings.query_set, queries), oracles)


def run_query_hash(query_set: str, queries: Mapping[str, Query]) -> str:
    """Hash of the query set together with the queries chosen from it at this scale factor."""
    return content_hash({"set": query_set_hash(query_set), "queries": {n: q.digest for n, q in queries.items()}})


def build(arms: list[Arm], wheels: str | None) -> dict[str, Path]:
    """Wheels and binaries of the arms that come from this checkout."""
    names = sorted({arm.environment.build for arm in arms if arm.environment and arm.environment.build})
    if not names:
        return {}
    from harness.build import ensure_wheels

    artifacts = ensure_wheels(names, wheels_dir=Path(wheels) if wheels else None)
    return {name: artifact.path for name, artifact in artifacts.items()}


def environments_for(arms: list[Arm], built: Mapping[str, Path], progress: RunProgress) -> dict[str, ArmEnvironment]:
    """The environment of every arm; arms that share their content share the environment too."""
    progress.stage("environments", len(arms))
    found: dict[str, ArmEnvironment] = {}
    for arm in arms:
        if arm.environment is None:
            msg = f"arm `{arm.name}` was not bound to its original"
            raise HarnessFault(msg)
        found[arm.name] = prepare(arm, built, say=progress.say)
        progress.step(f"environment {arm.name}")
    return found
