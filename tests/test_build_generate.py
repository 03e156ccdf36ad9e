"""Generated sources: exact, repeatable, and gentle to modification times."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_helpers import REPOSITORY
from harness.build import sdist
from harness.build.generate import generated_tree, sync
from harness.build.paths import OWN_PACKAGES, STRATEGIES
from harness.build.sdist import read_sdist, verify_sdist
from harness.errors import UserError

NAMES = st.text("abc", min_size=1, max_size=3)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/".join(parts) + ".py"),
    st.binary(max_size=20),
    max_size=6,
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if not path.is_dir()}


@settings(max_examples=50, deadline=None)
@given(TREES, TREES)
def test_sync_makes_the_folder_equal_and_then_changes_nothing(
    first: dict[str, bytes], second: dict[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "generated"
        for tree in (first, second):
            sync(folder, tree)
            assert contents(folder) == tree
            assert sync(folder, tree) == []


def test_unchanged_files_keep_their_time(tmp_path: Path) -> None:
    sync(tmp_path, {"a.rs": b"1", "b.rs": b"2"})
    stamp = (tmp_path / "a.rs").stat().st_mtime_ns
    assert sync(tmp_path, {"a.rs": b"1", "b.rs": b"3"}) == ["b.rs"]
    assert (tmp_path / "a.rs").stat().st_mtime_ns == stamp


def test_a_module_that_maturin_put_there_stays(tmp_path: Path) -> None:
    sync(tmp_path, {"python/p/__init__.py": b""})
    module = tmp_path / "python" / "p" / "_native.abi3.so"
    module.write_bytes(b"")
    assert sync(tmp_path, {"python/p/__init__.py": b""}) == []
    assert module.exists()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_package_carries_its_record_and_the_shared_files(name: str) -> None:
    tree = generated_tree(REPOSITORY, name)
    package = f"python/{OWN_PACKAGES[name]}"
    record = json.loads(tree[f"{package}/_build.json"])
    assert record["target"] == name
    assert {"source_hash", "lock_hash", "strategy_hash", "upstream_sdist_sha256"} <= record.keys()
    for file in (
        "__init__.py",
        "__main__.py",
        "cli.py",
        "cluster.py",
        "factory.py",
        "spec.py",
        "status.py",
        "worker.py",
    ):
        assert f"{package}/{file}" in tree, file
    assert tree == generated_tree(REPOSITORY, name)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_python_file_compiles_and_is_typed(name: str) -> None:
    tree = generated_tree(REPOSITORY, name)
    top = OWN_PACKAGES[name].split("/")[0]
    assert f"python/{top}/py.typed" in tree
    for path, content in tree.items():
        if path.endswith((".py", ".pyi")):
            compile(content, path, "exec")


def test_packages_with_upstream_code_carry_its_licence() -> None:
    for name in ("inline", "external"):
        tree = generated_tree(REPOSITORY, name)
        assert b"Apache License" in tree["LICENSE.txt"]
        notice = (REPOSITORY / "strategies" / name / "NOTICE").read_text()
        assert "The Apache Software Foundation" in notice


def test_stub_names_what_one_strategy_adds() -> None:
    stubs = {name: generated_tree(REPOSITORY, name)[f"python/{OWN_PACKAGES[name]}/_native.pyi"] for name in STRATEGIES}
    assert all(b"class Worker" in stub for stub in stubs.values())
    assert b"def distributed_context" in stubs["external"]
    assert b"class DistributedExtension" in stubs["decorator"]
    assert b"DistributedExtension" not in stubs["inline"]


def test_another_sdist_is_refused(tmp_path: Path) -> None:
    other = tmp_path / sdist.SDIST_NAME
    other.write_bytes(b"not the sdist")
    with pytest.raises(UserError, match=sdist.SDIST_SHA256):
        verify_sdist(other)
    with pytest.raises(UserError, match="refusing"):
        read_sdist(other)


def test_sdist_holds_crate_and_python_layer() -> None:
    tree = read_sdist()
    assert {"crates/core/src/lib.rs", "python/datafusion/__init__.py", "LICENSE.txt", "Cargo.lock"} <= tree.keys()
    assert not any(path.startswith(("/", "..")) for path in tree)
