"""Batches side by side: the figures of one lane after the other, and no lane outlives its run."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from fuzz_helpers import fixture_arm, run_fixture
from harness.errors import HarnessFault
from harness.fuzz.lanes import LOOK_AHEAD, in_lanes
from harness.fuzz.model import FuzzResult, Verdict


class Toy:
    """A lane that answers with the square; `slow` and `broken` jobs take their time or fail."""

    def __init__(self, slow: int = -1, broken: int = -1) -> None:
        self.slow, self.broken = slow, broken
        self.done: list[int] = []
        self.closed = threading.Event()
        self.at_work = False

    def run(self, job: int) -> int:
        assert not self.at_work, "two jobs at a time"
        self.at_work = True
        if job == self.broken:
            raise ValueError(job)
        if job == self.slow:
            self.closed.wait(0.3)
        time.sleep(0.001)
        self.at_work = False
        self.done.append(job)
        return job * job

    def close(self) -> None:
        self.closed.set()


def test_results_come_in_the_order_of_the_jobs() -> None:
    lanes = [Toy(slow=0), Toy(slow=0), Toy(slow=0)]
    assert list(in_lanes(lanes, range(50))) == [number * number for number in range(50)]
    assert sorted(job for lane in lanes for job in lane.done) == list(range(50))
    assert sum(bool(lane.done) for lane in lanes) > 1
    assert all(lane.closed.is_set() for lane in lanes)


def test_nothing_to_do_starts_nothing() -> None:
    assert list(in_lanes([Toy()], [])) == []


def test_a_job_that_raises_ends_all() -> None:
    lanes = [Toy(broken=3), Toy(broken=3)]
    with pytest.raises(ValueError, match="3"):
        list(in_lanes(lanes, range(50)))
    assert all(lane.closed.is_set() for lane in lanes)


def test_no_job_begins_once_it_is_time() -> None:
    lanes = [Toy()]
    begun = iter([True] * 5)
    got = list(in_lanes(lanes, range(50), lambda: next(begun, False)))
    assert got == [number * number for number in range(len(got))]
    assert len(got) <= 5
    assert lanes[0].done[: len(got)] == list(range(len(got)))


def test_a_caller_that_leaves_closes_the_lanes() -> None:
    lanes = [Toy(slow=1), Toy(slow=1)]
    with closing(in_lanes(lanes, range(50))) as results:
        assert next(results) == 0
    assert all(lane.closed.is_set() for lane in lanes)
    assert sum(len(lane.done) for lane in lanes) <= LOOK_AHEAD * 2 + 1


def test_figures_do_not_depend_on_lanes(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "DISTINCT"})
    seen: list[FuzzResult] = []
    one = run_fixture(tmp_path, arm, queries=24, batch=6, lanes=1)
    two = run_fixture(tmp_path, arm, queries=24, batch=6, lanes=2, checkpoint=seen.append)
    assert one.arms == two.arms
    assert one.findings == two.findings
    assert Verdict.MISMATCH in {finding.verdict for finding in two.findings}
    assert [result.batches for result in seen] == [1, 2, 3, 4]


def test_a_broken_arm_ends_every_lane(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "broken", "no_such_module:make_context")
    before = threading.active_count()
    with pytest.raises(HarnessFault, match="no_such_module"):
        run_fixture(tmp_path, arm, queries=8, batch=2, lanes=2)
    assert threading.active_count() == before
