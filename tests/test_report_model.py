"""The report as data: schema, paths that machines rely on, round trip."""

from __future__ import annotations

import json

import jsonschema
import pytest
from pydantic import ValidationError

from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.model import BLOCK_NAMES, SCHEMA_FILE, Report, json_schema


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


def test_committed_schema_is_the_models_schema():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == json_schema(), (
        "run `python -m reports.write_schema` and commit the result"
    )


def test_report_fits_its_published_schema(report):
    jsonschema.validate(json.loads(report.to_json()), json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def test_json_round_trip_loses_nothing(report):
    assert Report.from_json(report.to_json()) == report


def test_unknown_field_is_refused(report):
    data = json.loads(report.to_json())
    data["surprise"] = 1
    with pytest.raises(ValidationError, match="surprise"):
        Report.model_validate(data)


def test_summary_has_the_paths_that_machines_read(report):
    summary = json.loads(report.to_json())["summary"]
    assert set(summary["arms"]) == {"local", "native", "inline", "external", "decorator", "aa"}
    inline = summary["arms"]["inline"]
    assert (inline["queries"], inline["ok"], inline["validated"], inline["distributed"]) == (8, 8, 7, 7)
    assert {"value", "low", "high"} <= set(inline["geomean_vs_native"])
    assert set(summary["calibration"]) == {"aa_false_flag_rate", "power_20pct", "suite_ci_half_width"}
    kinds = {"pass", "partial", "fail", "xfail", "crash", "timeout", "blocked", "total", "must_pass", "must_total"}
    assert set(summary["conformance"]["decorator"]) == kinds
    assert summary["generated_queries"]["external"]["mismatch"] == 1
    assert all(summary[name] is None for name in BLOCK_NAMES if name != "generated_queries")


def test_no_geometric_mean_where_valid_queries_differ(report):
    external = report.summary.arms["external"]
    assert external.geomean_vs_native is None
    assert "valid queries differ" in (external.reason or "")


def test_every_absent_section_has_a_reason(report):
    sections = ("calibration", "conformance", "packaging", "api_surface", *BLOCK_NAMES)
    for name in sections:
        there = name in report.blocks if name in BLOCK_NAMES else getattr(report, name) is not None
        assert there or report.absent.get(name), name


def test_blocks_of_other_parts_reach_the_summary():
    coverage = {"inline": 0.97}
    extras = {
        "generated_queries": {"settings": {}, "arms": {"inline": {"run": 10, "equal": 10}}},
        "faults": {"summary": {"inline": {"survived": 3}}, "details": []},
        "conformance": {"checks": [], "summary": {"surface_coverage": coverage}},
    }
    found = make_report(RUN_SMALL, extras)
    assert found.summary.generated_queries == {"inline": {"run": 10, "equal": 10}}
    assert found.summary.faults == {"inline": {"survived": 3}}
    assert found.summary.surface_coverage == coverage
    assert "faults" not in found.absent


def test_synthetic_runs_say_so_in_the_data(report):
    assert report.synthetic


def test_blocks_leave_out_what_only_a_rerun_needs(report):
    """The tables behind a generated query stay in the run directory: they are thousands of rows."""
    (finding,) = report.blocks["generated_queries"]["findings"]
    assert finding["case"] == {"sql": "SELECT sum(a) AS s FROM t WHERE a < 0"}
    assert any("other builds of decorator" in caveat for caveat in report.headline.caveats)


def test_usage_is_summed_over_queries_and_processes(report):
    rows = {row.arm: row for row in report.usage}
    local, inline = rows["local"], rows["inline"]
    assert (local.worker_cpu_ms, inline.starts, inline.cluster_ms) == (None, 1, 420.0)
    assert "no workers" in local.reasons["worker_cpu_ms"]
    assert inline.worker_cpu_ms == pytest.approx(2 * inline.coordinator_cpu_ms, rel=1e-6), "two workers alike"
    assert inline.coordinator_cpu_ms == pytest.approx(0.6 * inline.wall_ms, rel=1e-4)
    assert (inline.pss_bytes, inline.threads) == (270_000_000, 15)
    assert local.coordinator_peak_bytes == 150_000_000
    assert inline.session_ms == 80.0


def test_a_run_without_readings_says_so(tmp_path):
    from report_helpers import make_manifest, make_samples, write_run

    bare = [sample.model_copy(update={"processes": ()}) for sample in make_samples(["local", "native"])]
    run = write_run(tmp_path / "run", bare, make_manifest(["local", "native"]))
    (run / "events.jsonl").unlink()
    report = make_report(run)
    assert report.usage is None
    assert "no processor times" in report.absent["usage"]


def test_figures_of_blocks_become_tables():
    from reports.blocks import block_tables

    extras = {
        "surface_coverage": {"inline": 0.973, "decorator": 1.0},
        "faults": {"summary": {"inline": {"survived": 3, "typical ms": 12.34567}, "decorator": {"survived": None}}},
        "peers": {"text": ["of", "another form"]},
    }
    found = {table.name: table for table in block_tables(make_report(RUN_SMALL, extras))}
    assert found["surface_coverage"].rows == [["inline", "97.3%"], ["decorator", "100.0%"]]
    assert found["faults"].columns == ["survived", "typical ms"]
    assert found["faults"].rows == [["inline", "3", "12.35"], ["decorator", "none", "not told"]]
    assert found["peers"].rows == []
    assert "another form" in found["peers"].raw


def test_a_throughput_run_is_refused_with_the_place_of_its_figures(tmp_path):
    from harness.errors import UserError
    from report_helpers import make_manifest, write_run

    manifest = make_manifest(["local"])
    manifest = manifest.model_copy(update={"settings": manifest.settings.model_copy(update={"streams": 4})})
    run = write_run(tmp_path / "run", [], manifest)
    with pytest.raises(UserError, match=r"is a throughput run: .*throughput\.json"):
        make_report(run)


def test_a_cold_run_says_so(tmp_path):
    from report_helpers import make_manifest, make_samples, write_run

    manifest = make_manifest(["local", "native"])
    manifest = manifest.model_copy(update={"settings": manifest.settings.model_copy(update={"cold": True})})
    report = make_report(write_run(tmp_path / "run", make_samples(["local", "native"]), manifest))
    assert report.settings.cache == "cold"
    assert "6 cold rounds" in report.headline.title
