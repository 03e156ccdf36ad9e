"""The hashes that tie a binary to its sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_helpers import REPOSITORY, small_checkout
from harness.build.hashing import digest_files, lock_hash, source_files, source_hash, strategy_hash
from harness.build.paths import STRATEGIES, TARGETS

PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
FILES = st.dictionaries(PATHS, st.binary(max_size=40), max_size=6)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def test_digest_is_path_nul_bytes_nul_in_order_of_paths() -> None:
    expected = hashlib.sha256(b"a/B.rs\0x\0a/b.rs\0\0b.rs\0yz\0").hexdigest()
    assert digest_files({"b.rs": b"yz", "a/b.rs": b"", "a/B.rs": b"x"}) == expected


@settings(deadline=None)
@given(FILES)
def test_digest_does_not_depend_on_the_order_of_discovery(files: dict[str, bytes]) -> None:
    assert digest_files(files) == digest_files(dict(reversed(files.items())))


@settings(deadline=None)
@given(FILES, PATHS, st.binary(max_size=40))
def test_digest_changes_with_every_added_or_changed_file(files: dict[str, bytes], path: str, content: bytes) -> None:
    changed = {**files, path: content}
    assert (digest_files(changed) == digest_files(files)) == (changed == files)


@settings(deadline=None)
@given(FILES, st.data())
def test_digest_changes_when_a_file_is_renamed(files: dict[str, bytes], data: st.DataObject) -> None:
    if not files:
        return
    old = data.draw(st.sampled_from(sorted(files)))
    new = data.draw(PATHS.filter(lambda path: path not in files))
    renamed = {(new if path == old else path): content for path, content in files.items()}
    assert digest_files(renamed) != digest_files(files)


def test_source_hash_covers_the_engine_and_nothing_else(checkout: Path) -> None:
    before = source_hash(checkout)
    for outside in ("shared_rust/native/src/lib.rs", "shared_rust/bindings/python/spec.py", "strategies/inline/NOTICE"):
        path = checkout / outside
        path.write_text(path.read_text() + "\nchanged\n")
        assert source_hash(checkout) == before, outside
    for inside in ("Cargo.toml", "shared_rust/engine/src/lib.rs", "shared_rust/unified/Cargo.toml"):
        path = checkout / inside
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert source_hash(checkout) != before, inside
        path.write_bytes(content)
        assert source_hash(checkout) == before, inside
    (checkout / "shared_rust/engine/src/new.rs").write_text("")
    assert source_hash(checkout) != before


def test_source_files_of_this_repository_are_rust_and_manifests() -> None:
    files = source_files(REPOSITORY)
    assert {"Cargo.toml", "shared_rust/engine/Cargo.toml", "shared_rust/engine/src/lib.rs"} <= files.keys()
    assert all(path.endswith(".rs") or path.endswith("Cargo.toml") for path in files)
    assert not any("/native/" in path or path.startswith("strategies/") for path in files)


def test_lock_hash_is_the_plain_hash_of_the_lock(checkout: Path) -> None:
    assert lock_hash(checkout) == hashlib.sha256((checkout / "Cargo.lock").read_bytes()).hexdigest()


def test_strategy_hash_follows_own_files_and_the_shared_python(checkout: Path) -> None:
    before = {name: strategy_hash(checkout, name) for name in TARGETS}
    assert len(set(before.values())) == len(TARGETS)
    own = checkout / "strategies/external/python/datafusion_external/factory.py"
    own.write_text(own.read_text() + "\n")
    after = {name: strategy_hash(checkout, name) for name in TARGETS}
    assert [name for name in TARGETS if after[name] != before[name]] == ["external"]
    shared = checkout / "shared_rust/bindings/python/worker.py"
    shared.write_text(shared.read_text() + "\n")
    last = {name: strategy_hash(checkout, name) for name in TARGETS}
    assert [name for name in TARGETS if last[name] != after[name]] == list(STRATEGIES)
    generator = checkout / "harness/build/rename.py"
    generator.write_text(generator.read_text() + "\n")
    assert [name for name in TARGETS if strategy_hash(checkout, name) != last[name]] == list(STRATEGIES)


def test_caches_of_python_do_not_count(checkout: Path) -> None:
    before = strategy_hash(checkout, "decorator")
    cache = checkout / "shared_rust/bindings/python/__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "spec.cpython-311.pyc").write_bytes(b"x")
    assert strategy_hash(checkout, "decorator") == before
