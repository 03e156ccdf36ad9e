"""From a checkout and names of arms to a written `upstream_tests.json`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.arms import Arm, all_arms, load_arm, select_arms
from harness.child.keeper import Keeper
from harness.conformance.arm_site import Site
from harness.conformance.registry import HERE as CONFORMANCE
from harness.conformance.session import build_wheels, output_path
from harness.conformance.upstream.checkout import Checkout
from harness.conformance.upstream.model import (
    Cell,
    Difference,
    SuiteResult,
    SuiteRow,
    Summary,
    UpstreamCounts,
    UpstreamFile,
)
from harness.conformance.upstream.suite import TEST_TIMEOUT_S, Suite, SuiteRun
from harness.environments import prepare
from harness.errors import HarnessFault, UserError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python
    import tomli as tomllib

STOCK_ARM = "local"

DEFAULT_ARMS = ("inline", "external", "decorator")

FILE_NAME = "upstream_tests.json"

DIFFERENCES = CONFORMANCE / "upstream" / "differences.toml"

REQUIREMENTS = (
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "numpy==2.4.6; python_version >= '3.11'",
    "numpy==2.2.6; python_version < '3.11'",
    "pandas==3.1.1; python_version >= '3.11'",
    "pandas==2.3.3; python_version < '3.11'",
    "polars==2.1.0",
    "nanoarrow==0.9.0",
    "arro3-core==0.9.1",
    "psutil==7.2.2",
)
"""What the suite imports besides the arm. They go into environments of their own: timed arms never see them."""

PASSED = "passed"


@dataclass(frozen=True)
class Wanted:
    """What a run was asked for."""

    arms: Sequence[str] = ()
    arm_files: Sequence[Path] = ()
    wheels: Path | None = None
    out: Path | None = None
    select: str | None = None
    stock: str = STOCK_ARM
    timeout_s: float = TEST_TIMEOUT_S
    differences: Path = DIFFERENCES


def run_upstream(
    checkout: Checkout, wanted: Wanted, *, say: Callable[[str], None] = lambda _: None
) -> tuple[UpstreamFile, Path]:
    """Run the suite on stock and on the arms, and write what came out; returns it and the path of the file.

    Raises:
        UserError: an arm does not exist, or has no Python session.
        HarnessFault: something cannot be built, installed or run.
    """
    known = all_arms(list(wanted.arm_files))
    own = [name for path in wanted.arm_files if (name := load_arm(path).name) not in (*wanted.arms, wanted.stock)]
    names = [*wanted.arms, *own] or list(DEFAULT_ARMS)
    stock, *arms = select_arms([wanted.stock, *(name for name in dict.fromkeys(names) if name != wanted.stock)], known)
    differences = load_differences(wanted.differences)
    path = output_path(wanted.out, FILE_NAME)
    logs = path.parent / "logs" / "upstream"
    runs: dict[str, SuiteRun] = {}
    built = build_wheels([stock, *arms], wanted.wheels)
    environments = {arm.name: prepare(with_suite_requirements(arm), built, say=say) for arm in (stock, *arms)}
    with Keeper() as keeper, tempfile.TemporaryDirectory(prefix="upstream-tests-") as scratch:
        suite = Suite(checkout.lay_out(Path(scratch)), wanted.select, wanted.timeout_s, say)
        for arm in (stock, *arms):
            site = Site(keeper, arm, environments[arm.name], logs / arm.name)
            try:
                runs[arm.name] = suite.run(site, keeper)
                if arm is not stock:
                    suite.again(site, keeper, runs[arm.name], runs[stock.name])
            finally:
                site.close()
    done = compare(checkout, runs, stock.name, differences)
    write(done, path)
    return done, path


def with_suite_requirements(arm: Arm) -> Arm:
    """The arm with what the suite imports; an interpreter that is there already is left as it is."""
    environment = arm.environment
    if environment is None or environment.source == "interpreter":
        return arm
    requirements = [*environment.requirements, *REQUIREMENTS]
    return arm.model_copy(update={"environment": environment.model_copy(update={"requirements": requirements})})


def load_differences(path: Path = DIFFERENCES) -> list[Difference]:
    """The known differences.

    Raises:
        HarnessFault: the file is not TOML, or an entry is wrong.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("difference", [])
        return [Difference.model_validate(entry) for entry in entries]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        msg = f"{path}: {error}"
        raise HarnessFault(msg) from error


