"""The fuzzer against arms that misbehave: whatever an arm does, it shows in its tally, and the run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from fuzz_helpers import fixture_arm, run_fixture
from harness.cli import main
from harness.errors import HarnessFault, NotComparable, UserError
from harness.fuzz.command import Request, fuzz
from harness.fuzz.judge import judge, signature, sort_keys
from harness.fuzz.kinds import Kind
from harness.fuzz.model import ArmTally, FuzzResult, FuzzSettings, Verdict
from harness.fuzz.session import Answer
from harness.fuzz.tree import Expr, Item, Order, Select, Table
from harness.model import Status


def ok(**columns: list[object]) -> Answer:
    return Answer(Status.OK, table=pa.table(columns))


def test_an_honest_arm_is_equal(tmp_path: Path) -> None:
    result = run_fixture(tmp_path, fixture_arm(tmp_path, "honest"))
    tally = result.arms["honest"]
    assert tally.run == tally.equal > 25
    assert tally.vacuous < tally.equal / 2
    assert not result.findings


def test_an_arm_that_loses_rows_is_caught(tmp_path: Path) -> None:
    """Lies about every answer that has rows: not one of them may pass for equal."""
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "SELECT"})
    tally = run_fixture(tmp_path, arm, queries=16, batch=8).arms["liar"]
    assert tally.mismatch > 5
    assert tally.equal == tally.vacuous


def test_an_arm_that_changes_one_cell_is_caught(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "cell", "FIXTURE_MARK": "SELECT"})
    tally = run_fixture(tmp_path, arm, queries=16, batch=8).arms["liar"]
    assert tally.mismatch > 5
    # NaN + 1 is NaN: that lie changes nothing.
    assert tally.equal - tally.vacuous <= 2


def test_a_lie_is_shrunk_to_nearly_nothing(tmp_path: Path) -> None:
    """The liar spoils whatever names `t1`, so one table and one column must be left."""
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "partial", "FIXTURE_MARK": " AS t1"})
    result = run_fixture(tmp_path, arm, shrinks=1, queries=12)
    finding = result.findings[0]
    assert finding.verdict is Verdict.MISMATCH
    assert finding.shrunk
    assert finding.rate == 1.0
    assert len(finding.case.sql) < 90, finding.case.sql
    assert len(finding.case.tables) == 1
    assert finding.case.tables[0].rows <= 2
    assert not set(finding.case.options.distributed) - {"distributed.file_scan_config_bytes_per_partition"}
    assert finding.original_sql != finding.case.sql


def test_a_crash_is_counted_and_the_run_goes_on(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "crash", "crash:make_context", {"FIXTURE_MARK": "GROUP BY"})
    tally = run_fixture(tmp_path, arm, queries=16, batch=16).arms["crash"]
    assert tally.crash >= 1
    assert tally.equal >= 1


def test_a_hang_is_a_timeout_and_the_run_goes_on(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "hang", "hang:make_context", {"FIXTURE_MARK": "GROUP BY"})
    tally = run_fixture(tmp_path, arm, queries=8, batch=8, timeout_s=5.0).arms["hang"]
    assert tally.timeout >= 1
    assert tally.equal >= 1


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """In two sittings as in one: the same figures, the same queries."""
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "DISTINCT"})
    seen: list[FuzzResult] = []
    whole = run_fixture(tmp_path, arm, queries=12, batch=6, checkpoint=seen.append)
    assert [found.batches for found in seen] == [1, 2]
    first = run_fixture(tmp_path, arm, queries=6, batch=6)
    assert first.arms == seen[0].arms
    rest = run_fixture(tmp_path, arm, before=first, queries=12, batch=6)
    assert rest.arms == whole.arms
    assert rest.batches == whole.batches == 2
    assert rest.elapsed_s > first.elapsed_s


def test_what_is_not_shrunk_is_kept_as_it_was_found(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "liar", "liar:make_context", {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "SELECT"})
    result = run_fixture(tmp_path, arm, queries=8, batch=8)
    tally = result.arms["liar"]
    assert len(result.findings) == tally.run - tally.equal > 1
    assert not any(finding.shrunk for finding in result.findings)
    assert all(finding.case.sql == finding.original_sql for finding in result.findings)


def test_answers_of_two_builds_are_not_added_up(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "honest")
    first = run_fixture(tmp_path, arm, queries=4, batch=4)
    other = first.model_copy(update={"engine": {"honest": "0" * 64}})
    with pytest.raises(NotComparable, match="begin a new run"):
        run_fixture(tmp_path, arm, before=other, queries=8, batch=4)


def test_what_a_run_goes_on_with_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "generated_queries.json"
    path.write_text("{}", encoding="utf-8")
    assert main(["fuzz", "--resume", str(path)]) == 2
    assert main(["fuzz", "--resume", str(path), "--arm", "inline"]) == 2
    assert "leave out --arm" in capsys.readouterr().err
    done = FuzzResult(
        settings=FuzzSettings(arms=("inline",), seed=3), arms={}, elapsed_s=1.0, queries_per_s=1.0, stopped_because="x"
    )
    path.write_text(done.model_dump_json(), encoding="utf-8")
    assert main(["fuzz", "--resume", str(path), "--seed", "4"]) == 2
    assert "leave out --seed" in capsys.readouterr().err
    assert main(["fuzz", "--resume", str(path), "--queries", "4"]) == 2
    assert "give more" in capsys.readouterr().err


def test_an_arm_that_never_starts_ends_the_run(tmp_path: Path) -> None:
    arm = fixture_arm(tmp_path, "broken", "no_such_module:make_context")
    with pytest.raises(HarnessFault, match="no_such_module"):
        run_fixture(tmp_path, arm, queries=2)


def test_verdicts() -> None:
    one, error = ok(a=[1]), Answer(Status.ERROR, "boom")
    assert judge(one, ok(a=[1])).verdict is Verdict.EQUAL
    assert judge(one, ok(a=[2])).verdict is Verdict.MISMATCH
    assert judge(one, ok(a=[1, 1])).verdict is Verdict.MISMATCH
    assert judge(one, error).verdict is Verdict.ERROR_ONLY_DISTRIBUTED
    assert judge(error, one).verdict is Verdict.ERROR_ONLY_LOCAL
    assert judge(error, error).verdict is Verdict.UNSUPPORTED
    assert judge(error, Answer(Status.CRASH)).verdict is Verdict.CRASH
    assert judge(one, Answer(Status.TIMEOUT)).verdict is Verdict.TIMEOUT
    assert judge(ok(a=[]), ok(a=[])).vacuous


def test_floats_are_compared_with_tolerance_and_integers_without() -> None:
    assert judge(ok(a=[0.1 + 0.2]), ok(a=[0.3])).verdict is Verdict.EQUAL
    assert judge(ok(a=[0.3]), ok(a=[0.31])).verdict is Verdict.MISMATCH
    assert judge(ok(a=[10**15]), ok(a=[10**15 + 1])).verdict is Verdict.MISMATCH


def test_the_outer_order_is_checked() -> None:
    items = (Item(Expr(Kind.INT, "t1.k"), "c1"), Item(Expr(Kind.INT, "t1.id"), "c2"))
    query = Select(
        items,
        Table("t0", "t1"),
        order=(
            Order(Expr(Kind.INT, "c2"), descending=True),
            Order(Expr(Kind.INT, "abs({0})", (Expr(Kind.INT, "c1"),))),
        ),
    )
    keys = sort_keys(query)
    assert [(key.column, key.descending) for key in keys] == [(1, True)]
    expected = ok(c1=[1, 2], c2=[9, 8])
    assert judge(expected, ok(c1=[1, 2], c2=[9, 8]), keys).verdict is Verdict.EQUAL
    assert judge(expected, ok(c1=[2, 1], c2=[8, 9]), keys).verdict is Verdict.MISMATCH
    assert judge(expected, ok(c1=[2, 1], c2=[8, 9])).verdict is Verdict.EQUAL


def test_run_is_the_sum_of_its_parts() -> None:
    tally = ArmTally(seed=1)
    for verdict in Verdict:
        tally = tally.with_one(verdict, distributed=True, vacuous=False)
    assert tally.run == tally.equal + tally.mismatch + tally.error_only_distributed + tally.crash + tally.timeout == 5
    assert tally.distributed == tally.run


def test_signatures_group_by_shape() -> None:
    judged = judge(ok(a=[1]), ok(a=[2]))
    left, right = "SELECT a FROM t0 AS t1 LIMIT 3", "SELECT b FROM t9 AS t2 LIMIT 99"
    assert signature(judged, left) == signature(judged, right)
    assert signature(judged, left) != signature(judged, "SELECT a FROM t0 AS t1 CROSS JOIN t2")


def test_unknown_names_are_refused_with_near_matches() -> None:
    with pytest.raises(UserError, match="inline"):
        fuzz(Request(arms=("inlin",)), say=print, found=print)
    with pytest.raises(UserError, match=r"distributed\.compression"):
        fuzz(Request(arms=("inline",), overrides=("compression=none",)), say=print, found=print)


def test_the_command_writes_the_result(tmp_path: Path) -> None:
    from arm_helpers import arm_file
    from harness.cli import cli

    files = [arm_file(tmp_path, name) for name in ("mine", "oracle")]
    out = tmp_path / "deep" / "generated_queries.json"
    arguments = ["fuzz", "--arm", "mine", "--oracle", "oracle", "--queries", "6", "--seed", "3", "--out", str(out)]
    done = CliRunner().invoke(
        cli, [*arguments, *(part for file in files for part in ("--arm-file", str(file)))], standalone_mode=False
    )
    assert done.exception is None, done.output
    assert done.return_value == 0
    stored = json.loads(out.read_text(encoding="utf-8"))
    assert FuzzResult.model_validate(stored).arms["mine"].equal == stored["arms"]["mine"]["equal"]
    assert stored["settings"]["seed"] == 3
