"""The manifest of a generated scale factor: what each file must look like, and how to tell that it still does.

On-disk format 1: `manifest.json` beside the table folders, see `Manifest`.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from harness.errors import UserError
from tpch.scale import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANIFEST_NAME = "manifest.json"
FORMAT = 1
"""Version of the manifest. History: 1 = first published form."""

HASH_CHUNK = 1 << 20
"""Bytes per read while hashing: large enough that the loop costs nothing beside SHA-256."""

HASH_THREADS = 2
"""Files hashed at the same time; hashing releases the GIL, and the smallest machines have 2 cores."""


@dataclass(frozen=True)
class FileEntry:
    """One Parquet file. `path` is relative to the folder of the scale factor, with `/`."""

    path: str
    bytes: int
    rows: int
    row_groups: int
    sha256: str

    @property
    def table(self) -> str:
        """Name of the table the file belongs to: its folder."""
        return self.path.split("/", 1)[0]


@dataclass(frozen=True)
class Manifest:
    """Everything known about one generated scale factor."""

    sf: str
    generator: str
    files: tuple[FileEntry, ...]

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over scale factor, paths, sizes, rows, row groups and hashes of the files.

        Equal fingerprints mean equal bytes. The generator's version is left out: what counts is what it wrote.
        """
        content = {"sf": self.sf, "files": [asdict(entry) for entry in sorted(self.files, key=lambda e: e.path)]}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def rows(self) -> dict[str, int]:
        """Rows per table."""
        return {t: sum(entry.rows for entry in self.files if entry.table == t) for t in TABLES}

    def total_bytes(self) -> int:
        """Bytes of all Parquet files."""
        return sum(entry.bytes for entry in self.files)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest` into `folder` and force it to disk."""
    content = {"format": FORMAT, "fingerprint": manifest.fingerprint, **asdict(manifest)}
    with (folder / MANIFEST_NAME).open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest in `folder`; raises `UserError` when it is missing, unreadable or contradicts itself."""
    path = folder / MANIFEST_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            msg = f"{path} has format {content['format']}, expected {FORMAT}: {_remedy(folder)}"
            raise UserError(msg)
        files = tuple(FileEntry(**entry) for entry in content["files"])
        manifest = Manifest(sf=content["sf"], generator=content["generator"], files=files)
        if content["fingerprint"] != manifest.fingerprint:
            msg = f"{path} does not match its own fingerprint, so it was edited or damaged: {_remedy(folder)}"
            raise UserError(msg)
    except FileNotFoundError as error:
        msg = f"{folder} has no {MANIFEST_NAME}, so it was not written by this project: {_remedy(folder)}"
        raise UserError(msg) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{path} cannot be read ({type(error).__name__}: {error}): {_remedy(folder)}"
        raise UserError(msg) from error
    return manifest


def describe_file(folder: Path, path: Path) -> FileEntry:
    """Measure and hash one Parquet file below `folder`; raises `UserError` if it has no readable footer."""
    rows, row_groups = _footer(folder, path)
    return FileEntry(
        path=path.relative_to(folder).as_posix(),
        bytes=path.stat().st_size,
        rows=rows,
        row_groups=row_groups,
        sha256=_sha256(path),
    )


def describe_folder(folder: Path, tick: Callable[[FileEntry], None] = lambda _entry: None) -> tuple[FileEntry, ...]:
    """Measure and hash every Parquet file of every table below `folder`; `tick` is called once per file."""
    entries = []
    with ThreadPoolExecutor(HASH_THREADS) as pool:
        for entry in pool.map(lambda path: describe_file(folder, path), _parquet_files(folder)):
            tick(entry)
            entries.append(entry)
    return tuple(entries)


def check_files(folder: Path, manifest: Manifest, *, full: bool = False) -> None:
    """Compare the files below `folder` with `manifest`.

    The fast check compares names, sizes and footers (rows, row groups); `full` also the hash of every byte.
    Raises `UserError` that names the file, what was expected and what was found.
    """
    expected = {entry.path: entry for entry in manifest.files}
    present = {path.relative_to(folder).as_posix() for path in _parquet_files(folder)}
    for name in sorted(present - expected.keys()):
        _mismatch(folder, name, "no such file (it would be read as part of the table)", "a file")
    with ThreadPoolExecutor(HASH_THREADS) as pool:
        list(pool.map(lambda entry: _check_file(folder, entry, full=full), manifest.files))


def _check_file(folder: Path, entry: FileEntry, *, full: bool) -> None:
    path = folder / entry.path
    if not path.is_file():
        _mismatch(folder, entry.path, f"{entry.bytes} bytes", "no file")
    size = path.stat().st_size
    if size != entry.bytes:
        _mismatch(folder, entry.path, f"{entry.bytes} bytes", f"{size} bytes")
    rows, row_groups = _footer(folder, path)
    if (rows, row_groups) != (entry.rows, entry.row_groups):
        expected = f"{entry.rows} rows in {entry.row_groups} row groups"
        _mismatch(folder, entry.path, expected, f"{rows} rows in {row_groups} row groups")
    if full and (found := _sha256(path)) != entry.sha256:
        _mismatch(folder, entry.path, f"sha256 {entry.sha256}", f"sha256 {found}")


def _mismatch(folder: Path, name: str, expected: str, found: str) -> None:
    msg = f"{folder / name} is not what was generated: expected {expected}, found {found}. {_remedy(folder)}"
    raise UserError(msg)


def _remedy(folder: Path) -> str:
    sf = folder.name.removeprefix("sf")
    return f"Remove {folder} and run `df-strategies data --sf {sf}` to make it again."


def _parquet_files(folder: Path) -> list[Path]:
    return [path for table in TABLES for path in sorted((folder / table).glob("*.parquet"))]


def _footer(folder: Path, path: Path) -> tuple[int, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        msg = f"{path} is not a readable Parquet file ({first}). {_remedy(folder)}"
        raise UserError(msg) from error
    return metadata.num_rows, metadata.num_row_groups


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(HASH_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
