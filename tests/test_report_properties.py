"""What must hold for every run: failures never improve a total, and nothing is blank without a reason."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model import Phase, Sample, Status
from report_helpers import make_manifest, make_samples, write_run
from reports import words
from reports.build import make_report
from reports.html import render_html
from reports.markdown import render_markdown
from reports.model import Report
from reports.text import render_text

ARMS = ["local", "native", "inline", "decorator"]
QUERIES = ["q01", "q06", "q18"]
FAILURES = [status for status in Status if status is not Status.OK]

PROPERTY = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

failing = st.dictionaries(
    st.tuples(st.sampled_from(ARMS), st.sampled_from(QUERIES)),
    st.tuples(st.sampled_from(FAILURES), st.integers(0, 4), st.text(min_size=1, max_size=30)),
    max_size=6,
)


def spoil(sample: Sample, trouble: dict) -> Sample:
    found = trouble.get((sample.arm, sample.query))
    if found is None or sample.phase is not Phase.TIMED or sample.round != found[1]:
        return sample
    update = {"status": found[0], "reason": found[2], "elapsed_ms": None}
    return sample.model_copy(update=update)


def make(folder: Path, trouble: dict) -> Report:
    samples = [spoil(sample, trouble) for sample in make_samples(ARMS, QUERIES, rounds=5)]
    return make_report(write_run(folder, samples, make_manifest(ARMS, QUERIES, rounds=5)))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return make(tmp_path_factory.mktemp("clean"), {})


@PROPERTY
@given(trouble=failing)
def test_totals_never_improve_through_failures(trouble, clean, tmp_path):
    report = make(tmp_path, trouble)
    for entry in report.comparisons:
        before = clean.comparison(entry.new, entry.base)
        assert before is not None
        valid = [{query for query in QUERIES if (arm, query) not in trouble} for arm in (entry.base, entry.new)]
        assert entry.counted == len(valid[0] & valid[1])
        if valid[0] != valid[1]:
            assert entry.factor is None, f"{entry.new} against {entry.base}: a factor over different queries"
            assert entry.base_ms is None
            assert entry.new_ms is None
            assert entry.suite.ratio is None
            assert entry.reason
        elif valid[0] == set(QUERIES):
            assert entry.factor == before.factor


@PROPERTY
@given(trouble=failing)
def test_every_cell_that_does_not_count_has_a_reason_in_text_and_markdown(trouble, tmp_path):
    report = make(tmp_path, trouble)
    text, markdown = " ".join(render_text(report).split()), render_markdown(report)
    seen = report.failing()
    assert {(cell.arm, query) for query, cell in seen} == set(trouble)
    for query, cell in seen:
        assert cell.reason
        assert f"{cell.arm} {query}: " in text, f"{cell.arm} {query} is not explained in the text form"
        assert f"| {cell.arm} | {query} |" in markdown, f"{cell.arm} {query} is not explained in the Markdown form"


@settings(PROPERTY, max_examples=4)
@given(trouble=failing)
def test_every_cell_that_does_not_count_has_a_reason_in_html(trouble, tmp_path):
    report = make(tmp_path, trouble)
    page = html.unescape(render_html(report))
    for _, cell in report.failing():
        assert cell.repro
        assert cell.repro in page
        assert words.cell_status(cell) in page


@PROPERTY
@given(trouble=failing)
def test_newly_failing_queries_stand_above_the_numbers(trouble, tmp_path):
    report = make(tmp_path, trouble)
    expected = {gap.query for entry in report.comparisons for gap in entry.newly_failing}
    text = render_text(report)
    if not expected:
        assert "NEWLY FAILING" not in text
        return
    head = text[: text.index("===")]
    assert all(query in head[head.index("NEWLY FAILING") :] for query in expected)


@pytest.mark.parametrize("samples", [[], make_samples(["local"], QUERIES)], ids=["nothing ran", "one arm ran"])
def test_a_run_without_results_is_a_report_without_claims(samples, tmp_path):
    report = make_report(write_run(tmp_path, samples, make_manifest(ARMS, QUERIES)))
    assert all(entry.factor is None for entry in report.comparisons)
    assert all(axis.winner is None for axis in report.decision.axes)
    assert "not comparable" in render_text(report)
    assert "report.json" in render_html(report)


def test_an_interrupted_run_counts_only_whole_rounds(tmp_path):
    samples = make_samples(ARMS, QUERIES, rounds=6)
    kept = [sample for sample in samples if sample.phase is Phase.WARMUP or sample.round < 3][:-2]
    manifest = make_manifest(ARMS, QUERIES, rounds=6).model_copy(update={"status": "interrupted", "finished_at": None})
    report = make_report(write_run(tmp_path, [s for s in kept if s.phase is not Phase.RECURRENCE], manifest))
    assert report.settings.rounds_finished in (2, 3)
    assert any("interrupted" in caveat for caveat in report.headline.caveats)
