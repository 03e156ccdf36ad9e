"""Making TPC-H data with tpchgen-cli: atomically, once, checked.

Everything is written into a sibling folder and renamed when it is complete and on disk, so a table is either whole or
not there. One process at a time generates a scale factor; the others wait and use its result.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessFault, UserError
from tpch._lock import locked
from tpch.dataset import DataSet, data_root, describe, load_data, sf_folder
from tpch.manifest import Manifest, describe_folder, write_manifest
from tpch.scale import PARTS, ScaleFactor, check_scale_factor, expected_bytes, expected_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

__all__ = ["DataSet", "ensure_data", "load_data"]

GENERATOR = "tpchgen-cli"

POLL_S = 0.2
"""Seconds between two looks at how far the generator is: fast enough for a moving bar, slow enough to cost nothing."""

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers that mean: no room for these bytes (disk, quota, size limit of a process)."""


def ensure_data(sf: str, root: Path | None = None, *, progress: bool = True, verify: bool = False) -> DataSet:
    """Return the data of scale factor `sf`, generating it if it is not there.

    Existing data is compared with its manifest (sizes and footers, every byte with `verify`) and never overwritten.
    `progress` shows a bar on standard error if that is a terminal.

    Raises:
        UserError: unknown scale factor; files that differ from the manifest; not enough room; no generator installed.
        HarnessFault: the generator failed, or wrote something else than the standard says.
    """
    known = check_scale_factor(sf)
    base = data_root(root)
    folder = sf_folder(base, known)
    if folder.exists():
        return load_data(known, base, verify=verify)
    with _room_errors(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _progress_bar(enabled=progress) as bar:

            def waiting(holder: str) -> None:
                bar.console.print(f"waiting for process {holder}, which is generating SF{known}")

            with locked(folder.parent / f".sf{known}.lock", waiting) as lock:
                _clear_leftovers(folder)
                if not folder.exists():
                    return describe(base, _generate(known, folder, bar, lock))
    return load_data(known, base, verify=verify)


def _generate(sf: ScaleFactor, folder: Path, bar: Progress, lock: int) -> Manifest:
    _check_room(sf, folder.parent)
    temporary = folder.parent / f"{_temporary_prefix(folder)}{os.getpid()}-{secrets.token_hex(4)}"
    temporary.mkdir()
    try:
        version = _run_generator(sf, temporary, bar, lock)
        manifest = _describe_output(sf, version, temporary, bar)
        write_manifest(temporary, manifest)
        _sync(temporary)
        temporary.rename(folder)
        _sync_one(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return manifest


def _run_generator(sf: ScaleFactor, output: Path, bar: Progress, lock: int) -> str:
    program = _find_generator()
    version = _generator_version(program)
    command = [program, "parquet", "--quiet", "--scale-factor", sf, "--parts", str(PARTS[sf])]
    command += ["--output-dir", str(output)]
    task = bar.add_task(f"generating SF{sf}", total=expected_bytes(sf))
    # The child inherits the lock: if this process is killed, the next one waits until the orphan has ended too.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(lock,),
    )
    try:
        while True:
            try:
                _, errors = child.communicate(timeout=POLL_S)
                break
            except subprocess.TimeoutExpired:
                bar.update(task, completed=_bytes_below(output))
    finally:
        child.kill()
        child.wait()
    if child.returncode != 0:
        _explain_failure(child.returncode, errors.strip())
    bar.update(task, total=_bytes_below(output), completed=_bytes_below(output))
    return version


def _explain_failure(code: int, errors: str) -> None:
    if code == -signal.SIGXFSZ:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    for number in FULL_DISK:
        if f"os error {number})" in errors:
            raise OSError(number, os.strerror(number))
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
    last = errors.splitlines()[-1] if errors else "it printed no message"
    msg = f"{GENERATOR} {how}: {last}. Nothing was kept; run this again."
    raise HarnessFault(msg)


def _describe_output(sf: ScaleFactor, version: str, folder: Path, bar: Progress) -> Manifest:
    task = bar.add_task(f"checking SF{sf}", total=_bytes_below(folder))
    files = describe_folder(folder, tick=lambda entry: bar.advance(task, entry.bytes))
    manifest = Manifest(sf=sf, generator=version, files=files)
    found, expected = manifest.rows(), expected_rows(sf)
    wrong = [f"{t}: expected {expected[t]} rows, found {found[t]}" for t in sorted(expected) if found[t] != expected[t]]
    if wrong:
        msg = f"{version} wrote other row counts than TPC-H SF{sf} has ({'; '.join(wrong)}). Nothing was kept."
        raise HarnessFault(msg)
    return manifest


def _find_generator() -> str:
    beside = Path(sysconfig.get_path("scripts")) / GENERATOR
    found = str(beside) if beside.is_file() else shutil.which(GENERATOR)
    if found is None:
        msg = f"{GENERATOR} is not installed in {sys.prefix}: run `{sys.executable} -m pip install {GENERATOR}`"
        raise UserError(msg)
    return found


def _generator_version(program: str) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        msg = f"{program} does not run ({error}): install {GENERATOR} again"
        raise HarnessFault(msg) from error


def _check_room(sf: ScaleFactor, parent: Path) -> None:
    needed, free = expected_bytes(sf), shutil.disk_usage(parent).free
    if free < needed:
        msg = (
            f"SF{sf} needs about {_megabytes(needed)} in {parent}, but only {_megabytes(free)} are free: make room or "
            f"set DF_STRATEGIES_DATA to a folder on a larger disk"
        )
        raise UserError(msg)


@contextmanager
def _room_errors(parent: Path) -> Iterator[None]:
    """Turn "no room", "not allowed" and the like into one clear message; what was half written is gone by then."""
    try:
        yield
    except OSError as error:
        why = f"no room left in {parent}" if error.errno in FULL_DISK else f"cannot write below {parent}"
        msg = (
            f"{why} ({error.strerror or error}): nothing was kept. Make room or set DF_STRATEGIES_DATA to a folder "
            f"that can be written, then run this again"
        )
        raise UserError(msg) from error


@contextmanager
def _progress_bar(*, enabled: bool) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True, quiet=not enabled)
    with Progress(*columns, console=console, disable=not (enabled and sys.stderr.isatty())) as bar:
        yield bar


def _temporary_prefix(folder: Path) -> str:
    return f".{folder.name}.tmp-"


def _clear_leftovers(folder: Path) -> None:
    """Remove what killed processes left. Safe because the caller holds the lock that each of them held."""
    for leftover in folder.parent.glob(f"{_temporary_prefix(folder)}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # renamed by the generator between listing and looking
            total += path.stat().st_size if path.is_file() else 0
    return total


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync_one(path)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
