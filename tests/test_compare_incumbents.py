"""Result files of other tools: read as they are written, laid beside each other, never promoted to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from harness.incumbents import read_results
from harness.model import Reach

TIMES = {1: [120.0, 100.0, 101.0], 6: [40.0, 30.0, 31.0], 18: [400.0, 390.0, 391.0]}


def dfbench(path: Path, factor: float = 1.0, *, failed: int | None = None, cores: int = 8, **context: Any) -> Path:
    """As `dfbench tpch -o FILE` of apache/datafusion writes it (benchmarks/src/util/run.rs)."""
    queries = [
        {
            "query": f"Query {number}",
            "iterations": [] if number == failed else [{"elapsed": t * factor, "row_count": number} for t in times],
            "start_time": 1_760_000_000,
            "success": number != failed,
        }
        for number, times in TIMES.items()
    ]
    arguments = ["tpch", "--iterations", "3", "--path", "/data/tpch_sf1", "--format", "parquet", "-o", str(path)]
    about = {
        "benchmark_version": "55.0.0", "datafusion_version": "55.0.0", "num_cpus": cores, "start_time": 1_760_000_000,
        "arguments": arguments, **context,
    }  # fmt: skip
    path.write_text(json.dumps({"queries": queries, "context": about}, indent=2), encoding="utf-8")
    return path


def engine(
    folder: Path, factor: float = 1.0, *, error: int | None = None, local: int | None = None, **more: Any
) -> Path:
    """As datafusion-distributed's benchmarks store it (benchmarks/src/results.rs): one file per query."""
    folder.mkdir(parents=True)
    for number, times in TIMES.items():
        iterations = [
            {
                "row_count": number, "n_tasks": 0 if number == local else 6, "elapsed": time * factor,
                "error": "worker went away\nbacktrace" if number == error and place == 1 else None,
            }
            for place, time in enumerate(times)
        ]  # fmt: skip
        text = json.dumps({"id": f"q{number}", "dataset": "tpch_sf1", "iterations": iterations, **more}, indent=2)
        (folder / f"q{number}.json").write_text(text, encoding="utf-8")
    return folder


