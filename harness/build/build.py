"""Give the wheels and the binary of this checkout: from the user's folder, from the cache, or by building them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.build.artifacts import (
    NATIVE_RECORD,
    Artifact,
    BuildRecord,
    check_built,
    current_record,
    find_prebuilt,
    read_record,
    write_native_record,
)
from harness.build.compile import PROFILES, compile_target, crates_in_graph
from harness.build.generate import generate
from harness.build.hashing import wheel_key
from harness.build.lock import build_lock
from harness.build.paths import NATIVE, NATIVE_BINARY, check_names, checkout
from harness.build.progress import Progress
from harness.build.toolchain import BUILD_REQUIREMENTS, check_rust, check_space, ensure_build_env
from harness.errors import UserError
from harness.settings import cache_root

KEPT_RESULTS = 16
"""Cached builds to keep: four targets on four commits, about 1 GB."""


def ensure_wheels(
    names: Sequence[str],
    *,
    wheels_dir: Path | None = None,
    profile: str = "release",
    progress: bool = True,
) -> dict[str, Artifact]:
    """Return the named targets, built from this checkout if they are not at hand.

    Args:
        names: any of `inline`, `external`, `decorator` (wheels) and `native` (a binary).
        wheels_dir: folder with prebuilt files. Every named target must be in it, and its build record must match the
            checkout; nothing is compiled then, and no Rust is needed.
        profile: `release` or `dist`.
        progress: show progress on standard error.

    Returns:
        An artifact per name, in a fixed order.

    Raises:
        UserError: an unknown name or profile, a missing tool, no space, or a prebuilt file that is missing.
        NotComparable: a prebuilt file from other sources.
        HarnessFault: the build failed.
    """
    root = checkout()
    ordered = check_names(list(names))
    if profile not in PROFILES:
        msg = f"unknown profile {profile!r}: expected {' or '.join(PROFILES)}"
        raise UserError(msg)
    if wheels_dir is not None:
        return {name: _prebuilt(root, name, Path(wheels_dir)) for name in ordered}
    return {name: _ensure(root, name, profile, show=progress) for name in ordered}


def _prebuilt(root: Path, name: str, folder: Path) -> Artifact:
    started = time.monotonic()
    if not folder.is_dir():
        msg = f"{folder} is not a folder: --wheels expects one with prebuilt wheels"
        raise UserError(msg)
    path = find_prebuilt(root, name, folder)
    return _artifact(name, path, built=False, started=started)


def _ensure(root: Path, name: str, profile: str, *, show: bool) -> Artifact:
    started = time.monotonic()
    rustc = check_rust(root)
    cached = cached_path(root, name, profile, rustc)
    if cached is not None:
        return _artifact(name, cached, built=False, started=started)
    bar = Progress(f"build {name}", None, enabled=show)
    with build_lock(cache_root() / "build.lock", bar.message):
        cached = cached_path(root, name, profile, rustc)  # whoever held the lock may have built it
        if cached is not None:
            return _artifact(name, cached, built=False, started=started)
        check_space()
        ensure_build_env()
        return _artifact(name, _build(root, name, profile, rustc, show=show), built=True, started=started)


def _build(root: Path, name: str, profile: str, rustc: str, *, show: bool) -> Path:
    before = current_record(root, name)
    key = _key(before, profile, rustc)
    if name != NATIVE:
        generate(root, name)
    bar = Progress(f"build {name}", crates_in_graph(root, name), enabled=show)
    log = cache_root() / "logs" / f"build-{name}.log"
    bar.message(f"compiling (log: {log})")
    with _staging(cache_root() / "wheels") as staging:
        built = compile_target(root, name, profile, staging, log, bar)
        if name == NATIVE:
            built = Path(shutil.copy2(built, staging / NATIVE_BINARY))
            write_native_record(root, built)
        check_built(root, name, built, before)
        final = cache_root() / "wheels" / key
        shutil.rmtree(final, ignore_errors=True)
        staging.chmod(0o755)  # mkdtemp keeps others out, who may read a shared cache
        staging.replace(final)
    prune(cache_root() / "wheels", keep=final)
    bar.finish(f"ready: {final / built.name}")
    return final / built.name


@contextlib.contextmanager
def _staging(parent: Path) -> Iterator[Path]:
    """Yield a folder that becomes the result by one rename; an interrupted build leaves nothing.

    A killed one leaves its folder, which the next build removes: whoever is here holds the lock.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(".building-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=".building-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cached_path(root: Path, name: str, profile: str, rustc: str) -> Path | None:
    """Return the cached artifact of the current sources, or None."""
    folder = cache_root() / "wheels" / _key(current_record(root, name), profile, rustc)
    found = sorted(folder.glob(NATIVE_BINARY if name == NATIVE else "*.whl"))
    return found[0] if len(found) == 1 else None


def _key(record: BuildRecord, profile: str, rustc: str) -> str:
    parts = record.model_dump(exclude_none=True)
    return wheel_key({**parts, "profile": profile, "rustc": rustc, "tools": " ".join(BUILD_REQUIREMENTS)})


def _artifact(name: str, path: Path, *, built: bool, started: float) -> Artifact:
    return Artifact(
        name=name,
        kind="binary" if name == NATIVE else "wheel",
        path=path,
        record=read_record(name, path),
        built=built,
        seconds=time.monotonic() - started,
    )


def prune(folder: Path, keep: Path) -> None:
    """Delete the oldest results beyond `KEPT_RESULTS`, never `keep`."""
    results = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    results.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in results[KEPT_RESULTS:]:
        if path != keep:
            shutil.rmtree(path, ignore_errors=True)


def export(artifacts: dict[str, Artifact], folder: Path) -> list[Path]:
    """Copy artifacts into a folder that `wheels_dir` accepts, and return the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    copies: list[Path] = []
    for name, artifact in artifacts.items():
        copies.append(Path(shutil.copy2(artifact.path, folder / artifact.path.name)))
        if name == NATIVE:
            shutil.copy2(artifact.path.parent / NATIVE_RECORD, folder / NATIVE_RECORD)
    return copies
