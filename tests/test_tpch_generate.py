"""Making data: whole or absent, whatever happens in between; reuse; and one clear message for everything wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import HarnessFault, UserError
from tpch import generate, scale
from tpch.dataset import data_root
from tpch.generate import DataSet, ensure_data, load_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SF = "0.01"
MIDWAY_SF: scale.ScaleFactor = "0.1"
"""For runs that are interrupted: SF0.01 is written in a blink once the generator has started."""

WAIT_S = 300.0
"""Longest wait for another process: generation takes about 3 s of processor time, on a loaded machine much longer."""

GENERATE = (
    "import sys; from pathlib import Path; from tpch.generate import ensure_data;"
    "print(ensure_data(sys.argv[2], Path(sys.argv[1])).fingerprint)"
)


@pytest.fixture
def copied(tpch_sf001: DataSet, tmp_path: Path) -> DataSet:
    """Copy the session's data into a root of its own, free to be damaged."""
    shutil.copytree(tpch_sf001.root / "tpch", tmp_path / "tpch")
    return load_data(SF, tmp_path)


def start_generating(root: Path, sf: str = SF, prefix: str = "") -> subprocess.Popen[str]:
    """`ensure_data` in another process that prints the fingerprint; `prefix` is code to run first."""
    environment = {**os.environ, "PYTHONPATH": str(Path(generate.__file__).parent.parent)}
    return subprocess.Popen(
        [sys.executable, "-c", prefix + GENERATE, str(root), sf],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def wait_until_midway(root: Path, process: subprocess.Popen[str]) -> None:
    """Wait until some of the files are there while the generator still runs."""
    deadline = time.monotonic() + WAIT_S
    while not any((root / "tpch").glob(".sf*.tmp-*/*/*.parquet")):
        assert process.poll() is None, f"ended early: {process.communicate()}"
        assert time.monotonic() < deadline, f"nothing was written in {WAIT_S} s"
        time.sleep(0.005)


def visible(root: Path) -> list[str]:
    """List what is in the data folder, without lock files."""
    return sorted(p.name for p in (root / "tpch").iterdir() if not p.name.endswith(".lock"))


def test_data_is_complete_and_described(tpch_sf001: DataSet) -> None:
    assert tpch_sf001.rows == scale.expected_rows("0.01")
    assert set(tpch_sf001.tables) == set(scale.TABLES)
    manifest = json.loads((tpch_sf001.folder / "manifest.json").read_text())
    assert manifest["generator"] == tpch_sf001.generator
    assert manifest["generator"].startswith("tpchgen-cli 4.")
    assert manifest["fingerprint"] == tpch_sf001.fingerprint
    for table, folder in tpch_sf001.tables.items():
        files = sorted(folder.glob("*.parquet"))
        assert len(files) == (1 if table in scale.FIXED_ROWS else scale.PARTS["0.01"]), table
        assert sum(pq.read_metadata(file).num_rows for file in files) == tpch_sf001.rows[table]
    assert len(list(tpch_sf001.tables["lineitem"].iterdir())) >= 3
    assert tpch_sf001.bytes == sum(entry["bytes"] for entry in manifest["files"])
    assert visible(tpch_sf001.root) == ["sf0.01"]


def test_existing_data_is_reused_and_not_touched(copied: DataSet) -> None:
    before = {p: p.stat().st_mtime_ns for p in copied.folder.rglob("*")}
    assert ensure_data(SF, copied.root, progress=False) == copied
    assert ensure_data(SF, copied.root, progress=False, verify=True) == copied
    assert {p: p.stat().st_mtime_ns for p in copied.folder.rglob("*")} == before


@pytest.mark.parametrize("victim", ["python", "generator"])
def test_a_killed_run_leaves_no_half_table_and_the_next_one_works(tmp_path: Path, victim: str) -> None:
    process = start_generating(tmp_path, MIDWAY_SF)
    wait_until_midway(tmp_path, process)
    if victim == "python":
        process.kill()
    else:
        (generator,) = psutil.Process(process.pid).children()
        generator.kill()
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode != 0
    if victim == "generator":
        assert "was ended by SIGKILL" in errors
        assert visible(tmp_path) == []
    with pytest.raises(UserError, match=r"no data for SF0.1 .*run `df-strategies data --sf 0.1`"):
        load_data(MIDWAY_SF, tmp_path)
    # A generator whose parent was killed may still be writing; its lock keeps this call waiting until it is gone.
    assert ensure_data(MIDWAY_SF, tmp_path, progress=False).rows == scale.expected_rows(MIDWAY_SF)
    assert visible(tmp_path) == ["sf0.1"]


def test_ctrl_c_cleans_up_at_once(tmp_path: Path) -> None:
    # A test run in the background of a shell would otherwise hand "ignore Ctrl-C" down to its children.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    process = start_generating(tmp_path, MIDWAY_SF, heed)
    wait_until_midway(tmp_path, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT_S)
    assert process.returncode != 0
    assert visible(tmp_path) == []


def test_two_processes_at_once_generate_once(tpch_sf001: DataSet, tmp_path: Path) -> None:
    processes = [start_generating(tmp_path), start_generating(tmp_path)]
    outputs = [process.communicate(timeout=WAIT_S) for process in processes]
    assert [out for out, _ in outputs] == [f"{tpch_sf001.fingerprint}\n"] * 2, outputs
    assert sum("waiting for process" in errors for _, errors in outputs) == 1
    assert visible(tmp_path) == ["sf0.01"]


def truncate(folder: Path) -> str:
    path = folder / "lineitem" / "lineitem.2.parquet"
    os.truncate(path, path.stat().st_size // 2)
    return r"lineitem.2.parquet .*expected \d+ bytes, found \d+ bytes"


def break_footer(folder: Path) -> str:
    path = folder / "orders" / "orders.1.parquet"
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"XXXX")
    return "orders.1.parquet is not a readable Parquet file"


def remove_file(folder: Path) -> str:
    (folder / "part" / "part.3.parquet").unlink()
    return r"part.3.parquet .*expected \d+ bytes, found no file"


def add_file(folder: Path) -> str:
    shutil.copy(folder / "nation" / "nation.1.parquet", folder / "nation" / "extra.parquet")
    return "extra.parquet .*expected no such file .*found a file"


def swap_content(folder: Path) -> str:
    path = folder / "region" / "region.1.parquet"
    size, padding = path.stat().st_size, 0
    for _ in range(5):  # lengths are written with a varying number of bytes, so the first guess may be off by a few
        table = pa.table({"pad": ["x" * padding]})
        pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
        padding += size - path.stat().st_size
    assert path.stat().st_size == size
    return r"region.1.parquet .*expected 5 rows in 1 row groups, found 1 rows in 1 row groups"


def damage_manifest(folder: Path) -> str:
    (folder / "manifest.json").write_text("{")
    return "manifest.json cannot be read"


def edit_manifest(folder: Path) -> str:
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    content["files"][0]["rows"] += 1
    path.write_text(json.dumps(content))
    return "manifest.json does not match its own fingerprint"


def outdate_manifest(folder: Path) -> str:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    return "manifest.json has format 0, expected 1"


def remove_manifest(folder: Path) -> str:
    (folder / "manifest.json").unlink()
    return "has no manifest.json, so it was not written by this project"


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        break_footer,
        remove_file,
        add_file,
        swap_content,
        damage_manifest,
        edit_manifest,
        outdate_manifest,
        remove_manifest,
    ],
)
def test_data_that_differs_is_named_and_not_overwritten(copied: DataSet, damage: Callable[[Path], str]) -> None:
    message = damage(copied.folder)
    before = {p: p.stat().st_mtime_ns for p in copied.folder.rglob("*")}
    for attempt in (load_data, ensure_data):
        with pytest.raises(UserError, match=message) as caught:
            attempt(SF, copied.root)
        assert caught.value.exit_code == 2
        assert f"Remove {copied.folder} and run `df-strategies data --sf 0.01`" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert {p: p.stat().st_mtime_ns for p in copied.folder.rglob("*")} == before


