"""Generate the sources of each wheel: upstream's tree plus the overlay, or a renamed copy, plus the shared Python.

A generated tree is git-ignored and can be deleted at any time. Files are written only when their content differs,
because Cargo and maturin look at modification times: generating again must not recompile anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness.build.hashing import lock_hash, source_hash, strategy_hash
from harness.build.overlay import apply_overlay, load_overlay
from harness.build.paths import OWN_PACKAGES, generated_dir, shared_python, strategy_dir
from harness.build.rename import rename_package
from harness.build.sdist import SDIST_SHA256, Tree, read_sdist
from harness.errors import HarnessFault

BUILD_RECORD = "_build.json"
"""File in each strategy's own package that says which sources the wheel was made from."""

STUB = "_native.pyi"
STUB_ADDITION = "_native_extra.pyi"
"""What one strategy adds to the stub that all native modules share; appended at generation."""

UPSTREAM_PYTHON = "python/datafusion/"
UPSTREAM_FOLDERS = ("crates/core/", "python/")
MANIFESTS = ("Cargo.toml", "pyproject.toml")
UPSTREAM_FILES = ("LICENSE.txt", "README.md", "Cargo.toml", "pyproject.toml")


def generate(root: Path, name: str) -> Path:
    """Bring the generated sources of one strategy up to date and return their folder.

    Raises:
        OverlayError: the overlay does not fit the pinned sdist.
        UserError: the sdist cannot be fetched.
    """
    folder = generated_dir(root, name)
    sync(folder, generated_tree(root, name))
    return folder


def generated_tree(root: Path, name: str) -> Tree:
    """Return everything that belongs into the generated folder of one strategy, the build record included."""
    tree = {"inline": _inline, "external": _external, "decorator": _decorator}[name](root)
    tree[f"python/{OWN_PACKAGES[name]}/{BUILD_RECORD}"] = record_bytes(build_record(root, name))
    return tree


def build_record(root: Path, name: str) -> dict[str, str]:
    """Return the hashes that identify the sources of one target."""
    return {
        "target": name,
        "source_hash": source_hash(root),
        "lock_hash": lock_hash(root),
        "strategy_hash": strategy_hash(root, name),
        "upstream_sdist_sha256": SDIST_SHA256,
    }


def record_bytes(record: Mapping[str, str]) -> bytes:
    """Return a build record as it is written into a package."""
    return (json.dumps(record, indent=2, sort_keys=True) + "\n").encode()


def upstream_tree() -> Tree:
    """Return the part of the pinned sdist that the overlay may touch: the crate and the Python layer."""
    return {
        path: content
        for path, content in read_sdist().items()
        if path.startswith(UPSTREAM_FOLDERS) or path in UPSTREAM_FILES
    }


def overlaid_tree(root: Path) -> Tree:
    """Return upstream's tree as the pull request of `inline` would leave it."""
    tree = apply_overlay(upstream_tree(), load_overlay(strategy_dir(root, "inline") / "overlay"))
    for path, content in shared_files(root, "inline").items():
        tree[f"python/{OWN_PACKAGES['inline']}/{path}"] = content
    return tree


def _inline(root: Path) -> Tree:
    # The committed manifest in strategies/inline is the one that Cargo reads; upstream's would only mislead.
    return {path: content for path, content in overlaid_tree(root).items() if not path.endswith(MANIFESTS)}


def _external(root: Path) -> Tree:
    upstream = upstream_tree()
    package = OWN_PACKAGES["external"]
    layer = rename_package(upstream, UPSTREAM_PYTHON, package)
    layer = apply_overlay(layer, load_overlay(strategy_dir(root, "external") / "overlay"))
    # Where upstream ever has a file of the same name as ours, losing one silently would be the worst outcome.
    own = own_files(root, "external")
    clash = sorted(layer.keys() & own.keys() - {"py.typed"})
    if clash:
        msg = f"external: upstream's Python layer has files of ours: {', '.join(clash)}"
        raise HarnessFault(msg)
    tree = {f"python/{package}/{path}": content for path, content in {**layer, **own}.items()}
    tree["LICENSE.txt"] = upstream["LICENSE.txt"]
    return tree


def _decorator(root: Path) -> Tree:
    package = OWN_PACKAGES["decorator"]
    return {f"python/{package}/{path}": content for path, content in own_files(root, "decorator").items()}


def own_files(root: Path, name: str) -> Tree:
    """Return the files of a strategy's own package: the shared ones, then its own over them."""
    files = shared_files(root, name)
    own = _read_package(strategy_dir(root, name) / "python" / OWN_PACKAGES[name])
    own.pop(STUB_ADDITION, None)
    return {**files, **own}


def shared_files(root: Path, name: str) -> Tree:
    """Return the Python files that every package gets, with the native stub completed for this strategy."""
    files = _read_package(shared_python(root))
    addition = strategy_dir(root, name) / "python" / OWN_PACKAGES[name] / STUB_ADDITION
    if addition.is_file():
        files[STUB] += b"\n" + addition.read_bytes()
    return files


def _read_package(folder: Path) -> Tree:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".py", ".pyi", ".typed")
    }


def sync(folder: Path, tree: Tree) -> list[str]:
    """Make a folder hold exactly `tree`; return the paths that were written or deleted.

    Each file is replaced as a whole, so an interruption leaves every file either old or new, and the next call mends
    the rest.
    """
    changed: list[str] = []
    for path, content in tree.items():
        target = folder / path
        if target.is_file() and target.read_bytes() == content:
            continue
        _write(target, content)
        changed.append(path)
    for there in sorted(folder.rglob("*"), reverse=True):
        relative = there.relative_to(folder).as_posix()
        if there.is_dir():
            with contextlib.suppress(OSError):  # a folder that still holds files stays
                there.rmdir()
        elif relative not in tree and not _is_native_module(there):
            there.unlink()
            changed.append(relative)
    return changed


def _is_native_module(path: Path) -> bool:
    """`maturin develop` puts a compiled module beside the Python files; it is not ours to delete."""
    return path.suffix in (".so", ".pyd")


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
