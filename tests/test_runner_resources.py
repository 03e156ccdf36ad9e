"""What the processes of an arm use is recorded for each of them apart, and never beside a timed window."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arm_helpers import arm_file
from harness.child import procfs
from harness.model import Phase, ProcessUse, Reach, Sample, Status
from harness.rundir import RunDirectory
from harness.stats import resources
from runner_helpers import command_line, invoke, run_settings
from tpch.generate import DataSet

SPIN = "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass\nprint('spun', flush=True)\n"
HOLD = "import sys\nblock = bytearray(64 << 20)\nfor i in range(0, len(block), 4096): block[i] = 1\n"


def child(code: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", code + "print('ready', flush=True)\nsys.stdin.read()" if "sys" in code else code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    started.stdout.readline()
    return started


def test_cpu_time_of_another_process_is_that_which_it_used() -> None:
    with child(SPIN + "import sys\n") as process:
        used = procfs.cpu_ms(process.pid)
        process.kill()
    assert used is not None
    assert 300 <= used < 3000
    assert procfs.cpu_ms(process.pid) is None, "a process that is gone has no figure, least of all 0"


def test_the_peak_starts_again_when_it_is_reset() -> None:
    code = HOLD + "print('held', flush=True)\nsys.stdin.readline()\ndel block\n"
    with child(code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        before = procfs.memory(process.pid)
        assert procfs.reset_peak(process.pid)
        after = procfs.memory(process.pid)
        process.kill()
    assert before.peak_rss is not None
    assert after.peak_rss is not None
    assert before.peak_rss - after.peak_rss > 48 << 20, "the block is gone, its peak forgotten"
    assert before.pss is not None
    assert before.anon is not None
    assert before.rss is not None
    assert before.anon <= before.pss <= before.rss <= before.peak_rss
    assert before.threads == 1
    gone = procfs.memory(process.pid)
    assert gone == (None,) * 5
    assert not procfs.reset_peak(process.pid)


@pytest.fixture(scope="module")
def run(tpch_sf001: DataSet, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Two rounds of two queries, warmed up once, with and without workers."""
    folder = tmp_path_factory.mktemp("resources")
    arms = [arm_file(folder, "alone"), arm_file(folder, "toy", "toy:make_context", behaviour="ready")]
    words = command_line(arms, folder / "runs", "--rounds", "2", "--no-recurrence")
    words[words.index("--warmups") + 1] = "1"
    done = invoke(words, tpch_sf001.root)
    assert done.returncode == 0, done.stderr
    return RunDirectory.open(next((folder / "runs").iterdir()))


def test_every_process_is_recorded_for_itself(run: RunDirectory) -> None:
    for sample in run.samples():
        roles = [(use.role, use.index) for use in sample.processes]
        workers = [("worker", 0), ("worker", 1)] if sample.arm == "toy" else []
        assert roles == [("coordinator", 0), *workers]
        assert len({use.pid for use in sample.processes}) == len(roles)
        coordinator, *others = sample.processes
        assert (coordinator.cpu_window, coordinator.tasks) == ("query", None)
        assert 0 < (coordinator.cpu_ms or 0) < (sample.elapsed_ms or 0) * 64
        for use in others:
            assert (use.tasks, use.bytes_out, use.cpu_window) == (1, 1000, "request")
            assert use.cpu_ms is not None


def test_summed_memory_counts_shared_pages_twice_and_peaks_are_inherited(run: RunDirectory) -> None:
    """Memory is PSS per process and a peak that was reset, never a sum of RSS or `ru_maxrss`."""
    warmups = [sample for sample in run.samples() if sample.phase is Phase.WARMUP]
    assert len(warmups) == 4
    for sample in warmups:
        for use in sample.processes:
            assert use.pss_bytes is not None
            assert use.rss_bytes is not None
            assert use.anon_bytes is not None
            assert use.anon_bytes <= use.pss_bytes <= use.rss_bytes
            assert (use.peak_rss_bytes or 0) >= use.rss_bytes * 0.5
            assert (use.threads or 0) >= 1
    for sample in run.samples():
        if sample.phase is Phase.TIMED:
            assert all(use.pss_bytes is None for use in sample.processes), "no memory reading beside a timed window"


