"""A run directory on disk: written so that a kill at any point loses at most the execution in flight.

manifest.json   what ran, where and with what; rewritten atomically until the run is complete
schedule.json   every step, written before the first one runs
samples.jsonl   one `Sample` per line, appended, flushed to the disk after each
events.jsonl    starts of processes with their times; informative, never needed to resume
answers/        answers that differ from an oracle, kept as Arrow files
logs/<arm>/     what the arm's processes wrote to stderr
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import HarnessFault, UserError
from harness.migrations import migrate_manifest, migrate_sample, read_version
from harness.model import SCHEMA_VERSION, Sample
from harness.provenance import Manifest

MANIFEST = "manifest.json"
SCHEDULE = "schedule.json"
SAMPLES = "samples.jsonl"
EVENTS = "events.jsonl"


def now_utc() -> str:
    """Current time, UTC, ISO 8601 with seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def new_run_id(root: Path) -> str:
    """A run id that sorts by time and is free below `root`."""
    base = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    candidate, number = base, 1
    while (root / candidate).exists():
        number += 1
        candidate = f"{base}-{number}"
    return candidate


def find_run(text: str, root: Path) -> Path:
    """The run directory meant by a path, a run id, an unambiguous start of one, or `latest`.

    Raises:
        UserError: nothing fits; the message lists the newest runs there are.
    """
    direct = Path(text)
    if (direct / MANIFEST).is_file():
        return direct.resolve()
    known = sorted(path.parent for path in root.glob(f"*/{MANIFEST}"))
    if text == "latest" and known:
        return known[-1]
    fitting = [path for path in known if path.name == text] or [path for path in known if path.name.startswith(text)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(path.name for path in known[-5:]) or "none"
    wrong = f"{len(fitting)} runs start with it" if fitting else f"no {MANIFEST} there"
    msg = f"run `{text}` not found below {root} ({wrong}). Newest runs: {names}. Give a run id, a path, or `latest`."
    raise UserError(msg)


class RunDirectory:
    """One run on disk. `stage` begins a new one, `open` an existing one; `lock` keeps a second harness out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def stage(cls, root: Path, run_id: str) -> RunDirectory:
        """A hidden folder in which a run is made ready; `publish` turns it into a run, `discard` removes it."""
        path = root / f".{run_id}.new"
        with disk_errors(root):
            path.mkdir(parents=True, exist_ok=False)
        return cls(path)

    def publish(self, manifest: Manifest, schedule_json: str) -> None:
        """Write schedule and manifest, then give the folder its name: a folder with that name is a whole run."""
        final = self.path.with_name(manifest.run_id)
        with disk_errors(final):
            write_atomic(self.path / SCHEDULE, schedule_json)
            (self.path / SAMPLES).touch()
            write_atomic(self.path / MANIFEST, manifest.model_dump_json(indent=2))
            if final.exists():
                raise FileExistsError(errno.EEXIST, "exists", str(final))
            self.path.rename(final)
        self.path = final

    def discard(self) -> None:
        """Remove a staged folder; a published run is left alone."""
        if self.path.name.startswith("."):
            shutil.rmtree(self.path, ignore_errors=True)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run; its manifest must be readable by this version.

        Raises:
            UserError: there is no manifest, or it has another schema version.
            HarnessFault: the manifest is damaged.
        """
        run = cls(path)
        run.manifest()
        return run

    def manifest(self) -> Manifest:
        """The manifest, checked."""
        path = self.path / MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            msg = f"{self.path} is no run directory: {MANIFEST} cannot be read ({error.strerror})"
            raise UserError(msg) from error
        except ValueError as error:
            msg = f"{path} is damaged: {error}"
            raise HarnessFault(msg) from error
        version = read_version(data, self.path.name)
        try:
            return Manifest.model_validate(migrate_manifest(data, version))
        except ValidationError as error:
            first = error.errors()[0]
            msg = f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise HarnessFault(msg) from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest in one step; a finished run is never touched again."""
        path = self.path / MANIFEST
        if path.exists() and self.manifest().status == "complete":
            msg = f"run {self.path.name} is complete and therefore immutable"
            raise HarnessFault(msg)
        write_atomic(path, manifest.model_dump_json(indent=2))

    def schedule_json(self) -> str:
        """Text of the schedule as it was written before the run started."""
        try:
            return (self.path / SCHEDULE).read_text(encoding="utf-8")
        except OSError as error:
            msg = f"{self.path / SCHEDULE} cannot be read ({error.strerror}); the run cannot be resumed"
            raise HarnessFault(msg) from error

    def samples(self) -> list[Sample]:
        """All samples, in the order written. A last line cut short by a kill is not counted.

        Raises:
            HarnessFault: a line other than the last one is damaged.
        """
        path = self.path / SAMPLES
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        version = self._version()
        found = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                found.append(_sample(line, version))
            except ValidationError as error:
                msg = f"{path}, line {number} is damaged: {error.errors()[0]['msg']}"
                raise HarnessFault(msg) from error
        return found

    def _version(self) -> int:
        """Version that the samples were written with; that of this harness while a run is being made ready."""
        path = self.path / MANIFEST
        if not path.exists():
            return SCHEMA_VERSION
        try:
            return read_version(json.loads(path.read_text(encoding="utf-8")), self.path.name)
        except ValueError as error:
            msg = f"{path} is damaged: {error}"
            raise HarnessFault(msg) from error

    def repair(self) -> int:
        """Cut off a last line that a kill left half written; returns the bytes dropped."""
        path = self.path / SAMPLES
        if not path.exists():
            return 0
        data = path.read_bytes()
        keep = data.rfind(b"\n") + 1
        if keep < len(data):
            with path.open("r+b") as stream:
                stream.truncate(keep)
                os.fsync(stream.fileno())
        return len(data) - keep

    def append(self, sample: Sample) -> None:
        """Add one sample and have it on the disk before returning."""
        with disk_errors(self.path):
            append_line(self.path / SAMPLES, sample.model_dump_json())

    def event(self, kind: str, **fields: Any) -> None:
        """Note a start or an end of a process, with its times."""
        line = json.dumps({"kind": kind, "at": now_utc(), **fields}, default=str)
        with disk_errors(self.path), (self.path / EVENTS).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def events(self) -> list[dict[str, Any]]:
        """All events that can be read."""
        path = self.path / EVENTS
        found = []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def log(self, arm: str, name: str) -> Path:
        """Path of a log file of an arm, its folder made."""
        path = self.path / "logs" / arm / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second harness from working on the same run.

        Raises:
            UserError: another process holds the run.
        """
        with (self.path / ".lock").open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                msg = f"run {self.path.name} is being worked on by another process; wait for it or stop it first"
                raise UserError(msg) from error
            yield


def _sample(line: bytes, version: int) -> Sample:
    if version == SCHEMA_VERSION:
        return Sample.model_validate_json(line)
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return Sample.model_validate_json(line)  # Says what is wrong with it.
    # As JSON again: in strict terms a list is no tuple, but JSON has nothing else.
    return Sample.model_validate_json(json.dumps(migrate_sample(data, version)))


def append_line(path: Path, line: str) -> None:
    """Append one line in a single write and wait until it is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        data = (line + "\n").encode()
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that readers see the old text or the new one, also after a power cut.

    Raises:
        HarnessFault: it cannot be written.
    """
    partial = path.with_name(path.name + ".part")
    with disk_errors(path.parent):
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the failures of a disk into messages that say what to do."""
    try:
        yield
    except FileExistsError as error:
        msg = f"{path} exists already; choose another folder with --out, or continue it with --resume"
        raise UserError(msg) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            msg = f"no space left to write below {path}. Free some, then: df-strategies run --resume {path.name}"
        else:
            msg = f"cannot write below {path}: {error.strerror or error}"
        raise HarnessFault(msg) from error
