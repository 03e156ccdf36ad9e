"""Arms of the conformance tests: each with its environment, its workers and the keeper of its processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.arms import select_arms, shipped_arms
from harness.child.keeper import Keeper
from harness.conformance.arm_site import Site
from harness.conformance.prerequisites import Prerequisites
from harness.conformance.session import DEFAULT_ARMS, open_sites


class Bench:
    """One arm that is ready to be checked."""

    def __init__(self, site: Site, keeper: Keeper, folder: Path) -> None:
        self.site = site
        self.keeper = keeper
        self.folder = folder
        self.prerequisites = Prerequisites(keeper, folder / "prerequisites")


@pytest.fixture(scope="session", params=DEFAULT_ARMS)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Each arm in turn; its shared workers live as long as its tests."""
    folder = tmp_path_factory.mktemp(f"conformance-{request.param}")
    with open_sites(select_arms([request.param], shipped_arms()), folder / "logs") as (keeper, sites):
        yield Bench(sites[0], keeper, folder)
