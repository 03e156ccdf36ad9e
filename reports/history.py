"""A history of nights: one JSON line per run, appended and never changed, and what the newest night says.

Nights are compared through the statistics of a run. Two nights do not take turns, so each time is first divided by that
of the stock single-node arm in the same round: what the machine did that night meets both alike. A difference is a
candidate on the night it is first seen, and confirmed when the next comparable night shows it too, against the same
bases: one odd night opens no alarm. Nights of different machines, data, queries or settings are never compared. A night
of fewer rounds than a verdict takes says only which queries fail or pass again.
"""

from __future__ import annotations

import fcntl
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from harness.errors import HarnessFault, UserError
from harness.model import Frozen, Verdict
from harness.provenance import Manifest
from harness.rundir import RunDirectory, append_line, disk_errors
from harness.settings import runs_root
from harness.stats import (
    MARGIN,
    MIN_ROUNDS_FOR_VERDICT,
    complete,
    flagged,
    needs_recurrence,
    not_comparable,
    settle,
    suite_verdict,
)
from harness.stats.verdicts import query_verdicts
from reports import tables
from reports.inputs import read_run
from reports.model import Interval, interval

HISTORY_SCHEMA_VERSION = 1
"""Version of a line. History: 1 = first published form."""

REFERENCE = "local"
"""Arm that no commit changes: the stock wheel on a single node. What it does from night to night is the machine."""

MACHINE_VARIABLE = "DF_STRATEGIES_MACHINE"
"""Name of a pool of like machines: hosted runners get another machine id every night."""

Times = tuple[float | None, ...]