def compare(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    code = main(["compare", *map(str, words)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_two_files_of_dfbench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = dfbench(tmp_path / "old.json"), dfbench(tmp_path / "new.json", 1.25)
    code, out, _ = compare(capsys, old, new)
    assert code == EXIT_OK, "times of another tool judge nothing"
    assert "q01: prev=   101.0 ms, new=   126.2 ms, 1.25x slower" in out
    assert "GEOMEAN: 1.25x slower of medians, without an interval" in out
    assert "3 of 3 queries" in out
    assert "no intervals, no verdicts" in out
    for word in ("faster ", "confirmed", "likely", "equivalent", "✖"):
        assert word not in out


def test_two_folders_of_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = compare(capsys, engine(tmp_path / "a" / "main"), engine(tmp_path / "b" / "branch", 0.5))
    assert code == EXIT_OK
    assert "2.00x faster" in out
    assert "main of" in out


def test_the_remote_runner_and_the_run_file_beside_it(tmp_path: Path) -> None:
    folder = engine(tmp_path / "x", engine="trino")
    (folder / "q1.json").write_text(
        json.dumps(
            {"id": "q1", "dataset": "tpch_sf1", "engine": "trino", "iterations": [{"rowCount": 4, "elapsed": 9}]}
        ),
        encoding="utf-8",
    )
    (folder / "previous.json").write_text(
        json.dumps({"workers": 4, "threads": 2, "start_time": 1, "dataset": "tpch_sf1", "branch": "b", "results": [0]}),
        encoding="utf-8",
    )
    found = read_results(folder)
    assert found.rows("q01") == {4}
    assert found.label.startswith("trino of")
    assert found.queries == ["q01", "q06", "q18"]


@pytest.mark.parametrize("kind", ["dfbench", "engine"])
def test_a_failure_never_makes_a_total(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    if kind == "dfbench":
        sides = dfbench(tmp_path / "old.json"), dfbench(tmp_path / "new.json", failed=18)
    else:
        sides = engine(tmp_path / "old"), engine(tmp_path / "new", error=18)
    code, out, _ = compare(capsys, *sides)
    assert code == EXIT_REGRESSION
    assert "NEWLY FAILING q18: error" in out
    assert "TOTAL: none (valid queries differ: base 3, new 2 (q18)); 2 of 3 queries" in out
    assert "GEOMEAN: none" in out


def test_a_query_without_tasks_is_kept_out_of_a_distributed_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = compare(capsys, engine(tmp_path / "old"), engine(tmp_path / "new", local=6))
    assert code == EXIT_OK
    assert "not distributed, kept out of the total" in out
    assert "2 of 3 queries" in out


def test_a_result_without_any_task_is_single_node(tmp_path: Path) -> None:
    folder = engine(tmp_path / "one")
    for file in folder.glob("*.json"):
        file.write_text(file.read_text(encoding="utf-8").replace('"n_tasks": 6', '"n_tasks": 0'), encoding="utf-8")
    assert {sample.reach for sample in read_results(folder).samples} == {Reach.SINGLE_NODE}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cores": 16}, "cores: 8 / 16"),
        ({"workers": 4}, "workers: not told / 4"),
        ({"arguments": ["tpch", "--path", "/data/tpch_sf10"]}, "data: tpch_sf1 / tpch_sf10"),
        ({"arguments": ["clickbench", "--path", "/data/tpch_sf1"]}, "benchmark: tpch / clickbench"),
    ],
)
def test_mixed_results_are_refused_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str
) -> None:
    old, new = dfbench(tmp_path / "old.json"), dfbench(tmp_path / "new.json", **change)
    code, out, err = compare(capsys, old, new)
    assert (code, out) == (EXIT_NOT_COMPARABLE, "")
    assert words in err
    code, out, _ = compare(capsys, old, new, "--force")
    assert code == EXIT_OK
    assert f"NOTE FORCED although {words}" in out


def test_other_row_counts_are_other_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = dfbench(tmp_path / "old.json"), dfbench(tmp_path / "new.json")
    new.write_text(new.read_text(encoding="utf-8").replace('"row_count": 18', '"row_count": 57'), encoding="utf-8")
    code, _, err = compare(capsys, old, new)
    assert code == EXIT_NOT_COMPARABLE
    assert "rows: q18 18 or 57" in err


def test_a_folder_of_several_data_sets_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = engine(tmp_path / "old")
    text = (folder / "q6.json").read_text(encoding="utf-8")
    (folder / "q6.json").write_text(text.replace("tpch_sf1", "tpch_sf10"), encoding="utf-8")
    code, _, err = compare(capsys, folder, folder)
    assert code == EXIT_NOT_COMPARABLE
    assert "mixes results of several data sets (tpch_sf1, tpch_sf10)" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "expected what `dfbench ... -o FILE` writes"),
        ('{"context": {}, "queries": [{"query": "all", "iterations": []}]}', "expected a name with a number"),
        ('{"context": {}, "queries": [{"query": 1, "iterations": [{"elapsed": 0}]}]}', "took 0, expected milliseconds"),
        ('{"context": {}, "queries": [{"query": 1, "iterations": [3]}]}', "expected `elapsed` and a row count"),
        ('{"context": {}, "queries": [{"query": 1}, {"query": "q1"}]}', "holds q01 twice"),
    ],
)
def test_damaged_files_are_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    code, out, err = compare(capsys, file, dfbench(tmp_path / "good.json"))
    assert (code, out) == (EXIT_USAGE, "")
    assert words in err


def test_one_set_of_results_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = compare(capsys, dfbench(tmp_path / "old.json"))
    assert code == EXIT_USAGE
    assert "give a second one" in err
    code, _, err = compare(capsys, dfbench(tmp_path / "old.json"), "--base", "inline")
    assert code == EXIT_USAGE
    assert "use --arm" in err
