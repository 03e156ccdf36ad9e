"""The corpus: files read back as they were written, and every committed one is a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz_helpers import fixture_arm
from harness.arms import all_arms
from harness.environments import prepare
from harness.errors import UserError
from harness.fuzz.batch import make_batch
from harness.fuzz.command import environments_for
from harness.fuzz.corpus import CORPUS, CorpusCase, load_case, load_corpus, show_rows, write_case
from harness.fuzz.model import Case, FuzzSettings
from harness.fuzz.rerun import rerun


def case(number: int) -> CorpusCase:
    batch = make_batch(FuzzSettings(arms=("inline",), seed=8), number, 3)
    return CorpusCase(
        kind="limit below a broadcast", found="inline, seed 8/0/0", arms=["bare"],
        expected="1 rows\n'a', 2", seen="0 rows",
        case=Case(sql=batch.queries[0].sql(), tables=batch.tables, options=batch.options),
    )  # fmt: skip


@pytest.mark.parametrize("number", range(6))
def test_a_file_reads_back_equal(tmp_path: Path, number: int) -> None:
    path = tmp_path / "case.toml"
    write_case(case(number), path)
    assert load_case(path) == case(number)


@pytest.mark.parametrize(
    ("change", "names"),
    [("sql = ", "sql"), ("[options]", "options"), ("kind = ", "kind")],
)
def test_a_damaged_file_is_named(tmp_path: Path, change: str, names: str) -> None:
    path = tmp_path / "case.toml"
    write_case(case(0), path)
    path.write_text(
        path.read_text(encoding="utf-8").replace(change, change.replace(names, f"x{names}")), encoding="utf-8"
    )
    with pytest.raises(UserError, match="case.toml"):
        load_case(path)


def test_answers_are_shown_short() -> None:
    text = show_rows([{"a": number, "b": None} for number in range(40)])
    assert text.startswith("40 rows\n0, None\n")
    assert text.endswith("28 more")


@pytest.mark.parametrize("name", ["inline", "external", "decorator"])
def test_a_strategy_answers_the_corpus_as_its_files_say(name: str) -> None:
    """A case that was mended stays mended; one that is expected to fail must fail."""
    known = all_arms([])
    arm, oracle = known[name], known["local"]
    environments = environments_for([arm, oracle], None, print)
    done = list(rerun(load_corpus(), [arm], oracle, environments))
    assert {case.case for case in done} == set(load_corpus())
    assert [case for case in done if not case.as_expected] == []


@pytest.mark.parametrize(
    ("factory", "expected", "right"),
    [
        ("stock", [], True),
        ("stock", ["mine"], False),
        ("liar:make_context", [], False),
        ("liar:make_context", ["mine"], True),
    ],
)
def test_a_rerun_is_strict(tmp_path: Path, factory: str, expected: list[str], right: bool) -> None:
    """Right where it must be right, wrong where the file says so; anything else is told."""
    env = {"FIXTURE_LIE": "partial", "FIXTURE_MARK": "SELECT"}
    arm, oracle = fixture_arm(tmp_path, "mine", factory, env), fixture_arm(tmp_path, "oracle")
    environments = {each.name: prepare(each, {}) for each in (arm, oracle)}
    cases = {"limit": load_corpus()["single-partition-limit"].model_copy(update={"arms": expected})}
    (done,) = rerun(cases, [arm], oracle, environments)
    assert done.as_expected is right
    assert bool(done.reason) is not (right and not expected)


def test_the_committed_corpus_is_readable() -> None:
    assert len(load_corpus()) == len(list(CORPUS.glob("*.toml")))
