"""Plans: grouped where they are the same, parsed into stages, drawn, and free of what only this machine has."""

from __future__ import annotations

from report_helpers import RUN_SMALL, make_plans
from reports.build import make_report
from reports.plans import LINE_LENGTH, MAX_LINES, cut, parse_stages, query_plans, short_words, stages_svg, tidy, words

DISTRIBUTED = make_plans(["native"])["native"]["q01"]["text"]


def test_stages_are_read_from_the_display():
    coordinator, second, first = parse_stages(DISTRIBUTED)
    assert (coordinator.number, coordinator.reads, coordinator.exchanges) == (0, [2], ["coalesce"])
    assert (second.number, second.tasks, second.partitions, second.reads) == (2, 2, 2, [1])
    assert second.exchanges == ["shuffle"]
    assert first.operators == ["RepartitionExec", "AggregateExec", "DataSourceExec"]
    assert parse_stages("AggregateExec: mode=Single\n  DataSourceExec: x") == []


def test_same_plans_stand_together():
    report = make_report(RUN_SMALL)
    assert [entry.query for entry in report.plans] == report.settings.queries
    groups = {tuple(group.arms): group for group in report.plans[0].groups}
    assert set(groups) == {("local",), ("native", "inline", "external"), ("decorator",)}
    assert "stage 1 with 2 tasks" in words(groups["decorator",])
    assert short_words(groups["decorator",]) == "2 stages with 4 tasks on workers"
    assert words(groups["local",]) == short_words(groups["local",])
    assert words(groups["local",]) == "not distributed, one process"


def test_folders_and_ports_make_no_difference():
    one = tidy("DataSourceExec: [[/home/a/data/sf1/lineitem/part-0.parquet:0..5]] http://127.0.0.1:4711")
    other = tidy("DataSourceExec: [[/srv/x.y/tpch/lineitem/part-0.parquet:0..5]] http://localhost:99")
    assert one == other == "DataSourceExec: [[lineitem/part-0.parquet:0..5]] http://worker"
    plans = {"a": {"q01": {"text": "X [/p/lineitem/f.parquet]"}}, "b": {"q01": {"text": "X [/q/r/lineitem/f.parquet]"}}}
    (found,) = query_plans(plans, ["q01", "q02"], ["a", "b", "c"])
    assert [group.arms for group in found.groups] == [["a", "b"]]


def test_picture_has_every_stage_and_a_text():
    (plans,) = query_plans({"native": {"q01": {"text": DISTRIBUTED, "tasks": 5}}}, ["q01"], ["native"])
    svg = stages_svg(plans.groups[0], "q01")
    assert svg.count("<rect") == 3
    assert svg.count("<path") == 4, "an arrow is a line and a head"
    assert 'role="img"' in svg
    assert "Stages of q01 on native: 2 stages on workers" in svg
    assert stages_svg(plans.groups[0].model_copy(update={"stages": []}), "q01") == ""


def test_a_stage_that_two_read_is_drawn_once():
    text = DISTRIBUTED.replace(
        "│ SortPreservingMergeExec: [n@0 ASC]", "│ HashJoinExec: x\n│   [Stage 1] => NetworkBroadcastExec: y"
    )
    (plans,) = query_plans({"a": {"q01": {"text": text}}}, ["q01"], ["a"])
    svg = stages_svg(plans.groups[0], "q01")
    assert svg.count("<rect") == 3
    assert svg.count("<path") == 6


def test_texts_in_a_plan_cannot_become_markup():
    evil = DISTRIBUTED.replace("NetworkShuffleExec", "NetworkShuffleExec").replace("k@0", "<script>alert(1)</script>")
    (plans,) = query_plans({"<img>": {"q01": {"text": evil}}}, ["<b>"], ["<img>"]) or [None]
    assert plans is None or "<script>" not in stages_svg(plans.groups[0], "q01")
    (plans,) = query_plans({"<img>": {"q01": {"text": evil}}}, ["q01"], ["<img>"])
    assert "<img>" not in stages_svg(plans.groups[0], "q01")


def test_long_plans_are_cut_and_say_so():
    text = cut("\n".join(["x" * 500] * 200))
    assert len(text.splitlines()) == MAX_LINES + 1
    assert max(map(len, text.splitlines())) == LINE_LENGTH
    assert text.endswith("… 80 more lines")
