"""The table of what a user gets: declared completely, and computed from executed checks alone."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain

import pytest

from harness.conformance import Check, load_registry
from harness.conformance.model import AREAS
from report_helpers import RUN_SMALL, make_manifest, make_samples, write_run
from reports.build import make_report
from reports.html import render_html
from reports.markdown import render_markdown
from reports.model import CheckOutcome, CheckRow, Report
from reports.promises import Promises, load_promises, promise_rows
from reports.text import render_text

PROMISES = [
    "Python functions by value", "Sources", "Writes", "Streaming", "Configuration parity", "Explain and metrics",
    "Membership", "Coordinator that is also a worker", "Security", "Life cycle", "Typed and documented",
    "No silently wrong answer", "No needless loss of work",
]  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def test_every_promise_is_declared_once_and_has_checks():
    table = load_promises()
    assert [entry.title for entry in table.promise] == PROMISES
    checks = load_registry()
    for entry in table.promise:
        assert any(table.of(check.id, check.area) == entry.id for check in checks), f"{entry.id} has no check"


def test_every_area_stands_in_exactly_one_place():
    table = load_promises()
    named = Counter(chain(table.elsewhere.areas, *(entry.areas for entry in table.promise)))
    assert named == Counter(AREAS.keys()), "an area is missing, unknown or named twice"


def test_areas_elsewhere_have_no_check():
    elsewhere = set(load_promises().elsewhere.areas)
    assert [check.id for check in load_registry() if check.area in elsewhere] == []


def test_every_named_check_exists_and_is_named_once_and_for_a_reason():
    table, known = load_promises(), {check.id: check.area for check in load_registry()}
    named = Counter(chain(*(entry.checks for entry in table.promise)))
    assert not set(named) - set(known), "no such check"
    assert set(named.values()) <= {1}
    for entry in table.promise:
        assert not [name for name in entry.checks if known[name] in entry.areas], f"{entry.id} names its own area's"


def test_every_check_leads_to_a_promise():
    table = load_promises()
    assert [check.id for check in load_registry() if table.of(check.id, check.area) is None] == []


def check(name: str, **changes: object) -> Check:
    given = {"id": name, "area": 1, "tier": "must", "title": "t", "rationale": "r", "expects": "e", **changes}
    return Check.model_validate(given)


REGISTRY = [check("a.one"), check("a.two"), check("a.three", arms=["decorator"])]
TABLE = Promises.model_validate(
    {"promise": [{"id": "p", "title": "P", "text": "t", "areas": [1]}], "elsewhere": {"areas": [], "why": "none"}}
)


def cell(reasons: dict[str, str] | None = None, **outcomes: str):
    """The cell of `inline` for outcomes of a.one, a.two, ..."""
    rows = [
        CheckRow(
            id=f"a.{name}",
            area="1 New public names",
            tier="must",
            outcomes={"inline": CheckOutcome(outcome=kind, reason=(reasons or {}).get(name))},
        )
        for name, kind in outcomes.items()
    ]
    (row,) = promise_rows(rows, {"inline": True}, TABLE, REGISTRY)
    return row.cells["inline"]


@pytest.mark.parametrize(
    ("outcomes", "reasons", "state", "words"),
    [
        ({"one": "pass", "two": "pass"}, {}, "pass", "2 of 2 checks pass"),
        ({"one": "pass"}, {}, "pass", "1 of 1 checks pass, 1 not executed"),
        ({"one": "pass", "two": "blocked"}, {"two": "no S3"}, "pass", "1 of 1 checks pass, 1 not executed"),
        ({"one": "pass", "two": "xfail"}, {"two": "inherent: FFI"}, "limit", "1 of 2 checks pass"),
        ({"one": "pass", "two": "xfail"}, {"two": "unfinished: to do"}, "partial", "1 of 2 checks pass"),
        ({"one": "partial", "two": "xfail"}, {"two": "inherent: FFI"}, "partial", "0 of 2 checks pass"),
        ({"one": "timeout", "two": "xfail"}, {"two": "inherent: FFI"}, "fail", "0 of 2 checks pass"),
        ({"one": "crash", "two": "pass"}, {}, "fail", "1 of 2 checks pass"),
        ({"one": "blocked", "two": "blocked"}, {"two": "no S3"}, "not_run", "none of 2 checks was executed"),
        ({}, {}, "not_run", "none of 2 checks was executed"),
    ],
)
def test_states(outcomes, reasons, state, words):
    found = cell(reasons, **outcomes)
    assert (found.state, found.words) == (state, words)
    assert found.complete is ("not executed" not in words and "none" not in words)
    assert [reason.check for reason in found.reasons] == sorted(
        f"a.{name}" for name, kind in outcomes.items() if kind != "pass"
    ), "whatever is not a pass is explained"


def test_a_check_for_another_arm_is_not_in_the_denominator():
    rows = promise_rows([], {"inline": True, "decorator": True}, TABLE, REGISTRY)
    assert {arm: found.checks for arm, found in rows[0].cells.items()} == {"inline": 2, "decorator": 3}


def test_table_of_a_run(report):
    rows = {row.id: row for row in report.promises}
    assert [row.title for row in report.promises] == PROMISES
    assert list(rows["sources"].cells) == ["inline", "external", "decorator"], "one column per strategy, none for stock"
    assert {arm: found.state for arm, found in rows["python_functions"].cells.items()} == {
        "inline": "partial",
        "external": "fail",
        "decorator": "pass",
    }
    assert rows["sources"].cells["decorator"].state == "limit"
    assert rows["writes"].cells["decorator"].state == "partial"
    assert {found.state for found in rows["security"].cells.values()} == {"not_run"}


def test_summary_for_machines(report):
    summary = json.loads(report.to_json())["summary"]["promises"]
    assert summary["decorator"]["sources"]["state"] == "limit"
    assert summary["decorator"]["sources"]["ran"] < summary["decorator"]["sources"]["checks"]
    assert set(summary["inline"]) == {entry.id for entry in load_promises().promise}


def test_every_form_shows_every_promise_and_every_reason(report):
    page, markdown, text = render_html(report), render_markdown(report), render_text(report)
    for title in PROMISES:
        assert all(title in form for form in (page, markdown, text)), title
    for form in (page, markdown):
        assert "pass so far" in form
        assert "inherent: the wire form of a plan knows no Avro" in form
        assert "another Python minor version on the worker" in form, "what no check executes is said"


def test_without_checks_there_is_no_table_and_a_command(tmp_path):
    run = write_run(tmp_path / "run", make_samples(["local", "inline"]), make_manifest(["local", "inline"]))
    bare = make_report(run)
    assert bare.promises is None
    assert bare.summary.promises is None
    assert "df-strategies check --out runs/synthetic-small" in bare.fills["promises"]
    assert "**What a user gets**: none, no conformance check was executed" in render_markdown(bare)
