"""A run directory: nothing half written, nothing lost, nothing changed afterwards."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_helpers import wait_until
from harness.errors import EXIT_HARNESS_FAULT, EXIT_USAGE, HarnessFault, UserError
from harness.model import SCHEMA_VERSION, Phase, Sample, Status
from harness.provenance import Manifest, content_hash, harness_packages, host_record, source_record
from harness.rundir import MANIFEST, SAMPLES, RunDirectory, find_run, new_run_id, write_atomic
from harness.settings import SESSION_DEFAULTS, RunSettings

ROOT = Path(__file__).parents[1]


def make_manifest(run_id: str = "r1", status: str = "running") -> Manifest:
    settings_ = RunSettings(
        arms=["local"], scale_factor="0.01", queries=["q01"], query_set="spec", form="sql", rounds=1, warmups=0,
        workers=2, seed=1, timeout_s=1, interleave="query", config=SESSION_DEFAULTS,
    )  # fmt: skip
    data = {"scale_factor": "0.01", "fingerprint": "f", "rows": {}, "files": {}, "bytes": 0}
    return Manifest.model_validate(
        {
            "run_id": run_id, "status": status, "created_at": "2026-12-01T00:00:00+00:00", "command_line": ["x"],
            "settings": settings_, "arms": {}, "source": source_record(), "host": host_record(), "python": "3.11",
            "packages": harness_packages(), "rustc": None, "data": data, "query_set_hash": "h", "queries": {},
            "schedule_hash": "s", "config_differences": [],
        }
    )  # fmt: skip


def sample(sequence: int) -> Sample:
    return Sample(
        round=0, sequence=sequence, arm="local", query="q01", phase=Phase.TIMED, status=Status.OK, elapsed_ms=1.5
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    staged = RunDirectory.stage(tmp_path, "r1")
    staged.publish(make_manifest(), '{"steps": []}')
    return staged


def test_a_staged_run_is_invisible_until_it_is_whole(tmp_path: Path) -> None:
    staged = RunDirectory.stage(tmp_path, "r1")
    with pytest.raises(UserError, match="not found"):
        find_run("r1", tmp_path)
    staged.publish(make_manifest(), "{}")
    assert find_run("r1", tmp_path) == tmp_path / "r1"
    assert [path.name for path in tmp_path.iterdir()] == ["r1"]


def test_a_discarded_run_leaves_nothing(tmp_path: Path) -> None:
    staged = RunDirectory.stage(tmp_path, "r1")
    staged.log("local", "child.log").write_text("x", encoding="utf-8")
    staged.discard()
    assert list(tmp_path.iterdir()) == []


def test_discard_leaves_a_published_run_alone(run: RunDirectory) -> None:
    run.discard()
    assert (run.path / MANIFEST).is_file()


def test_results_overwritten_in_place__an_existing_run_never_is(run: RunDirectory) -> None:
    staged = RunDirectory.stage(run.path.parent, "r1")
    with pytest.raises(UserError, match="exists already"):
        staged.publish(make_manifest(), "{}")


def test_samples_come_back_in_order(run: RunDirectory) -> None:
    for number in range(5):
        run.append(sample(number))
    assert run.samples() == [sample(number) for number in range(5)]


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=0, max_value=3), st.integers(min_value=1, max_value=500))
def test_a_torn_last_line_is_cut_off_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, whole: int, torn: int
) -> None:
    run = RunDirectory(tmp_path_factory.mktemp("torn"))
    for number in range(whole):
        run.append(sample(number))
    line = sample(whole).model_dump_json().encode()
    with (run.path / SAMPLES).open("ab") as stream:
        stream.write(line[: min(torn, len(line))])
    assert len(run.samples()) == whole, "not counted"
    assert run.repair() == min(torn, len(line))
    run.append(sample(whole))
    assert [item.sequence for item in run.samples()] == list(range(whole + 1))
    assert run.repair() == 0


def test_a_damaged_line_in_the_middle_is_a_fault(run: RunDirectory) -> None:
    run.append(sample(0))
    with (run.path / SAMPLES).open("a", encoding="utf-8") as stream:
        stream.write('{"round": "one"}\n')
    run.append(sample(1))
    with pytest.raises(HarnessFault, match="line 2 is damaged"):
        run.samples()


def test_results_overwritten_in_place__a_complete_run_is_immutable(run: RunDirectory) -> None:
    run.write_manifest(make_manifest(status="complete"))
    with pytest.raises(HarnessFault, match="complete and therefore immutable"):
        run.write_manifest(make_manifest())


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, None, "1", True, 1.0])
def test_another_schema_version_is_refused(run: RunDirectory, version: object) -> None:
    path = run.path / MANIFEST
    data = json.loads(path.read_text(encoding="utf-8"))
    write_atomic(path, json.dumps({**data, "schema_version": version}))
    with pytest.raises(
        UserError, match=f"schema version {version!r}, this version reads 1 to {SCHEMA_VERSION}"
    ) as caught:
        RunDirectory.open(run.path)
    assert caught.value.exit_code == EXIT_USAGE


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_manifest_is_one_message(run: RunDirectory, text: str) -> None:
    (run.path / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"damaged|schema version"):
        RunDirectory.open(run.path)


def test_a_folder_without_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run directory"):
        RunDirectory.open(tmp_path)


def test_runs_are_found_by_id_start_path_and_latest(tmp_path: Path) -> None:
    for name in ("20260101-1", "20260102-1", "20260102-2"):
        RunDirectory.stage(tmp_path, name).publish(make_manifest(name), "{}")
    assert find_run("20260101", tmp_path).name == "20260101-1"
    assert find_run("latest", tmp_path).name == "20260102-2"
    assert find_run(str(tmp_path / "20260101-1"), tmp_path / "elsewhere").name == "20260101-1"
    with pytest.raises(UserError, match=r"2 runs start with it.*Newest runs: 20260101-1, 20260102-1, 20260102-2"):
        find_run("20260102", tmp_path)
    with pytest.raises(UserError, match="no manifest.json there"):
        find_run("1999", tmp_path)


def test_run_ids_do_not_collide(tmp_path: Path) -> None:
    first = new_run_id(tmp_path)
    (tmp_path / first).mkdir()
    assert new_run_id(tmp_path) != first


def _hold(path: str, ready: str) -> None:
    with RunDirectory(Path(path)).lock():
        Path(ready).touch()
        signal.pause()


def test_a_second_harness_is_kept_out(run: RunDirectory, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    holder = multiprocessing.get_context("spawn").Process(target=_hold, args=(str(run.path), str(ready)))
    holder.start()
    try:
        assert wait_until(ready.exists, 60)
        with pytest.raises(UserError, match="another process"), run.lock():
            pass
    finally:
        holder.kill()
        holder.join()
    with run.lock():
        pass  # a lock dies with its holder


def test_no_space_left_says_what_to_do(run: RunDirectory) -> None:
    (run.path / SAMPLES).unlink()
    (run.path / SAMPLES).symlink_to("/dev/full")
    with pytest.raises(HarnessFault, match=f"no space left.*--resume {run.path.name}") as caught:
        run.append(sample(0))
    assert caught.value.exit_code == EXIT_HARNESS_FAULT


APPEND_FOREVER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from harness.rundir import RunDirectory
from test_rundir import sample
run = RunDirectory(Path({path!r}))
print("go", flush=True)
for number in range(10**6):
    run.append(sample(number))
"""


def test_kill_9_while_appending_loses_at_most_the_line_in_flight(run: RunDirectory) -> None:
    code = textwrap.dedent(APPEND_FOREVER).format(tests=str(ROOT / "tests"), path=str(run.path))
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert wait_until(lambda: (run.path / SAMPLES).stat().st_size > 4000, 60)
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
    run.repair()
    numbers = [item.sequence for item in run.samples()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 5


def test_write_atomic_leaves_no_partial_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.json", "one")
    write_atomic(tmp_path / "a.json", "two")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_content_hash_ignores_the_order_of_keys() -> None:
    assert content_hash({"a": 1, "b": [1, 2]}) == content_hash({"b": [1, 2], "a": 1})
    assert content_hash({"a": 1}) != content_hash({"a": 2})


def test_the_host_record_names_nobody() -> None:
    host = host_record()
    assert host.cores >= 1
    assert host.memory_bytes > 0
    machine = Path("/etc/machine-id")
    if machine.is_file() and machine.read_text(encoding="ascii").strip():
        assert machine.read_text(encoding="ascii").strip() not in host.model_dump_json()
