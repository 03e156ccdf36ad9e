"""Areas 13 and 16: what the planner makes, and how long it takes."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .kit import BY_KEY, Arm, Partial, expected_by_key, rows, short

SQL = BY_KEY.format(table="t")

SHAPES = {
    "scan": "SELECT v FROM t WHERE v > 5",
    "aggregate": "SELECT k, sum(v) FROM t GROUP BY k",
    "join": "SELECT a.k, b.v FROM t a JOIN t b ON a.v = b.v",
    "sort": "SELECT v FROM t ORDER BY v",
    "window": "SELECT v, sum(v) OVER (PARTITION BY k) FROM t",
    "union": "SELECT v FROM t UNION ALL SELECT k FROM t",
}


def kinds(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    found = {}
    for name, sql in SHAPES.items():
        info = arm.probe.plan_info(ctx.sql(sql))
        found[name] = [info["stages"], info["tasks"]]
        arm.check(info["distributed"], f"{name} is not distributed: {short(info['text'], 300)}")
        arm.check(info["stages"] >= 2 and info["tasks"] >= 2, f"{name}: {info['stages']} stages, {info['tasks']} tasks")
        before = arm.tasks()
        ctx.sql(sql).collect()
        ran = arm.tasks() - before
        # The coordinator's own stage is no task of a worker.
        arm.check(0 < ran <= info["tasks"], f"{name}: the plan tells {info['tasks']} tasks, the workers counted {ran}")
    arm.figure["stages_and_tasks"] = found


def task_limits(arm: Arm) -> None:
    tasks = {}
    for limit in ("0", "1"):
        ctx = arm.with_table(arm.context({"distributed.max_tasks_per_stage": limit}))
        arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), f"the answer with max_tasks_per_stage={limit}")
        tasks[limit] = arm.probe.plan_info(ctx.sql(SQL))["tasks"]
    arm.figure["tasks"] = tasks
    arm.check(tasks["1"] < tasks["0"], f"max_tasks_per_stage=1 changes nothing: {tasks}")


def optimizer_rules(arm: Arm) -> None:
    ctx, plain = arm.with_table(arm.context()), arm.with_table(arm.plain())
    sql = "SELECT k, sum(v) AS s FROM (SELECT k, v FROM t) WHERE k = 3 GROUP BY k"
    rule = "push_down_filter"

    def logical(session: Any) -> str:
        return str(session.sql(sql).optimized_logical_plan())

    arm.equal(logical(ctx), logical(plain), "the optimized logical plan")
    arm.equal([each.remove_optimizer_rule(rule) for each in (ctx, plain)], [True, True], "removing a rule")
    arm.equal(logical(ctx), logical(plain), "the optimized logical plan without the rule")
    arm.equal(ctx.sql(sql).to_pydict(), {"k": [3], "s": [sum(range(3, 1000, 10))]}, "the answer without the rule")
    text = str(ctx.sql(f"EXPLAIN {sql}").to_pydict()["plan"])
    single = str(plain.sql(f"EXPLAIN {sql}").to_pydict()["plan"])
    if "predicate=" in text and "predicate=" not in single:
        raise Partial("the removed rule is applied again by the engine's own optimizer: the scan still has a predicate")


def serialization(arm: Arm) -> None:
    wide = arm.tmp / "wide"
    wide.mkdir()
    for part in range(2):
        pq.write_table(pa.table({f"c{i}": [part, i] for i in range(1000)}), wide / f"{part}.parquet")
    many = arm.tmp / "many"
    many.mkdir()
    for part in range(500):
        pq.write_table(pa.table({"k": [part % 7], "v": [part]}), many / f"{part}.parquet")
    joins = "SELECT count(*) AS n FROM t t0 " + " ".join(f"JOIN t t{i} ON t0.v = t{i}.v" for i in range(1, 41))
    queries = {
        "1000 columns": "SELECT " + ", ".join(f"sum(c{i})" for i in range(1000)) + " FROM wide",
        "500 files": "SELECT k, count(*), sum(v) FROM many GROUP BY k",
        "40 joins": joins,
    }
    for name, sql in queries.items():
        took, answers = {}, []
        for label, ctx in (("single node", arm.plain()), (arm.name, arm.context())):
            ctx.register_parquet("wide", str(wide))
            ctx.register_parquet("many", str(many))
            frame = arm.with_table(ctx).sql(sql)
            began = time.monotonic()
            frame.execution_plan()
            took[label] = round((time.monotonic() - began) * 1000, 1)
            answers.append(rows(frame))
        arm.figure[name] = took
        arm.equal(answers[1], answers[0], name)
        arm.check(took[arm.name] < 20_000, f"planning {name} took {took[arm.name]} ms")


def plan_bytes(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    plan = ctx.sql(SQL).logical_plan()
    data = plan.to_proto() if hasattr(plan, "to_proto") else plan.to_bytes(ctx)
    kind = arm.df.LogicalPlan
    again = kind.from_proto(ctx, data) if hasattr(kind, "from_proto") else kind.from_bytes(ctx, data)
    arm.equal(ctx.create_dataframe_from_logical_plan(again).to_pydict(), expected_by_key(), "the decoded plan's answer")
    substrait = arm.df.substrait
    bytes_ = substrait.Serde.serialize_bytes(SQL, ctx)
    consumed = substrait.Consumer.from_substrait_plan(ctx, substrait.Serde.deserialize_bytes(bytes_))
    arm.equal(
        ctx.create_dataframe_from_logical_plan(consumed).to_pydict(),
        expected_by_key(),
        "the answer by way of Substrait",
    )
    arm.on_workers(lambda: ctx.create_dataframe_from_logical_plan(consumed).collect(), "the Substrait plan")
