"""What we commit about inline and external agrees with upstream's own manifests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from build_helpers import REPOSITORY, small_checkout
from harness.build.manifest import lock_additions, manifest_differences
from harness.build.sdist import VERSION, read_sdist
from harness.build.tomlfile import parse_toml


def project(name: str) -> dict[str, Any]:
    path = REPOSITORY / "strategies" / name / "pyproject.toml"
    return parse_toml(path.read_text(), str(path))


def upstream_project() -> dict[str, Any]:
    return parse_toml(read_sdist()["pyproject.toml"].decode(), "pyproject.toml")


def test_manifest_is_upstreams_plus_the_declared_additions() -> None:
    assert manifest_differences(REPOSITORY) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("prost.workspace = true\n", "", "dependencies: prost is missing"),
        ("prost.workspace = true\n", "prost.workspace = true\nrand = '1'\n", "dependencies: rand is not upstream's"),
        ('"abi3", "substrait"]', '"abi3"]', "features: default is"),
        ("mimalloc = { workspace = true, optional = true }", "mimalloc.workspace = true", "optional in one manifest"),
    ],
)
def test_a_departure_is_found(tmp_path: Path, old: str, new: str, expected: str) -> None:
    root = small_checkout(tmp_path)
    path = root / "strategies" / "inline" / "Cargo.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert any(expected in difference for difference in manifest_differences(root)), manifest_differences(root)


def test_missing_feature_is_found(tmp_path: Path) -> None:
    root = small_checkout(tmp_path)
    path = root / "Cargo.toml"
    path.write_text(
        path.read_text().replace('"unicode_expressions"', "").replace('features = ["aws", ', "features = [")
    )
    differences = manifest_differences(root)
    assert any("datafusion lacks features ['unicode_expressions']" in difference for difference in differences)
    assert any("object_store lacks features ['aws']" in difference for difference in differences)


@pytest.mark.parametrize("name", ["inline", "external"])
def test_python_dependencies_are_upstreams(name: str) -> None:
    ours, upstream = project(name)["project"], upstream_project()["project"]
    assert ours["dependencies"] == upstream["dependencies"]
    assert ours["requires-python"] == upstream["requires-python"]


def test_inline_is_upstreams_release_with_a_local_version() -> None:
    ours = project("inline")["project"]
    assert ours["name"] == upstream_project()["project"]["name"]
    assert ours["version"] == f"{VERSION}+distributed"


def test_decorator_needs_the_stock_package_of_one_major() -> None:
    assert project("decorator")["project"]["dependencies"] == ["datafusion>=55,<56"]


@pytest.mark.parametrize("name", ["inline", "external", "decorator"])
def test_projects_name_their_licence_and_backend(name: str) -> None:
    document = project(name)
    assert document["project"]["license"] == "Apache-2.0"
    assert "NOTICE" in document["project"]["license-files"]
    assert document["build-system"]["requires"] == ["maturin>=1.9,<2"]
    assert document["tool"]["maturin"]["locked"] is True


def test_lock_additions_hold_the_engine_and_no_package_of_upstream() -> None:
    added = lock_additions(REPOSITORY)
    assert {"datafusion-distributed", "tonic", "arrow-flight"} <= set(added)
    assert not {"datafusion", "arrow", "pyo3", "tokio"} & set(added)


def test_check_command_agrees() -> None:
    command = [sys.executable, "-m", "harness.build", "overlay", "--check"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
