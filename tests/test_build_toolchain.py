"""Missing and outdated tools are named before anything is compiled, and the build environment stays the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from build_helpers import build_variables, pretended_build_env, pretended_tools, small_checkout, write_script
from harness.build import toolchain
from harness.build.paths import target_dir
from harness.errors import EXIT_USAGE, UserError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def build(checkout: Path, cache: Path, tools: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.build", *(arguments or ("native",))]
    environment = build_variables(checkout, cache, tools)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_rustc_too_old_names_found_and_required(checkout: Path, tmp_path: Path) -> None:
    tools = pretended_tools(tmp_path / "bin", rustc="1.70.0")
    done = build(checkout, tmp_path / "cache", tools)
    assert done.returncode == EXIT_USAGE
    assert "rustc 1.70.0" in done.stderr
    assert toolchain.required_rust(checkout) in done.stderr
    assert "rustup update" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("missing", ["cargo", "rustc"])
def test_missing_rust_says_where_to_get_it(checkout: Path, tmp_path: Path, missing: str) -> None:
    tools = pretended_tools(tmp_path / "bin")
    (tools / missing).unlink()
    done = build(checkout, tmp_path / "cache", tools)
    assert done.returncode == EXIT_USAGE
    assert f"{missing} was not found" in done.stderr
    assert "rustup.rs" in done.stderr
    assert "--wheels" in done.stderr


def test_a_rustc_that_fails_is_reported_with_its_words(checkout: Path, tmp_path: Path) -> None:
    tools = pretended_tools(tmp_path / "bin")
    write_script(tools / "rustc", "echo 'error: toolchain is not installed' >&2; exit 1")
    done = build(checkout, tmp_path / "cache", tools)
    assert done.returncode == EXIT_USAGE
    assert "toolchain is not installed" in done.stderr


@pytest.mark.parametrize(
    ("older", "newer"), [("1.93", "1.94"), ("1.9", "1.94"), ("1.94.1", "1.95.0"), ("1.99", "2.0"), ("1.100", "2.0")]
)
def test_versions_compare_by_number(older: str, newer: str) -> None:
    assert toolchain.version_pair(older) < toolchain.version_pair(newer)


def test_unknown_target_lists_the_targets(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, tmp_path / "cache", pretended_tools(tmp_path / "bin"), "inlne")
    assert done.returncode == EXIT_USAGE
    assert "inlne" in done.stderr
    assert "inline, external, decorator, native" in done.stderr


def test_no_space_is_found_before_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    monkeypatch.setattr(toolchain, "COLD_BUILD_BYTES", 1 << 62)
    with pytest.raises(UserError, match="are free"):
        toolchain.check_space()
    (tmp_path / "target" / "release" / "deps").mkdir(parents=True)
    toolchain.check_space()


def test_pyo3_configuration_keeps_its_time_when_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    path = toolchain.write_pyo3_config()
    assert path == target_dir() / "pyo3-config.txt"
    assert len(path.read_text().splitlines()) == 6
    stamp = path.stat().st_mtime_ns
    assert toolchain.write_pyo3_config().stat().st_mtime_ns == stamp
    path.write_text("something else")
    assert toolchain.write_pyo3_config().read_text() == toolchain.PYO3_CONFIG


def test_build_variables_do_not_depend_on_who_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DF_STRATEGIES_CACHE", str(tmp_path))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    seen = set()
    for environment in ("/one", "/two"):
        monkeypatch.setenv("VIRTUAL_ENV", environment)
        monkeypatch.setenv("PYO3_PYTHON", environment)
        whole = toolchain.build_environment()
        assert "VIRTUAL_ENV" not in whole
        assert "PYO3_PYTHON" not in whole
        seen.add(tuple(sorted(toolchain.build_variables().items())))
        assert toolchain.build_variables().items() <= whole.items()
    assert len(seen) == 1


def test_a_working_build_environment_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DF_STRATEGIES_CACHE", str(tmp_path))
    pretended_build_env(tmp_path)
    marker = tmp_path / "build-env" / "marker"
    marker.touch()
    assert toolchain.ensure_build_env() == tmp_path / "build-env" / "bin" / "python"
    assert marker.exists()


def test_the_sdist_is_fetched_into_an_empty_cache(tmp_path: Path) -> None:
    """On a new machine the fetch comes first of all: nothing that later steps write is there yet."""
    code = "from harness.build.sdist import ensure_sdist; print(ensure_sdist())"
    environment = {**os.environ, "DF_STRATEGIES_CACHE": str(tmp_path / "cache")}
    environment.pop("CARGO_TARGET_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_file()
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