def test_starts_and_stops_say_what_a_life_took(run: RunDirectory) -> None:
    events = run.events()
    starts = [event for event in events if event["kind"] == "start"]
    stops = [event for event in events if event["kind"] == "stop"]
    assert [event["phase"] for event in starts] == ["preflight", "preflight", "timed", "timed"]
    assert sorted((event["arm"], event["phase"]) for event in stops) == sorted((e["arm"], e["phase"]) for e in starts)
    for event in starts:
        assert len(event["worker_ready_ms"]) == (2 if event["arm"] == "toy" else 0)
    for event in [*starts, *stops]:
        uses = [ProcessUse.model_validate(entry) for entry in event["processes"]]
        assert len(uses) == (3 if event["arm"] == "toy" else 1)
        assert all(use.cpu_window == "life" and (use.cpu_ms or 0) > 0 and (use.pss_bytes or 0) > 0 for use in uses)


def test_first_fresh_process_mixed_with_steady_state(run: RunDirectory) -> None:
    """Start-up, first query and steady state are three figures; planning and execution are two."""
    found = resources(run.samples(), run.events(), arm="toy", queries=["q01", "q06"])
    for stage in (found.startup_ms, found.import_ms, found.context_ms, found.register_ms, found.cluster_ms):
        assert stage is not None
        assert (stage.n, stage.missing) == (2, 0), "one for the preflight, one for the timed rounds"
    for row in found.queries:
        assert None not in (row.first_ms, row.steady_ms, row.planning_ms, row.execution_ms)
        assert row.first_ms not in [s.elapsed_ms for s in run.samples() if s.phase is Phase.TIMED]
        assert (row.bytes_out, row.tasks) == (2000, 2)
        assert (row.coordinator_peak_rss_bytes or 0) > (row.worker_peak_rss_bytes or 0) > 1 << 20
    assert found.bytes_out == 4000
    assert found.cpu_window == "query"
    assert [(process.role, process.index) for process in found.processes] == [
        ("coordinator", 0), ("worker", 0), ("worker", 1),
    ]  # fmt: skip
    for process in found.processes:
        assert (process.idle_pss_bytes or 0) >= (process.idle_anon_bytes or 0) > 0
        assert (process.life_cpu_s or 0) > 0
        assert process.peak_query in ("q01", "q06")
    single = resources(run.samples(), run.events(), arm="alone", queries=["q01", "q06"])
    assert single.cluster_ms is None
    assert single.workers_cpu_ms is None


def test_a_sum_over_the_suite_needs_every_query() -> None:
    uses = (ProcessUse(role="coordinator", pid=1, cpu_ms=5.0, cpu_window="query"),)
    about = {"round": 0, "arm": "a", "phase": Phase.TIMED, "status": Status.OK, "reach": Reach.SINGLE_NODE}
    samples = [
        Sample(sequence=0, query="q01", elapsed_ms=4.0, processes=uses, **about),
        Sample(sequence=1, query="q06", elapsed_ms=4.0, **about),
    ]
    assert resources(samples[:1], [], arm="a", queries=["q01"]).coordinator_cpu_ms == 5.0
    assert resources(samples, [], arm="a", queries=["q01", "q06"]).coordinator_cpu_ms is None


def test_a_driver_that_does_not_tell_counters_is_asked_by_command(tpch_sf001: DataSet, tmp_path: Path) -> None:
    """As the arm without Python: its answers hold no counters, its workers are asked by the arm file's command."""
    file = arm_file(tmp_path, "mute", "mute:make_context", behaviour="ready")
    script = tmp_path / "ask.py"
    script.write_text(
        "import sys, urllib.request\nsys.stdout.write(urllib.request.urlopen(sys.argv[1] + '/status').read().decode())",
        encoding="utf-8",
    )
    text = file.read_text(encoding="utf-8")
    command = f'status = ["{sys.executable}", "{script}", "{{url}}"]\nready_timeout_s'
    file.write_text(text.replace("ready_timeout_s", command, 1), encoding="utf-8")
    out = tmp_path / "runs"
    done = invoke(command_line([file], out, "--rounds", "1", "--no-recurrence"), tpch_sf001.root)
    run = RunDirectory.open(next(out.iterdir()))
    assert done.returncode == 0, done.stderr
    for sample in run.samples():
        assert [(use.tasks, use.bytes_out) for use in sample.processes[1:]] == [(1, 1000)] * 2


def test_settings_of_a_test_run_are_hot(tmp_path: Path) -> None:
    settings = run_settings([arm_file(tmp_path, "alone")])
    assert (settings.cold, settings.streams) == (False, 0)
