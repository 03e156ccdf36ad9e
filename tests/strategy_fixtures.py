"""Fixtures for the built strategies. Everything is built before pytest starts; here it is only looked up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.arms import shipped_arms
from harness.build import ensure_wheels
from harness.environments import ArmEnvironment, prepare
from strategy_helpers import STRATEGIES, Strategy, WorkerProcess, cluster

ROWS, FILES, KEYS = 1000, 4, 10


@pytest.fixture(scope="session")
def built() -> dict[str, Path]:
    """Wheels and the native binary of this checkout."""
    artifacts = ensure_wheels([*STRATEGIES, "native"], progress=False)
    return {name: artifact.path for name, artifact in artifacts.items()}


@pytest.fixture(scope="session")
def environments(built: dict[str, Path]) -> dict[str, ArmEnvironment]:
    """The environment of every shipped arm that has one of its own."""
    arms = shipped_arms()
    return {name: prepare(arms[name], built) for name in (*STRATEGIES, "native", "local")}


@pytest.fixture(scope="session")
def stock_python() -> Path:
    """An interpreter with the stock wheel: the tests' own."""
    return Path(sys.executable)


@pytest.fixture(scope="session", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest, environments: dict[str, ArmEnvironment]) -> Strategy:
    """Each strategy in turn."""
    python = environments[request.param].python
    assert python is not None
    return Strategy(request.param, python)


@pytest.fixture(scope="session")
def workers(strategy: Strategy) -> Iterator[list[WorkerProcess]]:
    """Two worker processes of the strategy, shared by the tests that do not harm them."""
    with cluster(strategy, 2) as processes:
        yield processes


@pytest.fixture(scope="session")
def split_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 1000 rows over four Parquet files: k = v % 10, v = 0..999."""
    folder = tmp_path_factory.mktemp("split") / "t"
    folder.mkdir()
    for part in range(FILES):
        values = list(range(part, ROWS, FILES))
        pq.write_table(pa.table({"k": [v % KEYS for v in values], "v": values}), folder / f"{part}.parquet")
    return folder


@pytest.fixture(scope="session")
def fingerprints(environments: dict[str, ArmEnvironment]) -> dict[str, str]:
    """The engine fingerprint that each build tells of itself."""
    import json
    import subprocess

    told = {}
    for name in STRATEGIES:
        python = environments[name].python
        assert python is not None
        told[name] = Strategy(name, python).run("answer(factory.build_info()['fingerprint'])")
    binary = environments["native"].binary
    assert binary is not None
    done = subprocess.run([str(binary), "build-info"], capture_output=True, text=True, check=True, timeout=60)
    told["native"] = json.loads(done.stdout)["fingerprint"]
    return told
