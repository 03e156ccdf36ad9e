"""Hashes that say which sources something was built from.

`source_hash` and `lock_hash` are also computed by the engine's build script in Rust; both sides must agree byte for
byte, because the harness compares what a running worker reports with what this checkout holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.build.paths import NATIVE, shared_python, strategy_dir
from harness.build.sdist import SDIST_SHA256

ENGINE_CRATES = ("engine", "bindings", "unified")
"""Crates under shared_rust/ whose sources make the engine of every arm."""

STRATEGY_FILES = ("Cargo.toml", "pyproject.toml", "README.md", "NOTICE")
STRATEGY_FOLDERS = ("src", "python", "overlay")
GENERATORS = tuple(f"harness/build/{name}.py" for name in ("generate", "overlay", "rename"))
"""Code that turns sources into other sources: a wheel depends on it as much as on them."""

IGNORED_PARTS = ("__pycache__", ".mypy_cache", ".ruff_cache")


def digest_files(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 (hex) over files in the order of their POSIX paths, as path, NUL, bytes, NUL."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.encode("utf-8") + b"\0")
        digest.update(files[path] + b"\0")
    return digest.hexdigest()


def source_files(root: Path) -> dict[str, bytes]:
    """Return the files that define the engine: every *.rs and Cargo.toml of its crates and the root Cargo.toml."""
    found = [root / "Cargo.toml"]
    for crate in ENGINE_CRATES:
        folder = root / "shared_rust" / crate
        found += [path for path in folder.rglob("*.rs") if path.is_file()]
        found += [path for path in folder.rglob("Cargo.toml") if path.is_file()]
    return _read(root, found)


def source_hash(root: Path) -> str:
    """Return the hash of the engine's sources, equal in all arms that may be compared."""
    return digest_files(source_files(root))


def lock_hash(root: Path) -> str:
    """Return the SHA-256 (hex) of Cargo.lock."""
    return hashlib.sha256((root / "Cargo.lock").read_bytes()).hexdigest()


def strategy_hash(root: Path, name: str) -> str:
    """Return the hash of what one target adds to the engine.

    Its own files; for a wheel also the Python that all share, the code that generates sources, and the pinned sdist.
    """
    folder = strategy_dir(root, name)
    found = [folder / file for file in STRATEGY_FILES if (folder / file).is_file()]
    for part in STRATEGY_FOLDERS:
        found += [path for path in (folder / part).rglob("*") if path.is_file()]
    if name != NATIVE:
        found += [path for path in shared_python(root).rglob("*") if path.is_file()]
        found += [root / file for file in GENERATORS]
    files = _read(root, found)
    files["upstream sdist"] = SDIST_SHA256.encode()
    return digest_files(files)


def wheel_key(parts: Mapping[str, str]) -> str:
    """Return the name of the cache folder for one build: 16 hex digits over everything that shapes it."""
    return digest_files({key: value.encode() for key, value in parts.items()})[:16]


def _read(root: Path, paths: Iterable[Path]) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in paths
        if not any(part in IGNORED_PARTS for part in path.parts)
    }
