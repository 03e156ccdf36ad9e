"""Upstream's suite on a strategy: a small suite in the place of the real one, and arms that lose something."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from arm_helpers import FAKE_WORKER, arm_file
from harness.cli import main
from harness.conformance.upstream import open_checkout
from harness.conformance.upstream.model import Difference, SuiteResult
from harness.conformance.upstream.session import compare, load_differences
from harness.conformance.upstream.suite import SuiteRun
from harness.errors import HarnessFault, UserError

BROKEN = Path(__file__).parent / "conformance" / "broken"

CARGO = '[workspace.dependencies]\ndatafusion = { version = "55.0.0" }\n'

SUITE = """
import pytest
from datafusion import SessionContext


def number(word):
    return SessionContext().sql(f"SELECT 1 AS {word}").to_pydict()


def test_plain(): assert number("fine") == {"fine": [1]}
def test_lost(): assert number("fail_here") == {"fail_here": [1]}
def test_crash(): number("crash_here")
def test_hang(): number("hang_here")
def test_last(): assert number("fine")
def test_fails_on_stock_too(): assert number("fine") == {}
@pytest.mark.skip(reason="no data")
def test_skipped(): ...
@pytest.mark.parametrize("what", [1, 2])
def test_many(what): assert what
class Mine(SessionContext): ...
def test_a_class_of_its_own(): assert isinstance(Mine(), Mine)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    tests = root / "python" / "tests"
    tests.mkdir(parents=True)
    (root / "Cargo.toml").write_text(CARGO)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--doctest-modules"\n')
    (tests / "__init__.py").write_text("")
    (tests / "conftest.py").write_text("")
    (tests / "test_small.py").write_text(SUITE)
    # Sources without the compiled library, as in a real checkout: they must not stand in for the installed package.
    (root / "python" / "datafusion").mkdir()
    (root / "python" / "datafusion" / "__init__.py").write_text("raise ImportError('the sources of the checkout')\n")
    return root


def lossy(folder: Path, module: str = "lossy_arm") -> Path:
    path = folder / "lossy.toml"
    path.write_text(
        'schema = 1\nname = "lossy"\ntitle = "lossy"\nkind = "external"\ncapabilities = ["sql", "distributed"]\n'
        f'[environment]\nsource = "interpreter"\npython = "{sys.executable}"\npath = ["{BROKEN}"]\n'
        f'[driver]\nfactory = "{module}:make_context"\nprobe = "idle_arm"\n'
        f'[workers]\ncommand = ["{{python}}", "-I", "{FAKE_WORKER}", "ready"]\n'
        '[[differences]]\nkey = "engine.fingerprint"\nreason = "a session of a test holds no engine"\n'
    )
    return path


def run(folder: Path, checkout: Path, arm: Path, *more: str) -> tuple[int, dict[str, object]]:
    out = folder / "upstream_tests.json"
    stock = arm_file(folder, "mystock")
    code = main([
        "upstream-tests", "--checkout", str(checkout), "--arm-file", str(arm), "--arm-file", str(stock),
        "--stock", "mystock", "--out", str(out), *more,
    ])  # fmt: skip
    return code, json.loads(out.read_text())


def cells(written: dict[str, object], arm: str) -> dict[str, str]:
    tests = written["tests"]
    assert isinstance(tests, list)
    return {row["test"].rpartition("::")[2]: row["arms"][arm]["outcome"] for row in tests}


