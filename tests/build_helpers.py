"""A small checkout and a pretended toolchain, for tests of the build that must not compile DataFusion.

The scripts stand in for programs of the user's machine (rustc, cargo, maturin, protoc), never for code of this project.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import textwrap
from pathlib import Path

from harness.build.hashing import GENERATORS
from harness.build.toolchain import MATURIN_VERSION, PROTOC_VERSION

REPOSITORY = Path(__file__).resolve().parents[1]

RUSTC = """
case "$1" in
  --version) echo "rustc {version} (0000000 2026-01-01)" ;;
  -vV) echo "host: x86_64-unknown-linux-gnu" ;;
esac
"""


def write_script(path: Path, body: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + textwrap.dedent(body), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def small_checkout(folder: Path) -> Path:
    """Make a checkout with this repository's manifests and strategies, and a few lines of Rust."""
    for relative in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(REPOSITORY / relative, _parent(folder / relative))
    ignore = shutil.ignore_patterns("generated", "__pycache__", "src")
    shutil.copytree(REPOSITORY / "strategies", folder / "strategies", ignore=ignore)
    shutil.copytree(REPOSITORY / "shared_rust" / "bindings" / "python", folder / "shared_rust" / "bindings" / "python")
    for generator in GENERATORS:
        shutil.copy2(REPOSITORY / generator, _parent(folder / generator))
    for crate in ("engine", "bindings", "unified", "native"):
        source = folder / "shared_rust" / crate / "src" / "lib.rs"
        _parent(source).write_text(f"//! {crate}\n", encoding="utf-8")
        (folder / "shared_rust" / crate / "Cargo.toml").write_text("[package]\n", encoding="utf-8")
    return folder


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def pretended_tools(folder: Path, *, rustc: str = "1.99.0", cargo: str = "exit 0") -> Path:
    """Make a `bin` folder with a rustc of a version and a cargo that runs the given lines."""
    write_script(folder / "rustc", RUSTC.format(version=rustc))
    write_script(folder / "cargo", cargo)
    return folder


def pretended_build_env(cache: Path) -> None:
    """Make a build environment that answers as the pinned one does."""
    folder = cache / "build-env" / "bin"
    write_script(folder / "maturin", f"echo 'maturin {MATURIN_VERSION}'")
    write_script(folder / "protoc", f"echo 'libprotoc {PROTOC_VERSION}'")
    (folder / "python").symlink_to(sys.executable)


def build_variables(checkout: Path, cache: Path, tools: Path) -> dict[str, str]:
    """Return an environment in which the build sees nothing of the real cache and toolchain."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
    environment["DF_STRATEGIES_CHECKOUT"] = str(checkout)
    environment["DF_STRATEGIES_CACHE"] = str(cache)
    environment["CARGO_TARGET_DIR"] = str(cache / "target")
    environment["PATH"] = os.pathsep.join([str(tools), "/usr/bin", "/bin"])
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), environment.get("PYTHONPATH", "")])
    return environment
