"""A build that is stopped, or that fails, leaves nothing half-written and no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from build_helpers import build_variables, pretended_build_env, pretended_tools, small_checkout
from harness.errors import EXIT_HARNESS_FAULT

SLOW_CARGO = """
case "$1" in
  metadata) exit 1 ;;
esac
echo "   Compiling first-crate v1.0.0" >&2
echo $$ > "$CARGO_TARGET_DIR/cargo.pid"
sleep 600
"""

GOOD_CARGO = """
case "$1" in
  metadata) exit 1 ;;
esac
echo "   Compiling first-crate v1.0.0" >&2
echo "   Compiling df-strategies-native v0.1.0" >&2
mkdir -p "$CARGO_TARGET_DIR/release"
printf 'binary' > "$CARGO_TARGET_DIR/release/df-strategies-native"
"""

FAILING_CARGO = """
echo "   Compiling first-crate v1.0.0" >&2
echo "error[E0308]: mismatched types" >&2
exit 101
"""


class Bench:
    """A small checkout, an empty cache, and a cargo that does what a test needs."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.checkout = small_checkout(folder / "checkout")
        self.tools = folder / "bin"
        (self.cache / "target").mkdir(parents=True)
        # As if a first build had been there: the space check is not what these tests are about.
        (self.cache / "target" / "release" / "deps").mkdir(parents=True)
        pretended_build_env(self.cache)

    def start(self, cargo: str) -> subprocess.Popen[str]:
        pretended_tools(self.tools, cargo=cargo)
        return subprocess.Popen(
            [sys.executable, "-m", "harness.build", "native"],
            env=build_variables(self.checkout, self.cache, self.tools),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def results(self) -> list[str]:
        folder = self.cache / "wheels"
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) if folder.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def wait_for(path: Path, seconds: float = 30) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.is_file() and path.read_text().strip():
            return path.read_text().strip()
        time.sleep(0.05)
    pytest.fail(f"{path} did not appear within {seconds} s")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


def test_interrupted_build_leaves_nothing_and_the_next_one_works(bench: Bench) -> None:
    process = bench.start(SLOW_CARGO)
    cargo = int(wait_for(bench.cache / "target" / "cargo.pid"))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert not alive(cargo)
    assert bench.results() == []

    again = bench.start(GOOD_CARGO)
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert "built" in output
    assert [Path(path).name for path in bench.results()][1:] == [
        "df-strategies-native",
        "df-strategies-native.build.json",
    ]


def test_a_second_build_of_the_same_sources_compiles_nothing(bench: Bench) -> None:
    assert bench.start(GOOD_CARGO).wait(timeout=60) == 0
    again = bench.start(FAILING_CARGO)
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert "up to date" in output
    source = bench.checkout / "shared_rust" / "native" / "src" / "lib.rs"
    source.write_text("//! changed\n")
    changed = bench.start(FAILING_CARGO)
    _, errors = changed.communicate(timeout=60)
    assert changed.returncode == EXIT_HARNESS_FAULT, errors


def test_folder_of_a_killed_build_is_removed(bench: Bench) -> None:
    process = bench.start(SLOW_CARGO)
    cargo = int(wait_for(bench.cache / "target" / "cargo.pid"))
    process.kill()
    process.communicate()
    os.killpg(cargo, signal.SIGKILL)
    assert any(path.startswith(".building-") for path in bench.results())
    assert bench.start(GOOD_CARGO).wait(timeout=60) == 0
    assert not any(path.startswith(".building-") for path in bench.results())


def test_failed_build_quotes_the_compiler_and_names_the_log(bench: Bench) -> None:
    process = bench.start(FAILING_CARGO)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == EXIT_HARNESS_FAULT
    assert "mismatched types" in errors
    assert str(bench.cache / "logs" / "build-native.log") in errors
    assert "Traceback" not in errors
    assert bench.results() == []


def test_progress_counts_crates(bench: Bench) -> None:
    process = bench.start(GOOD_CARGO)
    _, errors = process.communicate(timeout=60)
    assert "2 crates compiled" in errors
    assert "compiling" in errors


def test_two_builds_at_once_compile_once(bench: Bench) -> None:
    slow = GOOD_CARGO.replace(
        'echo "   Compiling first', 'echo x >> "$CARGO_TARGET_DIR/runs"; sleep 2; echo "   Compiling first'
    )
    first, second = bench.start(slow), bench.start(slow)
    errors = [process.communicate(timeout=60)[1] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], errors
    assert (bench.cache / "target" / "runs").read_text().split() == ["x"]
    assert sum("another build is running" in text for text in errors) == 1
