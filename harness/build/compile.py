"""Run Cargo and maturin: a log file for everything, progress from Cargo's own lines, and a clean stop on Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from harness.build.paths import CRATES, NATIVE, NATIVE_BINARY, strategy_dir, target_dir
from harness.build.progress import Progress
from harness.build.toolchain import build_env_tool, build_environment, write_pyo3_config
from harness.errors import HarnessFault

PROFILES = ("release", "dist")
"""Profiles of the workspace: `release` is what every arm is compared in, `dist` adds thin LTO."""

TAIL_LINES = 30
"""Lines of the log that the error about a failed build quotes: rustc's last error usually fits."""

STOP_TIMEOUT_S = 15

_COMPILING = re.compile(r"^\s*Compiling (\S+) v")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def build_command(root: Path, name: str, profile: str, out: Path) -> list[str]:
    """Return the command that builds one target; wheels go to `out`, the binary to Cargo's target folder."""
    if name == NATIVE:
        return ["cargo", "build", "--profile", profile, "--locked", "-p", CRATES[name]]
    manifest = strategy_dir(root, name) / "Cargo.toml"
    # `--compatibility linux`: the wheel is for this machine; auditing would want patchelf and change nothing here.
    command = [str(build_env_tool("maturin")), "build", "--profile", profile, "--locked", "--out", str(out)]
    command += ["--manifest-path", str(manifest)]
    return command + (["--compatibility", "linux"] if sys.platform == "linux" else [])


def compile_target(root: Path, name: str, profile: str, out: Path, log: Path, progress: Progress) -> Path:
    """Compile one target and return the file that came out (a wheel in `out`, or the binary).

    Raises:
        HarnessFault: the build failed; the message ends with the tail of the log.
        KeyboardInterrupt: passed on after the build processes have been stopped.
    """
    write_pyo3_config()
    run_logged(build_command(root, name, profile, out), root, log, progress)
    if name == NATIVE:
        return target_dir() / profile / NATIVE_BINARY
    wheels = sorted(out.glob("*.whl"))
    if len(wheels) != 1:
        msg = f"{name}: expected one wheel in {out}, found {[wheel.name for wheel in wheels]}; see {log}"
        raise HarnessFault(msg)
    return wheels[0]


def run_logged(command: list[str], cwd: Path, log: Path, progress: Progress) -> None:
    """Run a command with its output in `log`; count the crates it compiles.

    Raises:
        HarnessFault: a non-zero exit.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8", buffering=1) as file:
        file.write(f"$ {' '.join(command)}\n")
        with deferred_interrupt() as interrupted:
            process = _start(command, cwd)
        try:
            if interrupted:
                signal.raise_signal(signal.SIGINT)
            _follow(process, file, progress)
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
    if code != 0:
        msg = f"the build failed (exit {code}): `{' '.join(command)}`\n{tail(log)}\nfull log: {log}"
        raise HarnessFault(msg)


def _follow(process: subprocess.Popen[str], log: TextIO, progress: Progress) -> None:
    """Copy a build's output to the log until it ends, and count the crates in it."""
    for line in process.stdout or ():
        log.write(line)
        match = _COMPILING.match(_ANSI.sub("", line))
        if match:
            progress.step(match[1])


def _start(command: list[str], cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=build_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        # A group of its own: Ctrl-C must not reach rustc before we decide, and stopping must reach all of them.
        start_new_session=True,
    )


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[list[int]]:
    """Hold Ctrl-C back for the block and note it in the list that is yielded.

    An interrupt inside `Popen` would leave a child that nobody knows of. Only the main thread is ever interrupted.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop a build and everything it started; Cargo leaves its target folder usable whenever it is stopped."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if os.name != "nt" else (signal.SIGTERM,):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name != "nt":
                os.killpg(process.pid, sign)
            else:  # pragma: no cover
                process.terminate()
        try:
            process.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue
        return


def crates_in_graph(root: Path, name: str) -> int | None:
    """Return how many crates the graph of one target holds on this platform, or None when Cargo cannot say.

    Only the progress bar needs it, so a failure here is no reason to stop.
    """
    host = _host_triple()
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(root / "Cargo.toml")]
    if host:
        command += ["--filter-platform", host]
    done = subprocess.run(command, env=build_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    graph = json.loads(done.stdout)
    names = {package["id"]: package["name"] for package in graph["packages"]}
    links = {node["id"]: node["dependencies"] for node in graph["resolve"]["nodes"]}
    todo = [package for package, label in names.items() if label == CRATES[name]]
    seen: set[str] = set()
    while todo:
        package = todo.pop()
        if package not in seen:
            seen.add(package)
            todo += links.get(package, [])
    return len(seen) or None


def _host_triple() -> str | None:
    done = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=False)
    match = re.search(r"^host: (\S+)", done.stdout, re.MULTILINE)
    return match[1] if match else None
