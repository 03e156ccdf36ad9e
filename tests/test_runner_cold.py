"""Cold executions: new processes and an empty page cache, which is measured and not assumed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arm_helpers import arm_file
from harness.errors import EXIT_OK, EXIT_USAGE, UserError
from harness.model import Phase, Status
from harness.rundir import RunDirectory
from harness.runner import cold
from harness.runner.ending import ending
from runner_helpers import command_line, invoke
from tpch.generate import DataSet

MEGABYTE = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "block.parquet"
    path.write_bytes(os.urandom(8 * MEGABYTE))
    return path


def test_residency_follows_what_is_read(file: Path) -> None:
    assert cold.residency([file]) == 1.0, "just written"
    assert cold.drop([file]) == 0.0
    assert cold.residency([file]) == 0.0, "looking does not bring it back"
    with file.open("rb", buffering=0) as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        stream.read(4 * MEGABYTE)
    assert cold.residency([file]) == pytest.approx(0.5, abs=0.1)
    assert cold.residency([]) == 0.0


def test_what_is_cold_and_what_is_lukewarm() -> None:
    assert [cold.label(share) for share in (0.0, cold.COLD_SHARE, cold.COLD_SHARE * 1.01, 1.0)] == [
        "cold", "cold", "lukewarm", "lukewarm",
    ]  # fmt: skip


def test_data_in_memory_is_refused(tmp_path: Path) -> None:
    shared = Path("/dev/shm") / f"df-strategies-{os.getpid()}.parquet"
    shared.write_bytes(bytes(MEGABYTE))
    try:
        with pytest.raises(UserError, match=r"--cold is not possible here: .* 100% of the data below /dev/shm"):
            cold.require_droppable([shared])
    finally:
        shared.unlink()


def test_a_file_that_the_kernel_does_not_tell_about_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="the kernel tells only who owns the file"):
        cold.require_droppable([file])


def test_a_cold_run_starts_anew_for_every_execution(tpch_sf001: DataSet, tmp_path: Path) -> None:
    arms = [arm_file(tmp_path, "alone"), arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready")]
    words = command_line(arms, tmp_path / "runs", "--rounds", "1", "--no-recurrence", "--cold")
    del words[words.index("--warmups") : words.index("--warmups") + 2]
    done = invoke(words, tpch_sf001.root)
    assert done.returncode == EXIT_OK, done.stderr
    run = RunDirectory.open(next((tmp_path / "runs").iterdir()))
    samples = run.samples()
    assert [(sample.status, sample.phase) for sample in samples] == [(Status.OK, Phase.TIMED)] * 4, "no warm-ups"
    for sample in samples:
        assert sample.residency is not None
        assert sample.cache == cold.label(sample.residency)
        assert sample.processes[0].peak_rss_bytes is not None
        assert "--cold" in str(sample.repro)
    assert {sample.cache for sample in samples} == {"cold"}
    starts = [event for event in run.events() if event["kind"] == "start" and event["phase"] == "timed"]
    assert len(starts) == len(samples), "new processes for each"
    assert len({use.pid for sample in samples for use in sample.processes}) == 2 * 1 + 2 * 3
    assert run.manifest().settings.cold
    lukewarm = [sample.model_copy(update={"cache": "lukewarm"}) for sample in samples[:1]]
    assert "1 of them were lukewarm" in ending([*lukewarm, *samples[1:]]).sentence


def test_warm_ups_and_cold_exclude_each_other(tpch_sf001: DataSet, tmp_path: Path) -> None:
    words = command_line([arm_file(tmp_path, "alone")], tmp_path / "runs", "--cold")
    words[words.index("--warmups") + 1] = "2"
    done = invoke(words, tpch_sf001.root)
    assert done.returncode == EXIT_USAGE
    assert "--cold times first executions: leave out --warmups" in done.stderr
