"""The command line: help that answers at once, and one clear message with the right exit code for bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from arm_helpers import aa_file, arm_file
from harness.cli import cli, main
from harness.errors import (
    EXIT_HARNESS_FAULT,
    EXIT_NOT_COMPARABLE,
    EXIT_OK,
    EXIT_REGRESSION,
    EXIT_USAGE,
)
from harness.rundir import MANIFEST, write_atomic
from runner_helpers import ROOT, command_line, invoke
from tpch.generate import DataSet

COMMANDS = ("compare", "data", "doctor", "report", "run", "worker")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tpch_sf001: DataSet, tmp_path: Path
) -> Run:
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(tpch_sf001.root))
    monkeypatch.setenv("DF_STRATEGIES_RUNS", str(tmp_path / "runs"))

    def _call(*words: str) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        assert "Traceback" not in said.err, said.err
        return code, said.out, said.err

    return _call


@pytest.fixture(scope="module")
def stored(tpch_sf001: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: two single-node arms and one with workers, 5 rounds of two queries."""
    folder = tmp_path_factory.mktemp("stored")
    arms = [
        arm_file(folder, "toy", "toy:make_context", behaviour="ready"),
        arm_file(folder, "alone", kind="baseline"),
        arm_file(folder, "bad", "broken:make_context", env={"FIXTURE_MARK": "l_discount BETWEEN"}),
    ]
    done = invoke(command_line(arms, folder / "runs", "--rounds", "5", "--no-recurrence"), tpch_sf001.root)
    assert done.returncode == EXIT_REGRESSION, done.stderr
    return next((folder / "runs").glob(f"*/{MANIFEST}")).parent


def test_help_lists_every_command_with_examples(call: Run) -> None:
    code, out, _ = call("--help")
    assert code == EXIT_OK
    assert set(COMMANDS) <= set(cli.list_commands(None))  # type: ignore[arg-type]
    for name in COMMANDS:
        assert f"  {name} " in out
        code, text, _ = call(name, "--help")
        assert code == EXIT_OK
        assert "Examples:" in text
        assert f"df-strategies {name}" in text


def test_every_option_is_explained() -> None:
    import click

    for name in cli.list_commands(None):  # type: ignore[arg-type]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from harness.cli import main; main(['run', '--help']); main(['--help']);"
        "heavy = {'pydantic', 'pyarrow', 'numpy', 'duckdb', 'datafusion', 'rich', 'pandas'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_python_m_harness_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "nonsense"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == EXIT_USAGE
    assert "No such command 'nonsense'" in done.stderr


RUN = ("run", "--quiet", "--no-report", "--no-baselines", "--sf", "0.01", "--rounds", "1", "--warmups", "0")

BAD_INPUT = [
    (("rum",), EXIT_USAGE, "Did you mean run"),
    (("run", "--round", "3"), EXIT_USAGE, "--rounds"),
    ((*RUN, "--arms", "inlin"), EXIT_USAGE, "unknown arm `inlin`. Did you mean `inline`"),
    ((*RUN, "--arms", ""), EXIT_USAGE, "no arm given"),
    ((*RUN, "--arms", "inline,inline"), EXIT_USAGE, "`inline` is given 2 times"),
    ((*RUN, "--arms", "aa"), EXIT_USAGE, "none of them is in this run"),
    ((*RUN, "--queries", "23"), EXIT_USAGE, "unknown query 23"),
    ((*RUN, "--queries", "first"), EXIT_USAGE, "cannot read 'first'"),
    ((*RUN, "--queries", "5-1"), EXIT_USAGE, "runs backwards"),
    ((*RUN, "--query-set", "tpcds"), EXIT_USAGE, "unknown query set 'tpcds': expected one of spec, upstream"),
    (("run", "--sf", "3"), EXIT_USAGE, "unknown scale factor '3': expected one of 0.01, 0.1, 1, 10"),
    (("run", "--no-baselines", "--arms", "local", "--sf", "0.1", "--quiet"), EXIT_USAGE, "no data for SF0.1"),
    ((*RUN, "--rounds", "0"), EXIT_USAGE, "0 is not in the range"),
    ((*RUN, "--rounds", "many"), EXIT_USAGE, "'many' is not a valid integer"),
    ((*RUN, "--workers", "-1"), EXIT_USAGE, "-1 is not in the range"),
    ((*RUN, "--timeout", "0"), EXIT_USAGE, "0"),
    ((*RUN, "--set", "batch_size"), EXIT_USAGE, "expected KEY=VALUE"),
    (
        (*RUN, "--form", "dataframe", "--query-set", "upstream"),
        EXIT_USAGE,
        "DataFrame queries answer as the set `spec`",
    ),
    ((*RUN, "--arm-file", "/no/such/arm.toml"), EXIT_USAGE, "arm file /no/such/arm.toml: cannot be read"),
    (("run", "--resume", "never"), EXIT_USAGE, "run `never` not found"),
    (("run", "--resume", "latest", "--rounds", "3", "--arms", "inline"), EXIT_USAGE, "leave out: arms, rounds"),
    (("compare", "never"), EXIT_USAGE, "run `never` not found"),
    (("compare",), EXIT_USAGE, "Missing argument"),
    (("report", "never"), EXIT_USAGE, "run `never` not found"),
    (("data", "--sf", "7"), EXIT_USAGE, "unknown scale factor '7'"),
    (("worker", "locl"), EXIT_USAGE, "Did you mean `local`"),
    (("worker", "local"), EXIT_USAGE, "runs in one process and has no workers"),
]


