"""Packaging: measured by the arm's interpreter, counted on the sources, never blank without a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import HarnessFault, UserError
from report_helpers import make_packaging
from reports.packaging import PROBE, build_packaging, collect_packaging, measure_arms, probe
from reports.source_facts import (
    code_share,
    facts_map,
    lock_facts,
    reachable,
    read_lock,
    scan_private,
    source_facts,
)

PYTHON = Path(sys.executable)
ROOT = Path(__file__).parents[1]

LOCK = """
version = 4
[[package]]
name = "df-strategies-decorator"
version = "0.1.0"
dependencies = ["datafusion-distributed", "shared 2.0.0"]
[[package]]
name = "datafusion-distributed"
version = "4.0.0"
dependencies = ["tonic", "shared 1.0.0"]
[[package]]
name = "datafusion-python"
version = "55.0.0"
dependencies = ["shared 1.0.0"]
[[package]]
name = "tonic"
version = "0.14.0"
[[package]]
name = "shared"
version = "1.0.0"
[[package]]
name = "shared"
version = "2.0.0"
"""


def test_probe_measures_a_real_import():
    found = probe(PYTHON, "import", ["datafusion"])
    assert found["import_ms"] > 1
    assert found["rss_after_kb"] > found["rss_before_kb"] > 0
    assert found["threads"] >= 1


def test_probe_tells_which_library_holds_datafusion():
    found = probe(PYTHON, "files", ["datafusion", "duckdb"])
    libraries = {entry["name"]: entry["native"] for entry in found["distributions"]}
    assert [entry["holds_datafusion"] for entry in libraries["datafusion"]] == [True]
    assert [entry["holds_datafusion"] for entry in libraries["duckdb"]] == [False]
    assert libraries["datafusion"][0]["bytes"] > 10_000_000


def test_probe_of_a_missing_package_names_it():
    with pytest.raises(HarnessFault, match="no_such_package"):
        probe(PYTHON, "import", ["no_such_package"])


def test_probe_usage():
    done = subprocess.run([PYTHON, "-I", PROBE, "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_a_failed_measurement_becomes_reasons():
    document = {"arms": measure_arms({"local": (PYTHON, ["no_such_package"])}, repeats=1)}
    (row,) = build_packaging(document).rows
    assert row.import_cost is None
    assert "no_such_package" in row.reasons["import_cost"]
    assert row.reasons["wheel_bytes"] == "no wheel file was given"


def test_collect_and_build(tmp_path):
    wheel = tmp_path / "datafusion-55.0.0.whl"
    wheel.write_bytes(b"x" * 1000)
    arms = {"local": (PYTHON, ["datafusion"]), "inline": (PYTHON, ["datafusion"])}
    document = collect_packaging(arms, wheels={"local": wheel, "inline": wheel}, checkout=ROOT, repeats=1)
    stock, inline = build_packaging(document).rows
    assert (stock.wheel_bytes, inline.wheel_delta_bytes, inline.native_delta_bytes) == (1000, 0, 0)
    assert stock.source is None
    homes = {share.home for share in inline.source.code}
    assert homes == {"datafusion-python", "datafusion-distributed", "with the binding"}


def test_deltas_beside_and_instead_of_stock():
    rows = {
        row.arm: row for row in build_packaging(make_packaging(), ["local", "inline", "external", "decorator"]).rows
    }
    assert list(rows) == ["local", "inline", "external", "decorator"]
    assert rows["inline"].wheel_delta_bytes == 12_000_000, "replaces the stock wheel"
    assert rows["decorator"].wheel_delta_bytes == 41_000_000, "comes on top of the stock wheel"
    assert rows["decorator"].datafusion_copies == 2
    assert rows["local"].import_cost.first_ms == 390.0


def test_lock_closure_and_duplicates():
    facts = lock_facts(LOCK, "df-strategies-decorator", "datafusion-python")
    assert facts.packages == 4, "own crates do not count"
    assert facts.over_stock == ["datafusion-distributed", "tonic"]
    assert facts.duplicates == ["shared"]


def test_unknown_root_of_a_lock():
    with pytest.raises(UserError, match="no package `nothing`"):
        reachable(read_lock(LOCK), "nothing")


@pytest.mark.parametrize(
    ("name", "text", "language", "lines"),
    [
        ("a.py", "# comment\n\nx = 1\n    y = 2\n", "Python", 2),
        ("a.rs", "//! doc\n/// doc\nfn f() {}\n\n// c\n", "Rust", 1),
        ("a.rs.txt", "// c\nfn f() {}\n", "Rust", 1),
        ("tests/a.py", "x = 1\n", "Python tests", 1),
        ("overlay.toml", '[[insert]]\nfile = "x"\nlines = """\na\nb\n"""\n', "insertions", 2),
    ],
)
def test_counting_lines(tmp_path, name, text, language, lines):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    share = code_share(tmp_path, {"home": "h", "title": "t", "paths": [name]}, shared=False)
    assert share.lines == {language: lines}


def test_patterns_without_a_file_are_shown(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    share = code_share(tmp_path, {"home": "h", "title": "t", "paths": ["*.py", "*.rs"]}, shared=False)
    assert share.lines == {"Python": 1}
    assert share.unmatched == ["*.rs"]


@pytest.mark.parametrize(
    "line",
    [
        "from datafusion._internal import SessionContext",
        "import datafusion._internal as native",
        "from datafusion.context import SessionContext, _secret",
        "native = ctx.ctx",
        "return session._internal_state",
    ],
)
def test_private_symbols_are_found(tmp_path, line):
    (tmp_path / "a.py").write_text(f"# {line}\n{line}\n")
    (use,) = scan_private(tmp_path, ["*.py"], facts_map()["private"])
    assert use.line == 2


@pytest.mark.parametrize(
    "line",
    [
        "from datafusion import SessionContext",
        "from datafusion_decorator import _native",
        "self._ctx = ctx",
        "ctx.sql('x')",
    ],
)
def test_public_use_is_not_called_private(tmp_path, line):
    (tmp_path / "a.py").write_text(line + "\n")
    assert scan_private(tmp_path, ["*.py"], facts_map()["private"]) == []


def test_decorator_uses_nothing_private():
    assert source_facts(ROOT, "decorator").private == []


def test_one_line_is_one_use(tmp_path):
    (tmp_path / "a.py").write_text("from datafusion._internal import _x; import datafusion._internal\n")
    assert len(scan_private(tmp_path, ["*.py"], facts_map()["private"])) == 1


@pytest.mark.parametrize("arm", ["inline", "external", "decorator"])
def test_every_path_of_the_map_leads_to_files(arm):
    assert [share.unmatched for share in source_facts(ROOT, arm).code if share.unmatched] == []


def test_the_map_covers_every_strategy():
    assert {entry["arm"] for entry in facts_map()["strategy"]} == {"inline", "external", "decorator"}
    assert set(facts_map()["lock"]["roots"]) == {"inline", "external", "decorator"}
