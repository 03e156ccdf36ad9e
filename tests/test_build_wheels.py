"""Prebuilt files are taken only when they were made from the sources in this checkout."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from build_helpers import small_checkout
from harness.build import ensure_wheels
from harness.build.artifacts import NATIVE_RECORD, write_native_record
from harness.build.build import export, prune
from harness.build.generate import build_record, record_bytes
from harness.build.paths import DISTRIBUTIONS, OWN_PACKAGES, STRATEGIES
from harness.errors import NotComparable, UserError

FILE_NAMES = {
    "inline": "datafusion-55.0.0+distributed-cp310-abi3-linux_x86_64.whl",
    "external": "datafusion_external-0.1.0-cp310-abi3-linux_x86_64.whl",
    "decorator": "datafusion_decorator-0.1.0-cp310-abi3-linux_x86_64.whl",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = small_checkout(tmp_path / "checkout")
    monkeypatch.setenv("DF_STRATEGIES_CHECKOUT", str(root))
    monkeypatch.setenv("DF_STRATEGIES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")  # prebuilt files need no Rust
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "wheels"
    path.mkdir()
    return path


def make_wheel(folder: Path, name: str, record: dict[str, str] | None) -> Path:
    path = folder / FILE_NAMES[name]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{OWN_PACKAGES[name]}/__init__.py", "")
        if record is not None:
            wheel.writestr(f"{OWN_PACKAGES[name]}/_build.json", record_bytes(record))
    return path


@pytest.mark.parametrize("name", STRATEGIES)
def test_wheel_of_these_sources_is_taken(checkout: Path, folder: Path, name: str) -> None:
    path = make_wheel(folder, name, build_record(checkout, name))
    artifact = ensure_wheels([name], wheels_dir=folder)[name]
    assert artifact.path == path
    assert artifact.kind == "wheel"
    assert not artifact.built
    assert path.name.startswith(DISTRIBUTIONS[name])


@pytest.mark.parametrize("field", ["source_hash", "lock_hash", "strategy_hash", "upstream_sdist_sha256"])
def test_wheel_of_other_sources_is_refused_by_name_of_the_hash(checkout: Path, folder: Path, field: str) -> None:
    record = build_record(checkout, "decorator")
    make_wheel(folder, "decorator", {**record, field: "0" * 64})
    with pytest.raises(NotComparable, match=f"other sources.*{field} 000000000000, checkout {record[field][:12]}"):
        ensure_wheels(["decorator"], wheels_dir=folder)


def test_wheel_is_refused_after_the_engine_changes(checkout: Path, folder: Path) -> None:
    make_wheel(folder, "external", build_record(checkout, "external"))
    ensure_wheels(["external"], wheels_dir=folder)
    source = checkout / "shared_rust" / "engine" / "src" / "lib.rs"
    source.write_text(source.read_text() + "// one more line\n")
    with pytest.raises(NotComparable, match="source_hash"):
        ensure_wheels(["external"], wheels_dir=folder)


def test_wheel_under_the_name_of_another_strategy_is_refused(checkout: Path, folder: Path) -> None:
    make_wheel(folder, "decorator", build_record(checkout, "external"))
    with pytest.raises(NotComparable, match="target external"):
        ensure_wheels(["decorator"], wheels_dir=folder)


def test_stock_wheel_is_not_taken_for_inline(checkout: Path, folder: Path) -> None:
    make_wheel(folder, "inline", None)
    with pytest.raises(UserError, match="no readable build record"):
        ensure_wheels(["inline"], wheels_dir=folder)


def test_truncated_wheel_is_named(checkout: Path, folder: Path) -> None:
    path = make_wheel(folder, "inline", build_record(checkout, "inline"))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=r"datafusion-55.*no readable build record"):
        ensure_wheels(["inline"], wheels_dir=folder)


def test_missing_and_doubled_wheels_are_named(checkout: Path, folder: Path) -> None:
    with pytest.raises(UserError, match=r"exactly one datafusion_decorator-\*\.whl.*found none"):
        ensure_wheels(["decorator"], wheels_dir=folder)
    make_wheel(folder, "decorator", build_record(checkout, "decorator"))
    (folder / "datafusion_decorator-0.2.0-py3-none-any.whl").write_bytes(b"")
    with pytest.raises(UserError, match="found datafusion_decorator-0.1.0"):
        ensure_wheels(["decorator"], wheels_dir=folder)


def test_folder_that_is_none(checkout: Path, folder: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        ensure_wheels(["decorator"], wheels_dir=folder / "nothing")


def test_native_binary_needs_its_record(checkout: Path, folder: Path) -> None:
    binary = folder / "df-strategies-native"
    binary.write_bytes(b"binary")
    with pytest.raises(UserError, match="no readable build record"):
        ensure_wheels(["native"], wheels_dir=folder)
    write_native_record(checkout, binary)
    assert ensure_wheels(["native"], wheels_dir=folder)["native"].kind == "binary"
    binary.write_bytes(b"another binary")
    with pytest.raises(NotComparable, match=r"not the file that df-strategies-native\.build\.json"):
        ensure_wheels(["native"], wheels_dir=folder)


def test_exported_artifacts_are_accepted_again(checkout: Path, folder: Path, tmp_path: Path) -> None:
    make_wheel(folder, "decorator", build_record(checkout, "decorator"))
    binary = folder / "df-strategies-native"
    binary.write_bytes(b"binary")
    write_native_record(checkout, binary)
    names = ["decorator", "native"]
    copies = export(ensure_wheels(names, wheels_dir=folder), tmp_path / "out")
    assert [copy.name for copy in copies] == [FILE_NAMES["decorator"], "df-strategies-native"]
    assert json.loads((tmp_path / "out" / NATIVE_RECORD).read_text())["target"] == "native"
    assert list(ensure_wheels(names, wheels_dir=tmp_path / "out")) == names


def test_pruning_keeps_the_newest_and_the_one_just_made(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02d}").mkdir()
    keep = tmp_path / "00"
    prune(tmp_path, keep)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert keep.name in left
    assert 16 <= len(left) <= 17