class Machine(Frozen):
    """What must be alike for two nights to be compared."""

    label: str | None = Field(default=None, description=f"From ${MACHINE_VARIABLE}; replaces the machine id")
    host_id: str
    cpu_model: str
    cores: int
    memory_gib: int

    def differences(self, other: Machine) -> Iterator[str]:
        """In words, how another machine differs."""
        if (self.label or self.host_id) != (other.label or other.host_id):
            yield f"machine {self.label or self.host_id} / {other.label or other.host_id}"
        for name in ("cpu_model", "cores", "memory_gib"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                yield f"{name.replace('_', ' ')} {one} / {two}"


class ArmNight(Frozen):
    """One arm on one night. `times` has the rounds of every query that counts, `blanks` why the others do not."""

    title: str
    kind: str
    copies: str | None = None
    fingerprint: str | None = None
    wheel_sha256: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    times: dict[str, Times] = Field(description="Milliseconds per round")
    blanks: dict[str, str] = Field(default_factory=dict)
    geomean_vs_native: Interval | None = None


class Night(Frozen):
    """One line of the history."""

    schema_version: Literal[1] = 1
    run_id: str
    at: str = Field(description="When the run ended, UTC, ISO 8601")
    synthetic: bool = False
    machine: Machine
    git_sha: str | None
    dirty: bool | None
    harness_version: str
    scale_factor: str
    query_set: str
    query_set_hash: str
    form: str
    workers: int
    config: dict[str, str]
    cache: Literal["hot", "cold"] = "hot"
    data_fingerprint: str
    rounds: int
    seed: int
    noise_query: float = Field(description="Margin for one query after that night's A/A pair was heard")
    noise_suite: float
    arms: dict[str, ArmNight]

    def differences(self, other: Night) -> list[str]:
        """Why two nights cannot be compared, in words; empty when they can."""
        found = list(self.machine.differences(other.machine))
        for name in ("scale_factor", "query_set", "query_set_hash", "form", "workers", "config", "cache", "synthetic"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                found.append(f"{name.replace('_', ' ')} {str(one)[:60]} / {str(two)[:60]}")
        if self.data_fingerprint != other.data_fingerprint:
            found.append(f"data {self.data_fingerprint[:12]} / {other.data_fingerprint[:12]}")
        found += [
            f"{night.run_id} has no arm `{REFERENCE}` to hold the others against"
            for night in (self, other)
            if REFERENCE not in night.arms
        ]
        pair = [night.arms[REFERENCE].versions for night in (self, other) if REFERENCE in night.arms]
        if len(pair) == 2 and pair[0] != pair[1]:
            found.append(f"the stock arm has other versions: {pair[0]} / {pair[1]}")
        return found

    @property
    def timed(self) -> bool:
        """Whether it has the rounds that a verdict on times takes."""
        return self.rounds >= MIN_ROUNDS_FOR_VERDICT


class Finding(Frozen):
    """One thing that the newest night says. Only what is `confirmed` is an alarm; a failure needs no second night."""

    kind: Literal["slower", "faster", "failing", "passing"]
    state: Literal["candidate", "confirmed"]
    arm: str
    query: str | None = Field(default=None, description="Null: the whole suite")
    words: str


class Judgement(Frozen):
    """The newest night of one series against the nights before it."""

    night: str
    base: str | None = Field(default=None, description="Run id of the last comparable night")
    timed_base: str | None = Field(default=None, description="Run id of the last one that times are held against")
    untimed: str | None = Field(default=None, description="Why times are not compared; null if they are")
    skipped: list[str] = Field(default_factory=list, description="Newer nights that could not be compared, and why")
    drift: float | None = Field(default=None, description="Geometric mean of the stock arm's times, night over base")
    findings: list[Finding] = Field(default_factory=list)

    def alarms(self) -> list[Finding]:
        """What a maintainer should look at: confirmed slower, or failing."""
        return [entry for entry in self.findings if entry.state == "confirmed" and entry.kind in ("slower", "failing")]


def history_file() -> Path:
    """Where the history is kept unless told otherwise: below the folder of run directories."""
    given = os.environ.get("DF_STRATEGIES_HISTORY")
    return Path(given).resolve() if given else runs_root() / "history" / "history.jsonl"


def night_of(run: RunDirectory) -> Night:
    """The line of a finished run.

    Raises:
        UserError: the run is not finished.
    """
    inputs = read_run(run.path)
    manifest = inputs.manifest
    if manifest.status != "complete":
        msg = f"run {manifest.run_id} is {manifest.status}; only finished runs enter the history"
        raise UserError(msg)
    queries = list(manifest.settings.queries)
    rounds = tables.finished_rounds(inputs.samples, list(manifest.arms), queries, complete=True)
    data = tables.RunData(
        samples=inputs.samples, arms=manifest.arms, queries=queries, rounds=rounds, seed=manifest.settings.seed,
        scale_factor=float(manifest.settings.scale_factor),
    )  # fmt: skip
    cells = tables.collect_cells(data)
    noise = tables.judge_noise(data, cells)
    arms = {}
    for name, record in manifest.arms.items():
        good = {query: cell for query, cell in cells[name].items() if cell.valid and cell.distributed}
        native = {query: cell.times_ms for query, cell in cells.get("native", {}).items() if query in good}
        suite = suite_verdict(
            {query: native[query] for query in good if query in native},
            {query: cell.times_ms for query, cell in good.items() if query in native},
            seed=data.seed,
        )
        arms[name] = ArmNight(
            title=record.title,
            kind=record.kind,
            copies=record.copies,
            fingerprint=record.build.get("fingerprint"),
            wheel_sha256=record.wheel_sha256,
            versions=record.versions,
            times={query: tuple(cell.times_ms) for query, cell in good.items()},
            blanks={
                query: cell.reason or "not distributed" for query, cell in cells[name].items() if query not in good
            },
            geomean_vs_native=interval(suite.ratio) if suite.ratio and name != "native" else None,
        )
    return Night(
        run_id=manifest.run_id,
        at=manifest.finished_at or manifest.created_at,
        synthetic=manifest.command_line[:1] == ["synthetic"],
        machine=_machine(manifest),
        git_sha=manifest.source.git_sha,
        dirty=manifest.source.dirty,
        harness_version=manifest.source.harness_version,
        scale_factor=manifest.settings.scale_factor,
        query_set=manifest.settings.query_set,
        query_set_hash=manifest.query_set_hash,
        form=manifest.settings.form,
        workers=manifest.settings.workers,
        config=manifest.settings.config,
        cache="cold" if manifest.settings.cold else "hot",
        data_fingerprint=manifest.data.fingerprint,
        rounds=rounds,
        seed=data.seed,
        noise_query=noise.query_margin,
        noise_suite=noise.suite_margin,
        arms=arms,
    )


def _machine(manifest: Manifest) -> Machine:
    host = manifest.host
    return Machine(
        label=os.environ.get(MACHINE_VARIABLE) or None,
        host_id=host.host_id,
        cpu_model=host.cpu_model,
        cores=host.cores,
        memory_gib=round(host.memory_bytes / 2**30),
    )


def append(path: Path, night: Night) -> None:
    """Add a night; lines that are there are never touched.

    Raises:
        UserError: the run is in the history already.
        HarnessFault: the file cannot be written.
    """
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(path.name + ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if any(known.run_id == night.run_id for known in read(path)):
                msg = f"run {night.run_id} is in {path} already; a history is only ever added to"
                raise UserError(msg)
            if path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n"):
                append_line(path, "")  # a line cut short by a kill ends here, so that the next one is whole
            append_line(path, night.model_dump_json())


def read(path: Path) -> list[Night]:
    """All nights, oldest first. A line that a kill cut short is left out; there is none before the first night.

    Raises:
        UserError: a line is of a newer version than this.
        HarnessFault: a whole line is damaged.
    """
    nights = []
    data = path.read_bytes() if path.is_file() else b""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            nights.append(Night.model_validate_json(line))
        except ValidationError as error:
            _refuse(path, number, line, error)
    return sorted(nights, key=lambda night: (night.at, night.run_id))


def _refuse(path: Path, number: int, line: bytes, error: ValidationError) -> None:
    """Say what is wrong with a line; a torn one (not JSON to its end) is passed over."""
    import json

    try:
        entry = json.loads(line)
    except ValueError:
        return
    version = entry.get("schema_version") if isinstance(entry, dict) else None
    if version != HISTORY_SCHEMA_VERSION:
        msg = f"{path}, line {number} has schema version {version!r}, this version reads {HISTORY_SCHEMA_VERSION}"
        raise UserError(msg) from error
    first = error.errors()[0]
    msg = f"{path}, line {number} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    raise HarnessFault(msg) from error


def comparable_before(nights: Sequence[Night], night: Night) -> tuple[list[Night], list[str]]:
    """Nights before `night` that it can be compared with, newest first, and why newer ones were passed over.

    A series of another scale factor is no gap, it is another series.
    """
    found: list[Night] = []
    skipped = []
    for other in reversed([entry for entry in nights if (entry.at, entry.run_id) < (night.at, night.run_id)]):
        if other.scale_factor != night.scale_factor:
            continue
        differences = night.differences(other)
        if not differences:
            found.append(other)
        elif not found:
            skipped.append(f"{other.run_id}: {'; '.join(differences)}")
    return found, skipped


def judge(nights: Sequence[Night], night: Night) -> Judgement:
    """What `night` says beside the comparable nights before it."""
    before, skipped = comparable_before(nights, night)
    if not before:
        return Judgement(night=night.run_id, skipped=skipped)
    findings = list(_failures(before[0], night))
    timed = [entry for entry in before if entry.timed]
    untimed = _why_untimed(before, night)
    for arm in night.arms if untimed is None else ():
        if arm != REFERENCE and arm in timed[0].arms:
            findings += _changes(timed, night, arm)
    held = before[0] if untimed else timed[0]
    return Judgement(
        night=night.run_id,
        base=before[0].run_id,
        timed_base=None if untimed else held.run_id,
        untimed=untimed,
        skipped=skipped,
        drift=_drift(held, night),
        findings=findings,
    )


def _why_untimed(before: Sequence[Night], night: Night) -> str | None:
    """Why the times of a night are held against none of the comparable ones before it; None if they are."""
    if not night.timed:
        return f"{night.run_id} has {night.rounds} of the {MIN_ROUNDS_FOR_VERDICT} rounds that a verdict takes"
    if not any(entry.timed for entry in before):
        return f"no night before it has the {MIN_ROUNDS_FOR_VERDICT} rounds that a verdict takes"
    return None


def _failures(base: Night, night: Night) -> Iterator[Finding]:
    for arm, now in night.arms.items():
        then = base.arms.get(arm)
        if then is None:
            continue
        for query, why in now.blanks.items():
            if query in then.times:
                yield Finding(kind="failing", state="confirmed", arm=arm, query=query, words=why)
        for query, why in then.blanks.items():
            if query in now.times:
                yield Finding(kind="passing", state="confirmed", arm=arm, query=query, words=f"before: {why}")


def _changes(before: Sequence[Night], night: Night, arm: str) -> Iterator[Finding]:
    """Candidates of this night, and those of the last night that this one shows as well.

    The two nights share the night they are held against; if that one was odd, both show it. So a change must also stand
    against the night before that, where there is one.
    """
    known = [entry for entry in before[:3] if arm in entry.arms]
    last = verdicts(known[0], night, arm)
    pairs = [(verdicts(base, known[0], arm), verdicts(base, night, arm)) for base in known[1:]]
    for query, verdict in last.items():
        settled = [_settled(first.get(query), again.get(query)) for first, again in pairs]
        seen = [entry for entry in settled if entry is not None and flagged(entry)]
        if seen and len(seen) == len(settled) and len({entry.kind for entry in seen}) == 1:
            yield _finding(seen[0], arm, query, "confirmed", f"{known[0].run_id} and {night.run_id}")
        elif needs_recurrence(verdict):
            yield _finding(verdict, arm, query, "candidate", night.run_id)


def _settled(first: Verdict | None, again: Verdict | None) -> Verdict | None:
    return settle(first, again) if first is not None and again is not None and needs_recurrence(first) else None


def _finding(
    verdict: Verdict, arm: str, query: str | None, state: Literal["candidate", "confirmed"], seen: str
) -> Finding:
    ratio = verdict.ratio
    kind: Literal["slower", "faster"] = "slower" if ratio is not None and ratio.value > 1 else "faster"
    figures = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] of the night before" if ratio else "no ratio"
    tail = "seen on both nights" if state == "confirmed" else "seen once; the next night decides"
    return Finding(kind=kind, state=state, arm=arm, query=query, words=f"{figures}; {tail} ({seen})")


def verdicts(base: Night, night: Night, arm: str) -> dict[str | None, Verdict]:
    """Verdicts per query, and under None that of the suite, on times held against the stock arm."""
    then, now = (_held(entry, base, arm) for entry in (base, night))
    margin = max(MARGIN, base.noise_query, night.noise_query)
    suite_margin = max(MARGIN, base.noise_suite, night.noise_suite)
    found: dict[str | None, Verdict] = {
        query: not_comparable("it has no valid times on one of the nights") for query in then if query not in now
    }
    both = [query for query in then if query in now]
    rounds = min((len(side[query]) for side in (then, now) for query in both), default=0)
    whole = [query for query in both if all(complete(side[query][:rounds]) for side in (then, now))]
    if whole:
        times = [[_given(side[query][:rounds]) for query in whole] for side in (then, now)]
        judged = query_verdicts(*times, sf=float(night.scale_factor), seed=night.seed, margins=[margin] * len(whole))
        found.update(zip(whole, judged, strict=True))
    found[None] = suite_verdict(
        {query: then[query][:rounds] for query in both},
        {query: now[query][:rounds] for query in both},
        seed=night.seed,
        margin=suite_margin,
    )
    return found


def _held(night: Night, base: Night, arm: str) -> dict[str, Times]:
    """Times of an arm as they would have been had the stock arm run at the base night's pace."""
    found = {}
    reference = night.arms[REFERENCE].times
    pace = {query: statistics.median(_given(times)) for query, times in base.arms[REFERENCE].times.items()}
    for query, times in night.arms[arm].times.items():
        if query in reference and query in pace:
            found[query] = tuple(
                None if own is None or stock is None else own * pace[query] / stock
                for own, stock in zip(times, reference[query], strict=True)
            )
    return found


def _drift(base: Night, night: Night) -> float | None:
    """How much slower the stock arm ran: what the machine did, not what a commit did."""
    ratios = [
        statistics.median(_given(now)) / statistics.median(_given(base.arms[REFERENCE].times[query]))
        for query, now in night.arms[REFERENCE].times.items()
        if query in base.arms[REFERENCE].times
    ]
    return statistics.geometric_mean(ratios) if ratios else None


def _given(times: Times) -> list[float]:
    return [time for time in times if time is not None]


def series(nights: Sequence[Night]) -> Mapping[str, list[Night]]:
    """Nights by scale factor, oldest first: what a plot joins."""
    found: dict[str, list[Night]] = {}
    for night in nights:
        found.setdefault(night.scale_factor, []).append(night)
    return found


def prune_runs(path: Path, root: Path, keep: int) -> list[Path]:
    """Remove the run directories of all but the newest `keep` nights of each series; the history keeps their lines.

    Returns what was removed. Runs that are not in the history are left alone.
    """
    import shutil

    removed = []
    for nights in series(read(path)).values():
        for night in nights[:-keep] if keep else nights:
            folder = root / night.run_id
            if (folder / "manifest.json").is_file():
                shutil.rmtree(folder)
                removed.append(folder)
    return removed
