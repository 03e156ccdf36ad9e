"""Arms for tests of the fuzzer: fixture arms in this interpreter, beside stock datafusion as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from arm_helpers import arm_file
from harness.arms import Arm, load_arm
from harness.environments import prepare
from harness.fuzz.model import FuzzResult, FuzzSettings
from harness.fuzz.run import run_fuzz


def fixture_arm(folder: Path, name: str, factory: str = "stock", env: Mapping[str, str] | None = None) -> Arm:
    """An arm that runs in the interpreter of the tests."""
    return load_arm(arm_file(folder, name, factory, env=env))


def run_fixture(
    folder: Path,
    arm: Arm,
    before: FuzzResult | None = None,
    checkpoint: Callable[[FuzzResult], None] = lambda _: None,
    **settings: object,
) -> FuzzResult:
    """Run generated queries on a fixture arm; `before` is a run to go on with."""
    oracle = fixture_arm(folder, "oracle")
    environments = {each.name: prepare(each, {}) for each in (arm, oracle)}
    given = {"arms": (arm.name,), "seed": 11, "queries": 40, "batch": 20, "shrinks": 0, "lanes": 1, **settings}
    return run_fuzz(
        FuzzSettings.model_validate(given), [arm], oracle, environments, before=before, checkpoint=checkpoint
    )
