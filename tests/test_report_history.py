"""Nights: append-only, never compared across machines, no false alarm, and a real change found on the second night."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arm_helpers import arm_file
from harness.cli import main
from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, HarnessFault, UserError
from harness.rundir import RunDirectory
from report_helpers import RUN_SMALL, make_manifest, make_samples, write_run
from reports.history import (
    MACHINE_VARIABLE,
    ArmNight,
    Machine,
    Night,
    append,
    comparable_before,
    judge,
    night_of,
    prune_runs,
    read,
)
from reports.history_page import judgement_lines, render_history_html, render_history_markdown, write_pages
from reports.model import Interval
from tpch.generate import DataSet

QUERIES = [f"q{number:02d}" for number in range(1, 23)]
ROUNDS = 10
MACHINE = Machine(host_id="a" * 12, cpu_model="Invented CPU", cores=2, memory_gib=8)


def make_night(
    number: int, *, drift: float = 1.0, slow: dict[tuple[str, str], float] | None = None, missing: str = "", **update
) -> Night:
    """A night of invented times: per query a base, 3 % of noise per round, and the machine's drift in every arm."""
    random = np.random.default_rng([1612, number])
    speed = {"local": 0.8, "native": 1.0, "inline": 1.0, "decorator": 1.03, "aa": 1.03}
    arms = {}
    for arm, factor in speed.items():
        times = {}
        for place, query in enumerate(QUERIES):
            base = 40.0 + 18.0 * place
            own = factor * (slow or {}).get((arm, query), 1.0) * drift
            times[query] = tuple(float(base * own * np.exp(random.normal(0, 0.03))) for _ in range(ROUNDS))
        blanks = {missing: "crash: killed by signal 11"} if missing and arm == "inline" else {}
        arms[arm] = ArmNight(
            title=arm,
            kind="aa" if arm == "aa" else "baseline" if arm in ("local", "native") else "strategy",
            copies="decorator" if arm == "aa" else None,
            versions={"datafusion": "55.0.0"},
            times={query: entry for query, entry in times.items() if query not in blanks},
            blanks=blanks,
        )
    night = Night(
        run_id=f"night-{number:03d}",
        at=f"2026-01-{1 + number % 28:02d}T{number // 28:02d}:00:00+00:00",
        machine=MACHINE,
        git_sha=f"{number:040d}",
        dirty=False,
        harness_version="0.1.0",
        scale_factor="1",
        query_set="spec",
        query_set_hash="q",
        form="sql",
        workers=2,
        config={},
        data_fingerprint="d" * 12,
        rounds=ROUNDS,
        seed=1612,
        noise_query=0.05,
        noise_suite=0.05,
        arms=arms,
    )
    return night.model_copy(
        update={"at": f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T00:00:00+00:00", **update}
    )


def test_a_run_becomes_a_line(tmp_path: Path):
    night = night_of(RunDirectory.open(RUN_SMALL))
    assert (night.run_id, night.rounds, night.synthetic) == ("synthetic-small", 6, True)
    assert "q15" in night.arms["external"].blanks
    assert "SIGSEGV" in night.arms["external"].blanks["q15"]
    assert night.arms["inline"].geomean_vs_native.value == pytest.approx(1.01, abs=0.02)
    assert len(night.arms["inline"].times["q01"]) == 6
    path = tmp_path / "deep" / "history.jsonl"
    append(path, night)
    assert read(path) == [night]
    with pytest.raises(UserError, match="already"):
        append(path, night)
    assert len(path.read_text().splitlines()) == 1


def test_lines_are_only_added_to(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    for number in range(3):
        before = path.read_bytes() if path.exists() else b""
        append(path, make_night(number))
        assert path.read_bytes().startswith(before)
    assert [night.run_id for night in read(path)] == ["night-000", "night-001", "night-002"]


def test_a_line_cut_short_costs_only_itself(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    append(path, make_night(0))
    with path.open("a") as stream:
        stream.write(make_night(1).model_dump_json()[:500])
    assert [night.run_id for night in read(path)] == ["night-000"]
    append(path, make_night(2))
    assert [night.run_id for night in read(path)] == ["night-000", "night-002"]


def test_other_versions_and_damage_are_one_message(tmp_path: Path):
    path = tmp_path / "history.jsonl"
    line = json.loads(make_night(0).model_dump_json())
    path.write_text(json.dumps({**line, "schema_version": 2}) + "\n")
    with pytest.raises(UserError, match=r"line 1 has schema version 2, this version reads 1"):
        read(path)
    path.write_text(json.dumps({**line, "workers": "many"}) + "\n")
    with pytest.raises(HarnessFault, match=r"line 1 is damaged: workers"):
        read(path)


@pytest.mark.parametrize(
    ("update", "word"),
    [
        ({"machine": MACHINE.model_copy(update={"host_id": "b" * 12})}, "machine"),
        ({"machine": MACHINE.model_copy(update={"cpu_model": "Other CPU"})}, "cpu model"),
        ({"machine": MACHINE.model_copy(update={"cores": 4})}, "cores"),
        ({"data_fingerprint": "e" * 12}, "data"),
        ({"query_set_hash": "other"}, "query set hash"),
        ({"workers": 4}, "workers"),
        ({"config": {"distributed.compression": "none"}}, "config"),
        ({"synthetic": True}, "synthetic"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unlike_nights_are_never_compared(update: dict, word: str):
    nights = [make_night(0, slow={("inline", "q05"): 0.5}, **update), make_night(1)]
    found = judge(nights, nights[1])
    assert found.base is None
    assert found.findings == [], "twice as slow, and still nothing is said"
    (why,) = found.skipped
    assert word in why
    assert why in " ".join(judgement_lines(nights[1], found))


def test_the_last_comparable_night_is_found_behind_others():
    other = MACHINE.model_copy(update={"cpu_model": "Other CPU"})
    nights = [make_night(0), make_night(1, machine=other), make_night(2, scale_factor="10"), make_night(3)]
    before, skipped = comparable_before(nights, nights[3])
    assert [night.run_id for night in before] == ["night-000"]
    assert len(skipped) == 1, "another scale factor is another series, not a gap"
    assert "night-001: cpu model" in skipped[0]


def test_a_named_pool_of_runners_is_one_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(MACHINE_VARIABLE, "runners")
    first = night_of(RunDirectory.open(RUN_SMALL))
    other = first.model_copy(
        update={"run_id": "b", "machine": first.machine.model_copy(update={"host_id": "elsewhere"})}
    )
    assert first.differences(other) == []
    assert first.differences(other.model_copy(update={"machine": other.machine.model_copy(update={"cpu_model": "X"})}))


def test_unchanged_nights_raise_no_alarm():
    """40 nights on a machine that drifts by 30 % from night to night: at most one false alarm."""
    random = np.random.default_rng(7)
    nights = [make_night(number, drift=float(random.uniform(0.85, 1.15))) for number in range(40)]
    alarms = [entry for place, night in enumerate(nights) for entry in judge(nights[: place + 1], night).alarms()]
    assert alarms == []


def test_a_slower_query_is_a_candidate_first_and_an_alarm_once():
    slow = {("decorator", "q07"): 1.3, ("aa", "q07"): 1.3}
    nights = [make_night(number, slow=slow if number >= 4 else None) for number in range(8)]
    said = [judge(nights[: place + 1], night) for place, night in enumerate(nights)]
    mine = [[(f.kind, f.state) for f in found.findings if (f.arm, f.query) == ("decorator", "q07")] for found in said]
    assert mine[4] == [("slower", "candidate")]
    assert mine[5] == [("slower", "confirmed")]
    assert not [entry for said_ in (mine[:4], mine[6:]) for night in said_ for entry in night if "confirmed" in entry]
    assert said[4].alarms() == []


def test_a_night_of_few_rounds_says_only_what_fails():
    """SF10 runs one round a night: no verdict on times, but a query that newly fails is one."""
    slow = {("decorator", "q07"): 3.0}
    nights = [make_night(number, rounds=1, slow=slow if number else None) for number in range(2)]
    nights.append(make_night(2, rounds=1, missing="q03"))
    found = judge(nights[:2], nights[1])
    assert (found.base, found.timed_base, found.findings) == ("night-000", None, [])
    (alarm,) = judge(nights, nights[2]).alarms()
    assert (alarm.kind, alarm.arm, alarm.query) == ("failing", "inline", "q03")
    said = " ".join(judgement_lines(nights[1], found))
    assert "Only failures are compared, with night-000: night-001 has 1 of the 5 rounds that a verdict takes" in said
    assert "No query newly fails." in said
    rated = Interval(value=1.02, low=1.02, high=1.02, n=1)
    arms = {name: arm.model_copy(update={"geomean_vs_native": rated}) for name, arm in nights[0].arms.items()}
    page = render_history_markdown([nights[0].model_copy(update={"arms": arms})])
    assert "1.020 in 1 round, no interval" in page


def test_times_are_held_against_the_last_night_that_has_enough_rounds():
    nights = [make_night(0), make_night(1, slow={("inline", "q05"): 0.5}, rounds=1), make_night(2)]
    found = judge(nights, nights[2])
    assert (found.base, found.timed_base, found.findings) == ("night-001", "night-000", [])
    said = " ".join(judgement_lines(nights[2], found))
    assert "Held against night-000" in said
    assert "Failures are held against night-001" in said
    first = judge(nights[1:], nights[2])
    assert first.untimed == "no night before it has the 5 rounds that a verdict takes"


def test_one_odd_night_is_no_alarm():
    nights = [make_night(number, slow={("inline", "q09"): 1.4} if number == 3 else None) for number in range(6)]
    alarms = [entry for place, night in enumerate(nights) for entry in judge(nights[: place + 1], night).alarms()]
    assert alarms == []


def test_a_failure_is_an_alarm_at_once():
    nights = [make_night(0), make_night(1, missing="q03"), make_night(2)]
    (alarm,) = judge(nights, nights[1]).alarms()
    assert (alarm.kind, alarm.arm, alarm.query) == ("failing", "inline", "q03")
    assert "signal 11" in alarm.words
    assert [entry.kind for entry in judge(nights, nights[2]).findings if entry.query == "q03"] == ["passing"]


def test_the_machines_drift_is_told_and_not_blamed():
    nights = [make_night(0), make_night(1, drift=1.25)]
    found = judge(nights, nights[1])
    assert found.drift == pytest.approx(1.25, abs=0.02)
    assert found.alarms() == []
    assert not [entry for entry in found.findings if entry.query is None], "the suite did not change"


def test_pages(tmp_path: Path):
    other = MACHINE.model_copy(update={"cpu_model": "Other CPU"})
    base = night_of(RunDirectory.open(RUN_SMALL)).model_copy(update={"machine": MACHINE})
    nights = [
        base.model_copy(update={"run_id": f"n{number}", "at": f"2026-01-{number + 1:02d}T00:00:00+00:00"})
        for number in range(5)
    ]
    nights[3] = nights[3].model_copy(update={"machine": other})
    written = write_pages(nights, tmp_path)
    page = written["html"].read_text()
    assert page == render_history_html(nights)
    assert "SYNTHETIC" in page
    assert page.count("<svg") == 1
    assert "Passed over, not comparable: n3: cpu model Invented CPU / Other CPU" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    text = render_history_markdown(nights)
    assert written["md"].read_text() == text
    assert text.count("| 2026-01-") == 5
    assert "No night yet" in render_history_html([])


def test_texts_of_a_night_cannot_become_markup():
    evil = "<script>alert(1)</script>"
    night = make_night(0).model_copy(update={"machine": MACHINE.model_copy(update={"label": evil})})
    assert evil not in render_history_html([night])


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = ["--file", str(tmp_path / "history.jsonl")]
    assert main(["history", "compare", *file]) == EXIT_USAGE
    assert "holds no night yet; add one with" in capsys.readouterr().err
    assert main(["history", "add", str(RUN_SMALL), *file]) == EXIT_OK
    assert main(["history", "add", str(RUN_SMALL), *file]) == EXIT_USAGE
    assert "only ever added to" in capsys.readouterr().err
    assert main(["history", "compare", *file]) == EXIT_NOT_COMPARABLE
    assert "No comparable night before synthetic-small" in capsys.readouterr().out
    nights = [make_night(0), make_night(1, missing="q03")]
    for night in nights:
        append(tmp_path / "bad.jsonl", night)
    assert main(["history", "compare", "--file", str(tmp_path / "bad.jsonl")]) == EXIT_REGRESSION
    assert "✖ newly failing: inline, q03" in capsys.readouterr().out
    assert main(["history", "compare", "--run", "never", *file]) == EXIT_USAGE
    assert main(["history", "page", *file, "--out", str(tmp_path / "site")]) == EXIT_OK
    assert (tmp_path / "site" / "history.html").is_file()


def test_unfinished_runs_stay_out(tmp_path: Path):
    manifest = make_manifest(["local"]).model_copy(update={"status": "interrupted"})
    run = write_run(tmp_path / "run", make_samples(["local"]), manifest)
    with pytest.raises(UserError, match="is interrupted; only finished runs"):
        night_of(RunDirectory.open(run))


def test_pruning_keeps_the_newest_runs_and_every_line(tmp_path: Path):
    path, root = tmp_path / "history.jsonl", tmp_path / "runs"
    for number in range(4):
        append(path, make_night(number))
        (root / f"night-{number:03d}").mkdir(parents=True)
        (root / f"night-{number:03d}" / "manifest.json").write_text("{}")
    (root / "by-hand").mkdir()
    (root / "by-hand" / "manifest.json").write_text("{}")
    assert [folder.name for folder in prune_runs(path, root, 2)] == ["night-000", "night-001"]
    assert sorted(folder.name for folder in root.iterdir()) == ["by-hand", "night-002", "night-003"]
    assert len(read(path)) == 4


@pytest.mark.parametrize("option", ["--out", "--resume", "--streams=4"])
def test_a_night_refuses_what_it_could_not_add(option: str, capsys: pytest.CaptureFixture[str]):
    assert main(["history", "night", "--sf", "0.01", option, "x"]) == EXIT_USAGE
    assert "not for a night" in capsys.readouterr().err


def test_two_nights_from_end_to_end(
    tpch_sf001: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """What `tox -e nightly` calls, on two arms of which one has workers: run, add, compare, page, summary."""
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(tpch_sf001.root))
    monkeypatch.setenv("DF_STRATEGIES_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("DF_STRATEGIES_HISTORY", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    toy = arm_file(tmp_path, "toy", "toy:make_context", behaviour="ready", kind="strategy")
    words = ["history", "night", "--sf", "0.01", "--keep", "1", "--no-baselines", "--arms", "local,toy"]
    words += ["--arm-file", str(toy), "--queries", "6", "--rounds", "5", "--warmups", "0", "--no-recurrence"]
    words += ["--no-collect", "--quiet"]
    assert main(words) == EXIT_OK, "nothing to compare with is no failure of the first night"
    assert "No comparable night before" in capsys.readouterr().out
    code = main(words)
    said = capsys.readouterr().out
    folder = tmp_path / "runs" / "history"
    first, second = read(folder / "history.jsonl")
    assert f"Held against {first.run_id}; the stock arm took" in said
    # Both nights ran the same build; on a busy machine a time may still differ, but one night is never an alarm.
    assert code == EXIT_OK
    assert (folder / "history.html").is_file()
    assert second.run_id in summary.read_text()
    runs = [path.parent.name for path in (tmp_path / "runs").glob("*/manifest.json")]
    assert runs == [second.run_id], "the older run directory was removed, its line stays"