def compare(
    checkout: Checkout, runs: dict[str, SuiteRun], stock: str, differences: Sequence[Difference]
) -> UpstreamFile:
    """Hold every test of every arm against the same test on stock.

    Raises:
        UserError: stock passed nothing, so that there is nothing to hold an arm against.
    """
    base = runs[stock].results
    passed = [test for test, result in base.items() if result.outcome == PASSED]
    if not passed:
        msg = (
            f"stock passes none of {len(base)} tests, so nothing can be said about an arm: "
            f"see the log of `{stock}` beside {FILE_NAME}"
        )
        raise UserError(msg)
    arms = [name for name in runs if name != stock]
    strangers = {test for name in arms for test in runs[name].results if test not in base}
    rows = [_row(test, base, runs, arms, differences) for test in [*base, *sorted(strangers)]]
    counts = {name: _counts(rows, name, runs[name].contexts) for name in arms}
    outcomes = [result.outcome for result in base.values()]
    return UpstreamFile(
        checkout=checkout.record,
        collected=len(base),
        stock={outcome: outcomes.count(outcome) for outcome in dict.fromkeys(sorted(outcomes))},
        summary=Summary(upstream_tests=counts),
        tests=rows,
        problems=_problems(rows, arms, runs, differences),
    )


def _row(
    test: str, base: dict[str, SuiteResult], runs: dict[str, SuiteRun], arms: list[str], known: Sequence[Difference]
) -> SuiteRow:
    nothing = SuiteResult(outcome="not_run", reason="not collected there")
    stock = base.get(test, nothing)
    cells = {}
    for name in arms:
        own = runs[name].results.get(test, nothing)
        same = own.outcome == stock.outcome
        entry = next((found for found in known if found.covers(test, name)), None)
        cells[name] = Cell(
            same=same,
            outcome=own.outcome,
            reason=own.reason,
            explained=f"{entry.kind}: {entry.reason}" if entry is not None and not same else None,
            remote_tasks=own.remote_tasks,
        )
    return SuiteRow(test=test, stock=stock.outcome, stock_reason=stock.reason, arms=cells)


def _counts(rows: Sequence[SuiteRow], arm: str, contexts: int) -> UpstreamCounts:
    counted = [row.arms[arm] for row in rows if row.stock == PASSED]
    differing = [row.arms[arm] for row in rows if not row.arms[arm].same]
    kinds = [(cell.explained or "unexplained").partition(":")[0] for cell in differing]
    return UpstreamCounts(
        stock_passed=len(counted),
        kept=sum(cell.same for cell in counted),
        differs=len(differing),
        inherent=kinds.count("inherent"),
        unfinished=kinds.count("unfinished"),
        unexplained=kinds.count("unexplained"),
        remote=sum(cell.same and cell.remote_tasks > 0 for cell in counted),
        contexts=contexts,
    )


def _problems(
    rows: Sequence[SuiteRow], arms: list[str], runs: dict[str, SuiteRun], known: Sequence[Difference]
) -> list[str]:
    found = []
    for name in arms:
        for row in rows:
            cell = row.arms[name]
            if not cell.same and cell.explained is None:
                reason = f": {cell.reason}" if cell.reason else ""
                found.append(f"{row.test} on {name}: {cell.outcome}, on stock {row.stock}{reason}"[:400])
        if runs[name].distributed and not runs[name].contexts:
            found.append(f"{name}: no test made a context of the strategy, so the figures say nothing about it")
        for entry in known:
            covered = [row for row in rows if entry.covers(row.test, name) and row.stock == PASSED]
            if covered and all(row.arms[name].same for row in covered):
                found.append(
                    f"{entry.test} on {name}: expected to differ ({entry.reason}), but it is the same: "
                    f"remove the entry from {DIFFERENCES.name}"
                )
    return found


def write(done: UpstreamFile, path: Path) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    text: str = json.dumps(_plain(done), indent=1, ensure_ascii=False)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)


def _plain(done: UpstreamFile) -> dict[str, Any]:
    return done.model_dump(mode="json")
