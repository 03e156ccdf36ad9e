"""Fixtures that several test files share."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tpch.generate import DataSet, ensure_data

pytest_plugins = ["strategy_fixtures"]

# A deadline per example would make every property test a timed test, failing on a busy machine only.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def tpch_sf001(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    """TPC-H at SF0.01, generated once per session into a data root of its own. Read only: copy it to change it."""
    return ensure_data("0.01", tmp_path_factory.mktemp("tpch-data"), progress=False)
