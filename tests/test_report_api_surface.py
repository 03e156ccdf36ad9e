"""Public names by execution, their differences, and the shortest scripts."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from report_helpers import make_api_surface
from reports.api_diff import build_api_surface, diff_names
from reports.api_surface import dump_package
from reports.collect import dump_names
from reports.shortest import SCRIPTS, code_lines, diff_script, run_script, run_scripts, script_names, static_diffs

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def stock() -> dict:
    return dump_names(PYTHON, ["datafusion"])["packages"]["datafusion"]


@pytest.fixture(scope="module")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "lineitem.parquet"
    pq.write_table(pa.table({"l_shipmode": ["AIR", "RAIL", "AIR"], "l_quantity": [1, 2, 3]}), path)
    return path


def test_stock_names_are_found(stock):
    names = stock["names"]
    assert stock["version"] == "55.0.0"
    assert len(names) > 1_000
    assert [entry["name"] for entry in names["datafusion.SessionContext.sql"]["parameters"]][0] == "query"
    assert names["datafusion.context.SessionContext"] == {
        "kind": "alias",
        "of": "datafusion.SessionContext",
        "parameters": None,
        "doc": True,
    }
    assert names["datafusion.DataFrame.__arrow_c_stream__"]["protocol"]


def test_nothing_private_and_no_member_twice(stock):
    for path in stock["names"]:
        last = path.rsplit(".", 1)[1]
        assert not last.startswith("_") or last == "__init__" or last.startswith(("__datafusion_", "__arrow_c_")), path
    assert "datafusion.context.SessionContext.sql" not in stock["names"]


def test_native_signatures_are_readable(stock):
    blind = [
        path for path, entry in stock["names"].items() if entry["kind"] == "callable" and entry["parameters"] is None
    ]
    assert len(blind) < 10, f"inspect cannot read {len(blind)} callables: {blind[:5]}"


def test_dump_is_the_same_again(stock):
    assert dump_names(PYTHON, ["datafusion"])["packages"]["datafusion"] == stock


@pytest.fixture
def compiled_copy(tmp_path, monkeypatch) -> str:
    """A package whose classes claim to be another package's, as a compiled copy of datafusion's do."""
    folder = tmp_path / "copy_of_it"
    folder.mkdir()
    (folder / "__init__.py").write_text("from copy_of_it.expr import Base, Child, Enumerated\n")
    (folder / "expr.py").write_text(
        "import enum\n"
        "class Base:\n    def kept(self): ...\n    __module__ = 'datafusion.expr'\n"
        "class Child(Base):\n    def own(self): ...\n    __module__ = 'datafusion.expr'\n"
        "class Enumerated(enum.Enum):\n    A = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "copy_of_it"
    for name in ("copy_of_it", "copy_of_it.expr"):
        sys.modules.pop(name, None)


def test_a_compiled_copy_owns_its_classes(compiled_copy):
    names = dump_package(compiled_copy)["names"]
    assert {"copy_of_it.Base.kept", "copy_of_it.Child.own", "copy_of_it.Enumerated.A"} <= set(names)
    assert names["copy_of_it.expr.Base"]["of"] == "copy_of_it.Base"


def test_inherited_members_count_once(compiled_copy):
    names = dump_package(compiled_copy)["names"]
    assert "copy_of_it.Child.kept" not in names
    assert "copy_of_it.Enumerated.name" not in names, "comes from the standard library"


def test_missing_package_is_a_result():
    found = dump_names(PYTHON, ["datafusion", "no_such_package"])
    assert "ModuleNotFoundError" in found["packages"]["no_such_package"]["error"]
    assert found["packages"]["datafusion"]["error"] is None


def test_missing_interpreter_is_a_result(tmp_path):
    found = dump_names(tmp_path / "python", ["datafusion"])
    assert "No such file" in found["packages"]["datafusion"]["error"]


def test_equal_dumps_have_no_difference(stock):
    assert diff_names(stock["names"], stock["names"]) == ([], [], [])


def test_a_renamed_copy_has_no_difference(stock):
    copied = json.loads(json.dumps(stock["names"]).replace('"datafusion.', '"datafusion_external.'))
    assert diff_names(stock["names"], copied, package="datafusion_external") == ([], [], [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parameters": []}, "parameter removed: query"),
        ({"kind": "property"}, "kind callable -> property"),
        ({"parameters": None}, "signature no longer readable"),
        ({"doc": False}, "docstring lost"),
    ],
)
def test_changes_are_described(change, words):
    parameter = {"name": "query", "kind": "positional_or_keyword", "default": None, "annotation": "str"}
    base = {"kind": "callable", "parameters": [parameter], "doc": True}
    _, _, changed = diff_names({"datafusion.sql": base}, {"datafusion.sql": {**base, **change}})
    assert [entry.what for entry in changed] == [words]


def test_default_and_annotation_changes_name_both_sides():
    def entry(default: str, annotation: str) -> dict:
        parameter = {"name": "n", "kind": "keyword_only", "default": default, "annotation": annotation}
        return {"kind": "callable", "parameters": [parameter], "doc": True}

    _, _, changed = diff_names({"datafusion.f": entry("1", "int")}, {"datafusion.f": entry("2", "float")})
    assert changed[0].what == "default of n: 1 -> 2; annotation of n: int -> float"


def test_another_path_to_the_same_object_is_not_an_addition():
    document = make_api_surface()
    names = document["dumps"]["inline"]["packages"]["datafusion"]["names"]
    names["datafusion.distributed.worker.Worker"] = {"kind": "alias", "of": "x", "parameters": None, "doc": True}
    (row,) = build_api_surface(document, ["inline"]).strategies
    assert row.shared().added_aliases == ["datafusion.distributed.worker.Worker"]
    assert len(row.shared().added) == 2


def test_section_per_strategy():
    section = build_api_surface(make_api_surface(), ["inline", "external", "decorator"])
    inline, external, decorator = section.strategies
    assert inline.shared().added == ["datafusion.SessionConfig.with_distributed", "datafusion.distributed.Worker"]
    assert external.shared().role == "mirror"
    assert [change.what for change in external.shared().changed] == ["parameter added: strict"]
    assert external.shared().undocumented == ["datafusion_external.DistributedSessionContext"]
    assert [diff.role for diff in decorator.diffs] == ["shared", "own"]
    assert decorator.shared().added == []


def test_a_strategy_that_was_not_dumped_says_why():
    document = make_api_surface()
    del document["dumps"]["inline"]
    (row,) = build_api_surface(document, ["inline"]).strategies
    assert row.diffs == []
    assert row.reason == "the arm's interpreter was not dumped"


def test_every_arm_has_a_script_that_starts_from_the_local_one():
    assert script_names() == ["local", "decorator", "external", "inline"]
    for arm, diff in static_diffs(["inline", "external", "decorator"]).items():
        assert 0 < diff.added <= 3, arm
        assert diff.lines == len(code_lines((SCRIPTS / f"{arm}.py").read_text(encoding="utf-8")))
        assert any("datafusion" in line for line in diff.imports_added), arm


def test_diff_counts_lines():
    diff = diff_script("x", '"""Doc."""\n\nimport a\nrun()\n', '"""Other."""\n\nimport a\nimport b\n\nrun(2)\n')
    assert (diff.added, diff.removed, diff.imports_added) == (2, 1, ["import b"])


def test_local_script_runs(lineitem):
    output, error, seconds = run_script("local", PYTHON, lineitem, ())
    assert error is None
    assert output == "{'l_shipmode': ['AIR', 'RAIL'], 'n': [2, 1]}\n"
    assert seconds > 0


def test_a_script_that_fails_is_a_result(lineitem):
    runs = run_scripts({"local": PYTHON, "inline": PYTHON}, lambda arm: nullcontext(["http://127.0.0.1:1"]), lineitem)
    assert runs["local"].same_answer
    assert runs["inline"].same_answer is False
    assert "with_distributed" in (runs["inline"].error or "")
