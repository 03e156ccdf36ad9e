"""One arm process: the protocol, what is timed, and a status for every way in which it can end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from arm_helpers import FIXTURE_ARMS, alive, wait_until
from harness.child.keeper import Keeper
from harness.child.outcome import ArmFailure, describe_error, describe_exit
from harness.child.process import SCRIPT, ArmProcess
from harness.model import Status
from harness.settings import SESSION_DEFAULTS

COUNT = "SELECT count(*) AS n, sum(id) AS total FROM t"
SLOW_START_S = 60.0

Open = Callable[..., ArmProcess]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t")
    for part in range(2):
        ids = list(range(part * 50, part * 50 + 50))
        pq.write_table(pa.table({"id": ids, "name": [f"n{i}" for i in ids]}), folder / f"{part}.parquet")
    return folder


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper() as opened:
        yield opened


@pytest.fixture
def start(keeper: Keeper, tmp_path: Path) -> Open:
    def _start(factory: str = "stock", env: dict[str, str] | None = None, **driver: Any) -> ArmProcess:
        about = {"factory": factory, "path": [str(FIXTURE_ARMS)], **driver}
        command = [sys.executable, "-I", "-u", str(SCRIPT), json.dumps(about)]
        return ArmProcess(keeper, factory, command, log=tmp_path / "child.log", cwd=tmp_path, env=env or {})

    return _start


@pytest.fixture
def opened(start: Open, table: Path) -> Open:
    def _opened(factory: str = "stock", env: dict[str, str] | None = None, **driver: Any) -> ArmProcess:
        process = start(factory, env, **driver)
        process.request("hello", SLOW_START_S)
        process.request("open", SLOW_START_S, config=SESSION_DEFAULTS, workers=[], tables={"t": str(table)})
        return process

    return _opened


def failure(process: ArmProcess, statements: list[str], timeout_s: float = SLOW_START_S) -> ArmFailure:
    with pytest.raises(ArmFailure) as caught:
        process.request("query", timeout_s, statements=statements, result=None)
    return caught.value


def test_hello_says_what_runs(start: Open) -> None:
    answer = start().request("hello", SLOW_START_S)
    assert answer["python"] == ".".join(map(str, sys.version_info[:3]))
    assert answer["versions"]["datafusion"]
    assert answer["startup_ms"] > 0


def test_open_tells_the_effective_configuration(start: Open, table: Path) -> None:
    process = start()
    process.request("hello", SLOW_START_S)
    config = {**SESSION_DEFAULTS, "datafusion.execution.batch_size": "1234"}
    answer = process.request("open", SLOW_START_S, config=config, workers=[], tables={"t": str(table)})
    assert answer["config"]["datafusion.execution.batch_size"] == "1234"
    assert answer["config"]["datafusion.execution.target_partitions"] == "2"
    assert len(answer["config"]) > 100
    assert answer["context_ms"] > 0
    assert answer["register_ms"] > 0


def test_query_gives_times_rows_and_an_arrow_file(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "answer.arrow"
    answer = opened().request("query", SLOW_START_S, statements=[COUNT], result=str(path))
    assert answer["rows"] == 1
    assert answer["elapsed_ms"] == pytest.approx(answer["planning_ms"] + answer["execution_ms"])
    assert answer["remote_tasks"] is None
    with pyarrow.ipc.open_file(path) as reader:
        assert reader.read_all().to_pylist() == [{"n": 100, "total": 4950}]


def test_an_empty_answer_keeps_its_schema(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "answer.arrow"
    answer = opened().request(
        "query", SLOW_START_S, statements=["SELECT id, name FROM t WHERE id < 0"], result=str(path)
    )
    assert answer["rows"] == 0
    with pyarrow.ipc.open_file(path) as reader:
        assert reader.schema.names == ["id", "name"]


def test_the_timed_process_imports_nothing_of_the_project(opened: Open) -> None:
    process = opened()
    maps = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    assert maps[1:4] == [b"-I", b"-u", str(SCRIPT).encode()]
    source = SCRIPT.read_text(encoding="utf-8")
    assert "import harness" not in source
    assert "from harness" not in source
    assert "pydantic" not in source


@pytest.mark.parametrize("count", [1, 3])
def test_statements_around_the_query_are_set_up_and_clean_up(opened: Open, count: int) -> None:
    process = opened()
    statements = ["CREATE VIEW v AS SELECT id FROM t WHERE id < 10", "SELECT * FROM v", "DROP VIEW v"]
    for _ in range(count):
        assert process.request("query", SLOW_START_S, statements=statements, result=None)["rows"] == 10


def test_clean_up_runs_after_a_failed_query(opened: Open) -> None:
    process = opened()
    broken = ["CREATE VIEW v AS SELECT id FROM t", "SELECT missing FROM v", "DROP VIEW v"]
    failed = failure(process, broken)
    assert failed.status is Status.ERROR
    assert not failed.fatal
    assert "missing" in failed.reason
    again = ["CREATE VIEW v AS SELECT id FROM t", "SELECT id FROM v", "DROP VIEW v"]
    assert process.request("query", SLOW_START_S, statements=again, result=None)["rows"] == 100


def test_clean_up_given_apart_runs_too(opened: Open) -> None:
    process = opened()
    for _ in range(2):
        answer = process.request(
            "query", SLOW_START_S, statements=["CREATE VIEW v AS SELECT id FROM t", "SELECT id FROM v"],
            result_statement=1, cleanup=["DROP VIEW IF EXISTS v"], result=None,
        )  # fmt: skip
        assert answer["rows"] == 100


def test_explain_gives_the_plan_and_runs_nothing(opened: Open) -> None:
    answer = opened().request("explain", SLOW_START_S, statements=[COUNT])
    assert "AggregateExec" in answer["text"]
    assert answer["stages"] is None


def test_an_error_leaves_the_process_usable(opened: Open) -> None:
    process = opened()
    failed = failure(process, ["SELECT * FROM no_such_table"])
    assert (failed.status, failed.fatal) == (Status.ERROR, False)
    assert "no_such_table" in failed.reason
    assert "Traceback" in failed.detail
    assert process.request("query", SLOW_START_S, statements=[COUNT], result=None)["rows"] == 1


def test_no_statement_with_rows_is_an_error(opened: Open) -> None:
    assert "none of the 1 statements gives rows" in failure(opened(), ["CREATE VIEW v AS SELECT 1"]).reason


def test_an_unknown_op_is_an_error(opened: Open) -> None:
    with pytest.raises(ArmFailure, match="unknown op 'dance'"):
        opened().request("dance", SLOW_START_S)


def test_stock_refuses_workers(start: Open, table: Path) -> None:
    process = start()
    process.request("hello", SLOW_START_S)
    with pytest.raises(ArmFailure, match="runs in one process"):
        process.request("open", SLOW_START_S, config={}, workers=["http://127.0.0.1:1"], tables={"t": str(table)})


def test_what_libraries_print_never_reaches_the_protocol(opened: Open) -> None:
    process = opened("noisy:make_context")
    for _ in range(3):
        assert process.request("query", SLOW_START_S, statements=[COUNT], result=None)["rows"] == 1
    said = process.log.read_bytes()
    assert b"printed while importing" in said
    assert b"garbage without an end of line" in said
    assert b"from a child" in said


def test_a_segfault_is_a_crash_with_its_signal(opened: Open) -> None:
    process = opened("crash:make_context")
    failed = failure(process, [COUNT])
    assert (failed.status, failed.fatal) == (Status.CRASH, True)
    assert "SIGSEGV (signal 11)" in failed.reason
    assert "crash.py" in failed.detail, "the stack belongs in the log"
    assert not process.alive


def test_a_hang_is_a_timeout_and_the_process_is_killed(opened: Open) -> None:
    process = opened("hang:make_context")
    start = time.monotonic()
    failed = failure(process, [COUNT], timeout_s=0.5)
    assert (failed.status, failed.fatal) == (Status.TIMEOUT, True)
    assert failed.reason == "no answer to `query` within 0.5 s"
    assert "hang.py" in failed.detail, "the stack of the hanging process belongs in the log"
    assert time.monotonic() - start < 5
    assert not process.alive


@pytest.mark.parametrize(("how", "fatal"), [("python", False), ("abort", True), ("pool", False)])
def test_no_memory_is_oom(opened: Open, how: str, fatal: bool) -> None:
    process = opened("oom:make_context", {"FIXTURE_OOM": how})
    heavy = "SELECT a.name, count(*) AS n FROM t a, t b, t c GROUP BY a.name, b.name, c.name ORDER BY n, 1"
    failed = failure(process, [heavy])
    assert (failed.status, failed.fatal) == (Status.OOM, fatal), failed.reason


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("query", Status.ERROR, "RuntimeError: no such function"),
        ("panic", Status.ERROR, "Panic: index out of bounds"),
        ("exit", Status.ERROR, "SystemExit: 3"),
        ("os_exit", Status.CRASH, "exited with code 3 unasked"),
    ],
)
def test_exceptions_of_any_kind(opened: Open, how: str, status: Status, reason: str) -> None:
    failed = failure(opened("broken:make_context", {"FIXTURE_BROKEN": how}), [COUNT])
    assert failed.status is status
    assert failed.reason.startswith(reason)
    assert "\n" not in failed.reason


def test_an_arm_that_cannot_be_imported_says_why(start: Open) -> None:
    with pytest.raises(ArmFailure, match=r"libengine.so.7: cannot open") as caught:
        start("broken:make_context", {"FIXTURE_BROKEN": "import"}).request("hello", SLOW_START_S)
    assert caught.value.status is Status.ERROR


def test_an_interpreter_that_does_not_start(keeper: Keeper, tmp_path: Path) -> None:
    process = ArmProcess(keeper, "x", ["/no/such/python"], log=tmp_path / "log", cwd=tmp_path, env={})
    with pytest.raises(ArmFailure, match="exited with code 127") as caught:
        process.request("hello", SLOW_START_S)
    assert "cannot start /no/such/python" in caught.value.detail


@pytest.mark.parametrize("said", ["hello", "[1, 2]", '{"no": "ok"}', ""])
def test_a_program_that_does_not_speak_the_protocol(keeper: Keeper, tmp_path: Path, said: str) -> None:
    command = [sys.executable, "-c", f"import time; print({said!r}, flush=True); time.sleep(60)"]
    process = ArmProcess(keeper, "x", command, log=tmp_path / "log", cwd=tmp_path, env={})
    with pytest.raises(ArmFailure, match="not of the protocol") as caught:
        process.request("hello", SLOW_START_S)
    assert caught.value.fatal
    assert not process.alive


def test_an_unfinished_answer_is_a_crash(keeper: Keeper, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.readline(); sys.stdout.write('{\"ok\": tr')"]
    process = ArmProcess(keeper, "x", command, log=tmp_path / "log", cwd=tmp_path, env={})
    with pytest.raises(ArmFailure, match="after 9 bytes of an unfinished answer") as caught:
        process.request("hello", SLOW_START_S)
    assert caught.value.status is Status.CRASH


def test_close_ends_the_process_by_itself(opened: Open) -> None:
    process = opened()
    process.close()
    assert process.kill() == 0, "it left by itself, with exit code 0"


def test_leaving_the_keeper_kills_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with Keeper() as keeper:
        pids = [keeper.spawn(command, cwd=tmp_path, env={}).pid for _ in range(3)]
        assert all(alive(pid) for pid in pids)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_the_caller_s_python_variables_do_not_reach_the_arm(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LD_PRELOAD", "")
    environ = Path(f"/proc/{opened().pid}/environ").read_bytes()
    assert b"PYTHONPATH" not in environ
    assert b"LD_PRELOAD" not in environ


def test_exit_codes_in_words() -> None:
    assert describe_exit(-9, "", oom_killed=False) == (Status.CRASH, "died by SIGKILL (signal 9)")
    assert describe_exit(-9, "", oom_killed=True)[0] is Status.OOM
    assert describe_exit(-6, "thread 'x' ...\nmemory allocation of 80 bytes failed\n", oom_killed=False) == (
        Status.OOM,
        "died by SIGABRT (signal 6): memory allocation of 80 bytes failed",
    )
    assert describe_exit(-99, "", oom_killed=False)[1] == "died by signal 99"
    assert describe_error("Exception", "Resources exhausted: pool")[0] is Status.OOM
    assert describe_error("ValueError", "x")[0] is Status.ERROR
