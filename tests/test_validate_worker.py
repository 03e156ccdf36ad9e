"""The validating process: apart from what is timed, and no end of it is the end of the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from harness.model import Validation
from harness.validate import QueryMeta, SortKey, Validator
from validate_helpers import table

RIGHT = table({"k": pa.array([1, 2, 2]), "v": pa.array(["a", "b", "c"])})
WRONG = table({"k": pa.array([1, 2, 2]), "v": pa.array(["a", "b", "x"])})
PLAIN = QueryMeta()
IMPATIENT = 1.0


def write(path: Path, rows: pa.Table) -> Path:
    """Writes an Arrow IPC file as an arm does."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return path


@pytest.fixture
def right(tmp_path: Path) -> Path:
    """File with the right answer."""
    return write(tmp_path / "right.arrow", RIGHT)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """File with a wrong answer."""
    return write(tmp_path / "wrong.arrow", WRONG)


@pytest.fixture
def validator() -> Iterator[Validator]:
    """A running process."""
    with Validator() as running:
        running.start()
        yield running


def is_alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_answers_are_judged_from_files(validator: Validator, right: Path, wrong: Path) -> None:
    good = validator.validate(right, PLAIN, {"duckdb": right, "local": right})
    assert good.validation is Validation.VALIDATED
    assert good.oracles == {"duckdb": Validation.VALIDATED, "local": Validation.VALIDATED}
    assert (good.rows, good.reason) == (3, None)
    assert good.elapsed_ms is not None
    bad = validator.validate(wrong, PLAIN, {"duckdb": right})
    assert bad.validation is Validation.MISMATCH
    assert "expected 'c', got 'x'" in (bad.reason or "")


def test_order_limit_and_candidates_reach_the_process(validator: Validator, right: Path, tmp_path: Path) -> None:
    meta = QueryMeta(order_by=(SortKey(column="k"),), limit=2)
    expected = write(tmp_path / "expected.arrow", RIGHT.slice(0, 2))
    other = write(tmp_path / "other.arrow", RIGHT.take([0, 2]))
    found = validator.validate(other, meta, {"duckdb": expected}, {"duckdb": right})
    assert found.validation is Validation.VALIDATED
    assert validator.validate(other, meta, {"duckdb": expected}).validation is Validation.NOT_VALIDATED


def test_a_checkers_imports_inflate_the_timed_process__validation_runs_in_another_one(
    validator: Validator, right: Path
) -> None:
    first = validator.pid
    assert first not in {None, os.getpid()}
    validator.validate(right, PLAIN, {"duckdb": right})
    assert validator.pid == first, "one process serves all answers"


def test_a_checkers_imports_inflate_the_timed_process__the_harness_needs_no_pyarrow_to_ask(right: Path) -> None:
    script = (
        "import sys\n"
        "from harness.validate import QueryMeta, Validator\n"
        "with Validator() as validator:\n"
        f"    verdict = validator.validate({str(right)!r}, QueryMeta(), {{'duckdb': {str(right)!r}}})\n"
        "print(verdict.validation.value, sorted({'pyarrow', 'numpy', 'duckdb'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "validated []"


def test_the_process_yields_to_others_and_ends_with_its_owner(right: Path) -> None:
    with Validator() as validator:
        validator.validate(right, PLAIN, {"duckdb": right})
        pid = validator.pid
        assert pid is not None
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, os.getpid())
        # Ctrl-C reaches the whole foreground group; the harness must be able to finish what it is doing.
        os.kill(pid, signal.SIGINT)
        assert validator.validate(right, PLAIN, {"duckdb": right}).validation is Validation.VALIDATED
        assert validator.pid == pid
    assert not is_alive(pid)
    assert validator.pid is None


def test_partial_output_is_not_validated(validator: Validator, right: Path, tmp_path: Path) -> None:
    partial = tmp_path / "partial.arrow"
    partial.write_bytes(right.read_bytes()[:-40])
    found = validator.validate(partial, PLAIN, {"duckdb": right})
    assert found.validation is Validation.NOT_VALIDATED
    assert "partial.arrow" in (found.reason or "")
    assert "cannot be read as an Arrow IPC file" in (found.reason or "")