def test_a_flipped_bit_is_found_by_the_full_check(copied: DataSet) -> None:
    path = copied.folder / "customer" / "customer.1.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert load_data(SF, copied.root) == copied, "the fast check reads footers only"
    with pytest.raises(UserError, match=r"customer.1.parquet .*expected sha256 [0-9a-f]{64}, found sha256"):
        load_data(SF, copied.root, verify=True)


def test_data_of_another_scale_factor_under_the_wrong_name_is_refused(copied: DataSet) -> None:
    copied.folder.rename(copied.root / "tpch" / "sf1")
    with pytest.raises(UserError, match=r"holds SF0.01, expected SF1"):
        load_data("1", copied.root)


@pytest.mark.parametrize("sf", ["3", "0", "-1", "1.0", "", "one", "../1"])
def test_an_unknown_scale_factor_is_refused(tmp_path: Path, sf: str) -> None:
    for attempt in (load_data, ensure_data):
        with pytest.raises(UserError, match=r"unknown scale factor .*expected one of 0.01, 0.1, 1, 10"):
            attempt(sf, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Make a folder on a file system of 2 MB, which SF0.01 (3.6 MB) does not fit into.

    Where this process may not mount one, a limit on file sizes gives the same failure to write for all processes that
    it starts: no machine goes without the test.
    """
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield folder
        subprocess.run(["umount", folder], check=True)
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_on_the_way(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "BYTES_FLOOR", 0)  # somebody else takes the room after it was checked
    monkeypatch.setattr(scale, "BYTES_PER_SF", 0)
    with pytest.raises(UserError, match=r"no room left in .*nothing was kept.*Make room or set DF_STRATEGIES_DATA"):
        ensure_data(SF, small_disk, progress=False)
    assert visible(small_disk) == []


def test_a_limit_on_file_sizes_counts_as_no_room(tmp_path: Path) -> None:
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (200_000, r.getrlimit(r.RLIMIT_FSIZE)[1]));"
    _, errors = start_generating(tmp_path, prefix=limit).communicate(timeout=WAIT_S)
    assert "UserError: no room left" in errors
    assert visible(tmp_path) == []


def test_too_little_room_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "BYTES_PER_SF", 10**18)
    with pytest.raises(UserError, match=r"SF0.01 needs about 10,000,000,000 MB .*but only [0-9,]+ MB are free"):
        ensure_data(SF, tmp_path, progress=False)
    assert visible(tmp_path) == []


def test_a_root_that_cannot_hold_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tpch").write_text("a file, not a folder")
    with pytest.raises(UserError, match="cannot write below"):
        ensure_data(SF, tmp_path, progress=False)


def test_a_missing_or_broken_generator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = tmp_path / "bin"
    scripts.mkdir()
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(scripts))
    monkeypatch.setenv("PATH", str(scripts))
    with pytest.raises(UserError, match=r"tpchgen-cli is not installed .*pip install tpchgen-cli"):
        ensure_data(SF, tmp_path / "data", progress=False)
    program = scripts / "tpchgen-cli"
    program.write_text("not a program")
    program.chmod(0o755)
    with pytest.raises(HarnessFault, match="does not run"):
        ensure_data(SF, tmp_path / "data", progress=False)
    for body, message in [
        ("echo boom >&2; exit 3", "exited with status 3: boom"),
        ("exit 0", r"other row counts than TPC-H SF0.01 has .*lineitem: expected 60175 rows, found 0"),
    ]:
        program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\n{body}\n')
        with pytest.raises(HarnessFault, match=message) as caught:
            ensure_data(SF, tmp_path / "data", progress=False)
        assert caught.value.exit_code == 4
    assert visible(tmp_path / "data") == []


def test_where_data_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DF_STRATEGIES_DATA", raising=False)
    assert data_root() == Path(generate.__file__).parent.parent / "data"
    monkeypatch.setenv("DF_STRATEGIES_DATA", str(tmp_path))
    assert data_root() == tmp_path
    assert data_root(tmp_path / "given") == tmp_path / "given"


def test_the_progress_bar_stays_out_of_pipes(tpch_sf001: DataSet, tmp_path: Path) -> None:
    out, errors = start_generating(tmp_path).communicate(timeout=WAIT_S)
    assert (out, errors) == (f"{tpch_sf001.fingerprint}\n", "")