@pytest.mark.parametrize(("words", "code", "message"), BAD_INPUT, ids=[" ".join(entry[0][-2:]) for entry in BAD_INPUT])
def test_bad_input_is_one_message(call: Run, tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    found, out, err = call(*words)
    assert (found, out) == (code, "")
    assert message in err
    assert len([line for line in err.splitlines() if line.startswith("Error:")]) == 1
    assert not (tmp_path / "runs").exists() or list((tmp_path / "runs").iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    ("behaviour", "timeout_s", "message"),
    [
        ("bad-url", 20.0, "ftp://127.0.0.1"),
        ("unreachable", 20.0, "cannot be reached"),
        ("silent", 1.0, "not ready within 1 s"),
        ("dies", 20.0, "address already in use"),
        ("usage", 20.0, "did not accept its arguments"),
    ],
)
def test_a_worker_that_cannot_be_used(
    call: Run, tmp_path: Path, behaviour: str, timeout_s: float, message: str
) -> None:
    arm = arm_file(tmp_path, "toy", "toy:make_context", behaviour=behaviour, ready_timeout_s=timeout_s)
    code, _, err = call(*RUN, "--queries", "6", "--arms", "toy", "--arm-file", arm)
    assert code == EXIT_HARNESS_FAULT
    assert message in err


@pytest.mark.parametrize(
    "option", ["datafusion.execution.batch_sise=1", "nonsense.key=1", "datafusion.execution.batch_size=many"]
)
def test_an_option_that_the_engine_does_not_know(call: Run, tmp_path: Path, option: str) -> None:
    code, _, err = call(
        *RUN, "--queries", "6", "--arms", "one", "--arm-file", arm_file(tmp_path, "one"), "--set", option
    )
    assert code == EXIT_HARNESS_FAULT
    assert "arm `one` does not start" in err


def test_options_of_the_distributed_engine_do_not_reach_a_single_node(call: Run, tmp_path: Path) -> None:
    code, _, err = call(
        *RUN,
        "--queries",
        "6",
        "--arms",
        "one",
        "--arm-file",
        arm_file(tmp_path, "one"),
        "--set",
        "distributed.compression=none",
    )
    assert code == EXIT_OK, err


@pytest.mark.parametrize("damage", ["truncated", "garbage", "missing", "extra"])
def test_a_damaged_data_file(
    call: Run, tpch_sf001: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    root = tmp_path / "data"
    shutil.copytree(tpch_sf001.folder, root / "tpch" / "sf0.01")
    file = next((root / "tpch" / "sf0.01" / "orders").glob("*.parquet"))
    if damage == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "garbage":
        file.write_bytes(bytes(file.stat().st_size))
    elif damage == "missing":
        file.unlink()
    else:
        shutil.copy(file, file.with_name("copy.parquet"))
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(root))
    code, _, err = call(*RUN, "--queries", "6", "--arms", "one", "--arm-file", arm_file(tmp_path, "one"))
    assert code == EXIT_USAGE
    assert file.parent.name in err
    assert "df-strategies data --sf 0.01" in err


def test_no_space_left_while_a_run_is_written(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DF_STRATEGIES_RUNS", str(tmp_path / "file" / "runs"))
    code, _, err = call(*RUN, "--queries", "6", "--arms", "one", "--arm-file", arm_file(tmp_path, "one"))
    assert code == EXIT_HARNESS_FAULT
    assert "cannot write below" in err


def test_a_run_of_another_schema_version(call: Run, stored: Path, tmp_path: Path) -> None:
    old = tmp_path / "runs" / "old"
    shutil.copytree(stored, old)
    manifest = json.loads((old / MANIFEST).read_text(encoding="utf-8"))
    write_atomic(old / MANIFEST, json.dumps({**manifest, "schema_version": 0}))
    for words in (("run", "--resume", "old"), ("compare", "old"), ("report", "old")):
        code, _, err = call(*words)
        assert code == EXIT_USAGE
        assert "schema version 0, this version reads 1 to 2" in err


def test_compare_arms_of_a_run(call: Run, stored: Path) -> None:
    code, out, _ = call("compare", stored, "--base", "alone", "--new", "toy")
    assert code in (EXIT_OK, EXIT_REGRESSION)
    assert "prev = alone, new = toy, 5 finished rounds" in out
    assert [line.split(":")[0].strip() for line in out.splitlines()[1:5]] == ["q01", "q06", "TOTAL", "GEOMEAN"]
    assert "2 of 2 queries" in out


def test_compare_puts_new_failures_above_the_numbers(call: Run, stored: Path) -> None:
    code, out, _ = call("compare", stored, "--base", "alone", "--new", "bad")
    assert code == EXIT_REGRESSION
    lines = out.splitlines()
    assert lines[1].startswith("NEWLY FAILING q06: error: error (5 of 5 rounds): RuntimeError: no such function")
    assert "TOTAL: none (valid queries differ: base 2, new 1 (q06))" in out
    assert "GEOMEAN: none" in out
    assert lines[-2 if not lines[-1] else -1].startswith("newly failing: q06")


def test_compare_two_runs(call: Run, stored: Path, tmp_path: Path) -> None:
    other = tmp_path / "runs" / "other"
    shutil.copytree(stored, other)
    manifest = json.loads((other / MANIFEST).read_text(encoding="utf-8"))
    write_atomic(other / MANIFEST, json.dumps({**manifest, "run_id": "other"}))
    code, out, _ = call("compare", stored, other, "--arm", "alone")
    assert code == EXIT_OK
    assert "made at different times" in out
    assert "equivalent" in out or "inconclusive" in out
    changed = {**manifest, "run_id": "other", "data": {**manifest["data"], "fingerprint": "0" * 64}}
    write_atomic(other / MANIFEST, json.dumps(changed))
    code, out, err = call("compare", stored, other)
    assert (code, out) == (EXIT_NOT_COMPARABLE, "")
    assert "data: " in err
    assert "--force" in err
    code, out, _ = call("compare", stored, other, "--arm", "alone", "--force")
    assert code == EXIT_OK
    assert "NOTE FORCED although the runs differ in data" in out


def test_compare_names_what_is_missing(call: Run, stored: Path) -> None:
    code, _, err = call("compare", stored, "--base", "native")
    assert code == EXIT_USAGE
    assert "has no arm `native`; it has toy, alone, bad" in err
    assert call("compare", stored, "--arm", "toy")[0] == EXIT_USAGE
    assert call("compare", stored, stored, "--base", "toy")[0] == EXIT_USAGE


def test_doctor_looks_at_everything(call: Run) -> None:
    code, out, _ = call("doctor", "--sf", "0.01")
    assert code in (EXIT_OK, EXIT_REGRESSION)
    for name in (
        "cores",
        "load",
        "CPU governor",
        "clock source",
        "memory",
        "swap",
        "disk for runs",
        "open files",
        "other processes",
    ):
        assert name in out
    assert out.splitlines()[-1].startswith(("Fit to measure on", "Numbers from this machine"))


def test_doctor_sees_a_busy_process(call: Run) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        code, out, _ = call("doctor", "--sf", "0.01")
    finally:
        busy.kill()
        busy.wait()
    assert code == EXIT_REGRESSION
    assert "other processes" in out.splitlines()[-1]


def test_worker_becomes_the_worker_of_an_arm(tmp_path: Path) -> None:
    arm = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready")
    words = [sys.executable, "-m", "harness", "worker", "toy", "--arm-file", str(arm)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            ready = json.loads(worker.stdout.readline())
            assert ready["url"].startswith("http://127.0.0.1:")
            assert ready["pid"] == worker.pid, "the process is replaced, so signals reach the worker"
        finally:
            worker.terminate()
        assert worker.wait(20) == 0


def test_a_run_writes_its_report(call: Run, tmp_path: Path) -> None:
    pytest.importorskip("reports.build")
    arms = [arm_file(tmp_path, "one", kind="baseline"), aa_file(tmp_path, "twice", "one")]
    words = [
        "run",
        "--no-baselines",
        "--sf",
        "0.01",
        "--queries",
        "6",
        "--rounds",
        "2",
        "--quiet",
        "--arms",
        "one,twice",
    ]
    for path in arms:
        words += ["--arm-file", str(path)]
    code, out, _ = call(*words)
    assert code == EXIT_OK
    run = next((tmp_path / "runs").iterdir())
    assert {path.suffix for path in run.glob("report.*")} == {".json", ".txt", ".md", ".html"}
    assert (run / "report.txt").read_text(encoding="utf-8") in out
    assert call("report", "latest")[1].strip() == (run / "report.txt").read_text(encoding="utf-8").strip()
    assert call("report", "latest", "--format", "html")[1].strip() == str(run / "report.html")
