"""What a build leaves behind, and whether something prebuilt may stand in for it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

from pydantic import ValidationError

from harness.build.generate import BUILD_RECORD, build_record
from harness.build.paths import DISTRIBUTIONS, NATIVE, NATIVE_BINARY, OWN_PACKAGES
from harness.errors import HarnessFault, NotComparable, UserError
from harness.model import Frozen

NATIVE_RECORD = "df-strategies-native.build.json"
"""Build record beside the native binary, which cannot carry a file inside."""


class BuildRecord(Frozen):
    """Which sources something was built from. All hashes are SHA-256 in hex."""

    target: str
    source_hash: str
    lock_hash: str
    strategy_hash: str
    upstream_sdist_sha256: str
    binary_sha256: str | None = None
    """Hash of the binary a record lies beside; null inside a wheel."""


class Artifact(Frozen):
    """One built target."""

    name: str
    kind: str
    """`wheel` or `binary`."""
    path: Path
    record: BuildRecord
    built: bool
    """False when it came from the cache or from the user's folder."""
    seconds: float
    """Time it took to get it, compile time included."""


def current_record(root: Path, name: str) -> BuildRecord:
    """Return the record that a build of this checkout would carry."""
    return BuildRecord(**build_record(root, name))


def find_prebuilt(root: Path, name: str, folder: Path) -> Path:
    """Return the prebuilt wheel or binary of a target from the user's folder.

    Raises:
        UserError: there is none, or more than one.
        NotComparable: it was built from other sources than this checkout.
    """
    pattern = NATIVE_BINARY if name == NATIVE else f"{DISTRIBUTIONS[name]}-*.whl"
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        listed = ", ".join(path.name for path in found) or "none"
        msg = f"{folder}: expected exactly one {pattern} for {name}, found {listed}"
        raise UserError(msg)
    check_prebuilt(root, name, found[0])
    return found[0]


def check_prebuilt(root: Path, name: str, path: Path) -> None:
    """Check that a prebuilt file was made from the sources in this checkout.

    Raises:
        NotComparable: any hash differs; the message names each.
        UserError: it carries no record, so it was not built by this project.
    """
    record = read_record(name, path)
    current = current_record(root, name)
    differing = [
        f"{field} {getattr(record, field)[:12]}, checkout {getattr(current, field)[:12]}"
        for field in ("target", "source_hash", "lock_hash", "strategy_hash", "upstream_sdist_sha256")
        if getattr(record, field) != getattr(current, field)
    ]
    if differing:
        msg = (
            f"{path} was built from other sources than this checkout ({'; '.join(differing)}); "
            "check out the commit it was built from, or leave --wheels away to build it here"
        )
        raise NotComparable(msg)
    if name == NATIVE and record.binary_sha256 != file_sha256(path):
        msg = f"{path} is not the file that {NATIVE_RECORD} beside it describes: build it again"
        raise NotComparable(msg)


def read_record(name: str, path: Path) -> BuildRecord:
    """Return the build record of a wheel or of the native binary.

    Raises:
        UserError: no record, or one that cannot be read.
    """
    try:
        if name == NATIVE:
            content = (path.parent / NATIVE_RECORD).read_bytes()
        else:
            with zipfile.ZipFile(path) as wheel:
                content = wheel.read(f"{OWN_PACKAGES[name]}/{BUILD_RECORD}")
        return BuildRecord(**json.loads(content))
    except (OSError, KeyError, zipfile.BadZipFile, ValueError, TypeError, ValidationError) as error:
        msg = f"{path} carries no readable build record of this project ({type(error).__name__}: {error})"
        raise UserError(msg) from error


def write_native_record(root: Path, binary: Path) -> None:
    """Put the build record beside the native binary."""
    record = current_record(root, NATIVE).model_copy(update={"binary_sha256": file_sha256(binary)})
    (binary.parent / NATIVE_RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")


def check_built(root: Path, name: str, path: Path, before: BuildRecord) -> None:
    """Check a fresh build: it carries its record, and the sources are still those it started from.

    Raises:
        HarnessFault: the sources changed while it was being built, or the record is not in the wheel.
    """
    if current_record(root, name) != before:
        msg = f"the sources of {name} changed while it was being built: build it again"
        raise HarnessFault(msg)
    if read_record(name, path).model_copy(update={"binary_sha256": None}) != before:
        msg = f"{path.name} does not carry the build record of its sources"
        raise HarnessFault(msg)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 (hex) of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