def test_a_missing_answer_or_oracle_is_not_validated(validator: Validator, right: Path, tmp_path: Path) -> None:
    found = validator.validate(tmp_path / "none.arrow", PLAIN, {"duckdb": right})
    assert found.validation is Validation.NOT_VALIDATED
    assert "no such file" in (found.reason or "")
    found = validator.validate(right, PLAIN, {"duckdb": right, "local": tmp_path / "none.arrow"})
    assert found.validation is Validation.NOT_VALIDATED
    assert found.oracles == {"duckdb": Validation.VALIDATED, "local": Validation.NOT_VALIDATED}
    assert (found.reason or "").startswith("local: ")


def test_query_data_that_names_no_column_is_not_validated_with_the_reason(validator: Validator, right: Path) -> None:
    pid = validator.pid
    found = validator.validate(right, QueryMeta(order_by=(SortKey(column="nope"),)), {"duckdb": right})
    assert found.validation is Validation.NOT_VALIDATED
    assert "sort key 'nope' is in no column" in (found.reason or "")
    assert validator.pid == pid, "the process survives a request that it cannot serve"


def test_a_killed_process_is_replaced(validator: Validator, right: Path) -> None:
    first = validator.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    for _ in range(2):
        found = validator.validate(right, PLAIN, {"duckdb": right})
        if found.validation is Validation.VALIDATED:
            break
        assert "signal 9" in (found.reason or "")
    assert found.validation is Validation.VALIDATED
    assert validator.pid != first


def test_a_process_killed_while_it_validates_is_reported(validator: Validator, right: Path) -> None:
    pid = validator.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(IMPATIENT / 2, os.kill, (pid, signal.SIGKILL))
    killer.start()
    found = validator.validate(right, PLAIN, {"duckdb": right})
    killer.join()
    assert found.validation is Validation.NOT_VALIDATED
    assert found.oracles == {"duckdb": Validation.NOT_VALIDATED}
    assert found.reason == "validator died (signal 9)"
    assert validator.validate(right, PLAIN, {"duckdb": right}).validation is Validation.VALIDATED


def test_a_process_that_does_not_answer_is_stopped(validator: Validator, right: Path) -> None:
    pid = validator.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    validator.timeout = IMPATIENT
    started = time.monotonic()
    found = validator.validate(right, PLAIN, {"duckdb": right})
    assert time.monotonic() - started < 10 * IMPATIENT
    assert found.validation is Validation.NOT_VALIDATED
    assert found.reason == "validator did not answer within 1 s and was stopped"
    assert not is_alive(pid)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import sys; sys.exit('no memory left')", "no memory left"),
        ("input(); print('garbage', flush=True); input()", "makes no sense"),
        ("input(); print('[]', flush=True); input()", "makes no sense"),
        ("input(); print('{\"ok\": true}', flush=True); input()", "makes no sense"),
    ],
    ids=["exits", "no JSON", "no object", "no verdict"],
)
def test_a_process_that_breaks_the_protocol_is_not_believed(code: str, hint: str, right: Path) -> None:
    with Validator(command=(sys.executable, "-c", code)) as validator:
        found = validator.validate(right, PLAIN, {"duckdb": right})
    assert found.validation is Validation.NOT_VALIDATED
    assert hint in (found.reason or "")


def test_a_process_that_cannot_be_started_is_reported(right: Path, tmp_path: Path) -> None:
    with Validator(command=(str(tmp_path / "nowhere"),)) as validator:
        validator.start()
        found = validator.validate(right, PLAIN, {"duckdb": right})
    assert found.validation is Validation.NOT_VALIDATED
    assert "could not be started" in (found.reason or "")


def test_the_process_answers_bad_requests_and_lives_on() -> None:
    requests = 'no json\n{"op": "dance"}\n{"op": "validate"}\n{"op": "hello"}\n'
    done = subprocess.run(
        [sys.executable, "-m", "harness.validate.worker"],
        input=requests, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert "not JSON" in lines[0]
    assert "unknown op 'dance'" in lines[1]
    assert '"ok": false' in lines[2]
    assert '"ok": true' in lines[3]