def test_what_an_arm_loses_is_told_test_by_test(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, written = run(tmp_path, checkout, lossy(tmp_path), "--timeout", "6")
    assert code == 1
    assert cells(written, "lossy") == {
        "test_plain": "passed", "test_lost": "failed", "test_crash": "crash", "test_hang": "timeout",
        "test_last": "passed", "test_fails_on_stock_too": "failed", "test_skipped": "skipped", "test_many[1]": "passed",
        "test_many[2]": "passed", "test_a_class_of_its_own": "passed",
    }  # fmt: skip
    counts = written["summary"]["upstream_tests"]["lossy"]  # type: ignore[index]
    assert (counts["stock_passed"], counts["kept"], counts["differs"]) == (8, 5, 3)
    assert counts["unexplained"] == 3
    assert counts["contexts"] >= 4
    said = capsys.readouterr()
    assert "keeps 5 of 8" in said.out
    assert "this arm lost a feature" in said.err
    assert written["checkout"]["datafusion"] == "55.0.0"  # type: ignore[index]


def test_an_arm_that_is_stock_keeps_everything(tmp_path: Path, checkout: Path) -> None:
    code, written = run(tmp_path, checkout, lossy(tmp_path, "idle_arm"), "-k", "not crash and not hang")
    assert code == 0, written["problems"]
    counts = written["summary"]["upstream_tests"]["lossy"]  # type: ignore[index]
    assert counts["kept"] == counts["stock_passed"] == 6
    assert written["ok"] is True


def test_an_arm_without_a_session_cannot_run(tmp_path: Path, checkout: Path) -> None:
    (checkout / "python" / "tests" / "conftest.py").write_text("raise RuntimeError('no such plugin')\n")
    out = tmp_path / "u.json"
    arguments = ["upstream-tests", "--checkout", str(checkout), "--stock", "mystock"]
    assert (
        main([*arguments, "--arm-file", str(arm_file(tmp_path, "mystock")), "--arm", "mystock", "--out", str(out)]) == 4
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda root: (root / "Cargo.toml").unlink(), "Cargo.toml is not there"),
        (lambda root: (root / "python/tests/conftest.py").unlink(), "conftest.py is not there"),
        (lambda root: (root / "Cargo.toml").write_text("[workspace"), "TOML"),
        (lambda root: (root / "Cargo.toml").write_text("[workspace]\n"), "names no version"),
        (lambda root: (root / "Cargo.toml").write_text(CARGO.replace("55", "54")), "for DataFusion 54"),
    ],
)
def test_a_folder_that_is_no_checkout_is_one_message(checkout: Path, change: object, says: str) -> None:
    change(checkout)  # type: ignore[operator]
    with pytest.raises(UserError, match=says):
        open_checkout(checkout)


def test_a_missing_folder_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upstream-tests", "--checkout", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err


def results(**outcomes: str) -> SuiteRun:
    made = {
        f"python/tests/test_x.py::{name}": SuiteResult.model_validate({"outcome": o}) for name, o in outcomes.items()
    }
    return SuiteRun(distributed=True, results=made, contexts=1)


def known(test: str, kind: str = "inherent") -> Difference:
    return Difference.model_validate({"test": test, "arms": ["mine"], "kind": kind, "reason": "a reason to test with"})


def test_an_explained_difference_does_not_fail_the_run_and_a_stale_one_does(checkout: Path) -> None:
    found = open_checkout(checkout)
    runs = {"stock": results(a="passed", b="passed"), "mine": results(a="failed", b="passed")}
    assert compare(found, runs, "stock", []).problems
    explained = compare(found, runs, "stock", [known("test_x.py::a")])
    assert explained.ok
    assert explained.summary.upstream_tests["mine"].inherent == 1
    stale = compare(found, runs, "stock", [known("test_x.py::a"), known("test_x.py::b")])
    assert "remove the entry" in stale.problems[0]
    assert (
        compare(found, runs, "stock", [known("test_x.py::*", "unfinished")]).summary.upstream_tests["mine"].unfinished
    )


def test_a_run_without_a_context_of_the_strategy_proves_nothing(checkout: Path) -> None:
    idle = results(a="passed")
    idle.contexts = 0
    done = compare(open_checkout(checkout), {"stock": results(a="passed"), "mine": idle}, "stock", [])
    assert "no test made a context" in done.problems[0]


def test_a_test_that_vanishes_on_an_arm_differs(checkout: Path) -> None:
    runs = {"stock": results(a="passed", b="passed"), "mine": results(a="passed")}
    done = compare(open_checkout(checkout), runs, "stock", [])
    assert done.tests[1].arms["mine"].outcome == "not_run"
    assert not done.ok


def test_a_stock_that_passes_nothing_is_no_base(checkout: Path) -> None:
    with pytest.raises(UserError, match="passes none"):
        compare(open_checkout(checkout), {"stock": results(a="failed"), "mine": results(a="failed")}, "stock", [])


def test_the_shipped_differences_are_readable_and_a_wrong_file_is_named(tmp_path: Path) -> None:
    for entry in load_differences():
        assert entry.test.startswith("test_"), entry
    path = tmp_path / "differences.toml"
    path.write_text('[[difference]]\ntest = "x"\narms = []\nkind = "inherent"\nreason = "long enough a reason"\n')
    with pytest.raises(HarnessFault, match="differences.toml"):
        load_differences(path)
