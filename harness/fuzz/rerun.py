"""Runs cases of the corpus again: on an arm, beside one node, strictly."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from harness.arms import Arm
from harness.child.keeper import Keeper
from harness.environments import ArmEnvironment
from harness.fuzz.check import Checker
from harness.fuzz.corpus import CorpusCase
from harness.fuzz.model import BAD, Verdict
from harness.fuzz.session import FuzzSession
from harness.model import Frozen

CASE_TIMEOUT_S = 30.0
"""Seconds for one query of the corpus: they are tiny."""


class Rerun(Frozen):
    """What became of one case on one arm. `as_expected`: it is right, or it fails where its file says so."""

    case: str
    arm: str
    verdict: Verdict
    as_expected: bool
    reason: str


def rerun(
    cases: Mapping[str, CorpusCase], arms: Sequence[Arm], oracle: Arm, environments: Mapping[str, ArmEnvironment]
) -> Iterator[Rerun]:
    """Run every case on every arm.

    A case that one node refuses, or answers differently under other plans, proves nothing and is not as expected.

    Raises:
        HarnessFault: an arm cannot be started.
    """
    scratch = Path(tempfile.mkdtemp(prefix="df-strategies-corpus-"))
    try:
        with ExitStack() as stack:
            keeper = stack.enter_context(Keeper())

            def session(arm: Arm) -> FuzzSession:
                made = FuzzSession(keeper, arm, environments[arm.name], scratch / arm.name, CASE_TIMEOUT_S)
                return stack.enter_context(made)

            local = session(oracle)
            for arm in arms:
                checker = Checker(local, session(arm), scratch / "tables" / arm.name)
                for name, case in cases.items():
                    yield _judge(name, case, arm.name, checker)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _judge(name: str, case: CorpusCase, arm: str, checker: Checker) -> Rerun:
    judged = checker.check(case.case, case.sort_keys, tries=case.repetitions)
    if arm in case.arms:
        right = judged.verdict in BAD
        reason = (
            judged.reason if right else f"expected to fail on {arm}, but it is {judged.verdict.value}: correct `arms`"
        )
    else:
        right = judged.verdict is Verdict.EQUAL
        reason = judged.reason
    return Rerun(case=name, arm=arm, verdict=judged.verdict, as_expected=right, reason=reason)
