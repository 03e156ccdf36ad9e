"""Area 25: functions written in Python, sent to workers that are other processes."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

import os
import sys
import types
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .kit import ROWS, Arm, Partial, rows

# The worker cannot import this module, so everything here travels by value or not at all.
FLAG = "--allow-python-udfs"


def _session(arm: Arm, **options: Any) -> Any:
    allow = {"allow_python_udfs": True} if arm.distributed else {}
    return arm.with_table(arm.context(**{**allow, **options}))


def _main(function: Any) -> Any:
    """The function as if it had been typed in `__main__`: picklers then send it by value, as for a user's script."""
    function.__module__ = "__main__"
    return function


def scalar_by_value(arm: Arm) -> None:
    df, scale = arm.df, 3
    ctx = _session(arm)

    class Adder:
        def __init__(self, amount: int) -> None:
            self.amount = amount

        def __call__(self, values: Any) -> Any:
            return pc.add(values, self.amount)

    _main(Adder)

    def nulls(values: Any) -> Any:
        return pc.if_else(pc.equal(pc.bit_wise_and(values, 1), 0), values, None)

    one = [pa.int64()], pa.int64(), "immutable"
    ctx.register_udf(df.udf(_main(lambda values: pc.multiply(values, scale)), *one, "dbl"))
    ctx.register_udf(df.udf(Adder(5), *one, "plus5"))
    ctx.register_udf(df.udf(_main(nulls), *one, "even"))
    cases = {
        "lambda with a captured variable": ("SELECT sum(dbl(v)) AS x FROM t", [3 * sum(range(ROWS))]),
        "callable object with state": ("SELECT sum(plus5(v)) AS x FROM t", [sum(range(ROWS)) + 5 * ROWS]),
        "NULLs out": ("SELECT count(even(v)) AS x FROM t", [500]),
        "NULLs in": ("SELECT count(dbl(even(v))) AS x FROM t", [500]),
        "filter": ("SELECT count(*) AS x FROM t WHERE dbl(v) < 30", [10]),
        "group key": ("SELECT count(*) AS x FROM (SELECT dbl(k) AS d FROM t GROUP BY 1) y", [10]),
        "join key": ("SELECT count(*) AS x FROM t a JOIN t b ON dbl(a.v) = b.v", [334]),
        "sort key": ("SELECT v AS x FROM t ORDER BY dbl(v) DESC LIMIT 1", [999]),
        "constant argument": ("SELECT min(dbl(2)) AS x FROM t", [6]),
    }
    for name, (sql, want) in cases.items():
        arm.equal(ctx.sql(sql).to_pydict()["x"], want, name)
    col = df.col
    direct = df.udf(_main(lambda values: pc.multiply(values, 7)), *one, "never_registered")
    got = ctx.table("t").select(direct(col("v")).alias("x")).aggregate([], [df.functions.sum(col("x")).alias("x")])
    arm.equal(got.to_pydict()["x"], [7 * sum(range(ROWS))], "a function used in an expression and never registered")
    arm.on_workers(lambda: ctx.sql("SELECT k, sum(dbl(v)) FROM t GROUP BY k").collect())


def scalar_runs_on_workers(arm: Arm) -> None:
    ctx = _session(arm)
    pid = arm.df.udf(
        _main(lambda values: pa.array([__import__("os").getpid()] * len(values), pa.int64())),
        [pa.int64()],
        pa.int64(),
        "volatile",
        "pid",
    )
    ctx.register_udf(pid)
    seen = set(ctx.sql("SELECT DISTINCT pid(v) AS p FROM t").to_pydict()["p"])
    arm.figure["pids"] = len(seen)
    arm.check(seen <= set(arm.pids), f"ran in {seen}; the workers are {arm.pids} and the coordinator is {os.getpid()}")
    arm.check(seen, "no process ran the function")


def aggregate_by_value(arm: Arm) -> None:
    df = arm.df
    ctx = _session(arm)

    class Total(df.Accumulator):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.sum = 0

        def update(self, values: Any) -> None:
            self.sum += pc.sum(values).as_py() or 0

        def merge(self, states: Any) -> None:
            self.sum += pc.sum(states[0]).as_py() or 0

        def state(self) -> Any:
            return [pa.scalar(self.sum)]

        def evaluate(self) -> Any:
            return pa.scalar(self.sum)

    _main(Total)
    ctx.register_udaf(df.udaf(Total, [pa.int64()], pa.int64(), [pa.int64()], "immutable", "total"))
    got = ctx.sql("SELECT k, total(v) AS s FROM t GROUP BY k ORDER BY k").to_pydict()
    arm.equal(got["s"], [sum(range(k, ROWS, 10)) for k in range(10)], "sums by key")
    arm.equal(ctx.sql("SELECT total(v) AS s FROM t").to_pydict()["s"], [sum(range(ROWS))], "the whole table")
    arm.equal(ctx.sql("SELECT total(v) AS s FROM t WHERE v < 0").to_pydict()["s"], [0], "no rows at all")
    arm.on_workers(lambda: ctx.sql("SELECT k, total(v) FROM t GROUP BY k").collect())


def window_by_value(arm: Arm) -> None:
    df = arm.df
    ctx = _session(arm)
    base = df.user_defined.WindowEvaluator

    class Smooth(base):  # type: ignore[misc, valid-type]
        def evaluate_all(self, values: Any, num_rows: int) -> Any:
            total, out = 0, []
            for value in values[0].to_pylist():
                total += value
                out.append(total)
            return pa.array(out[:num_rows], pa.int64())

    _main(Smooth)
    ctx.register_udwf(df.udwf(Smooth, pa.int64(), pa.int64(), "immutable", "running"))
    sql = "SELECT v, running(v) OVER (PARTITION BY k ORDER BY v) AS r FROM t"
    want = "SELECT v, sum(v) OVER (PARTITION BY k ORDER BY v) AS r FROM t"
    arm.equal(rows(ctx.sql(sql)), rows(ctx.sql(want)), "running sums against the built-in function")
    arm.on_workers(lambda: ctx.sql(sql).collect())


def nested_types(arm: Arm) -> None:
    ctx = _session(arm)
    numbers = pa.list_(pa.int64())
    pair = pa.struct([("a", pa.int64()), ("b", pa.string())])
    lists = arm.df.udf(
        _main(lambda values: pa.array([[x.as_py()] * 2 for x in values], pa.list_(pa.int64()))),
        [pa.int64()],
        numbers,
        "immutable",
        "twice",
    )
    sizes = arm.df.udf(
        _main(lambda values: pc.list_value_length(values).cast(pa.int64())), [numbers], pa.int64(), "immutable", "size"
    )
    structs = arm.df.udf(
        _main(lambda values: pa.array([{"a": x.as_py(), "b": None} for x in values], pa.struct([("a", pa.int64()), ("b", pa.string())]))),
        [pa.int64()], pair, "immutable", "pair",
    )  # fmt: skip
    for function in (lists, sizes, structs):
        ctx.register_udf(function)
    arm.equal(ctx.sql("SELECT sum(size(twice(v))) AS x FROM t").to_pydict(), {"x": [2 * ROWS]}, "lists out and in")
    arm.equal(ctx.sql("SELECT sum(pair(v)['a']) AS x FROM t").to_pydict(), {"x": [sum(range(ROWS))]}, "structs out")
    arm.equal(ctx.sql("SELECT sum(size(twice(v))) AS x FROM t WHERE v < 0").to_pydict(), {"x": [None]}, "no rows")
    arm.on_workers(lambda: ctx.sql("SELECT k, sum(size(twice(v))) FROM t GROUP BY k").collect())


def _refused(arm: Arm, ctx: Any, *mentions: str) -> str:
    marker = arm.tmp / "ran"
    path = str(marker)
    touch = arm.df.udf(
        _main(lambda values: (open(path, "a").close(), values)[1]), [pa.int64()], pa.int64(), "volatile", "touch_file"
    )
    ctx.register_udf(touch)
    said = arm.raises(
        lambda: ctx.sql("SELECT sum(touch_file(v)) FROM t").collect(),
        "a function that is not allowed",
        "touch_file",
        *mentions,
    )
    arm.check(not marker.exists(), "the function ran although it was refused")
    return said


def off_by_default(arm: Arm) -> None:
    arm.figure["message"] = _refused(arm, arm.with_table(arm.context(allow_python_udfs=True)), FLAG)


def session_must_allow_too(arm: Arm) -> None:
    arm.figure["message"] = _refused(arm, arm.with_table(arm.context()), "allow_python_udfs")


def missing_module(arm: Arm) -> None:
    # The module exists here and nowhere else: it was made up in this process.
    module = types.ModuleType("only_on_the_coordinator")
    exec("import pyarrow.compute as pc\ndef helper(values):\n    return pc.add(values, 1)\n", module.__dict__)
    sys.modules[module.__name__] = module
    ctx = _session(arm)
    ctx.register_udf(arm.df.udf(module.helper, [pa.int64()], pa.int64(), "immutable", "helper"))
    arm.figure["message"] = arm.raises(
        lambda: ctx.sql("SELECT sum(helper(v)) FROM t").collect(),
        "a module that the worker lacks",
        "only_on_the_coordinator",
    )
    arm.equal(ctx.sql("SELECT count(*) AS n FROM t").to_pydict(), {"n": [ROWS]}, "the next query")


def raising(arm: Arm) -> None:
    def fail(values: Any) -> Any:
        raise ValueError("the moon is in the wrong phase")

    ctx = _session(arm)
    ctx.register_udf(arm.df.udf(_main(fail), [pa.int64()], pa.int64(), "immutable", "fail"))
    run = lambda: ctx.sql("SELECT sum(fail(v)) FROM t").collect()
    arm.figure["message"] = arm.raises(run, "a function that raises", "wrong phase")
    wrong = arm.df.udf(_main(lambda values: pa.array(["x"])), [pa.int64()], pa.int64(), "immutable", "wrong_type")
    ctx.register_udf(wrong)
    arm.raises(lambda: ctx.sql("SELECT sum(wrong_type(v)) FROM t").collect(), "a function with a wrong answer")
    arm.equal(ctx.sql("SELECT count(*) AS n FROM t").to_pydict(), {"n": [ROWS]}, "the next query")


INIT = """
import pyarrow as pa, pyarrow.compute as pc, {namespace} as df
def prepare(ctx=None):
    if ctx is None:
        raise RuntimeError("prepare() was called without anything to register functions on")
    ctx.register_udf(df.udf(lambda values: pc.add(values, 1000), [pa.int64()], pa.int64(), "immutable", "shift"))
"""


def by_name_with_init(arm: Arm) -> None:
    (arm.tmp / "my_setup.py").write_text(INIT.format(namespace=arm.df.__name__))
    # `-I` hides the current folder from the worker; a .pth-less way in that every strategy has is PYTHONPATH without -I.
    os.environ["PYTHONPATH"] = str(arm.tmp)
    arm.worker_command = [part for part in arm.worker_command if part != "-I"]
    with arm.worker("--init", "my_setup:prepare") as one, arm.worker("--init", "my_setup:prepare") as two:
        ctx = arm.with_table(arm.context(workers=[one.url, two.url]))
        # The coordinator's own version of the function differs, so the answer tells which one ran.
        local = arm.df.udf(_main(lambda values: values), [pa.int64()], pa.int64(), "immutable", "shift")
        ctx.register_udf(local)
        got = ctx.sql("SELECT sum(shift(v)) AS x FROM t").to_pydict()["x"]
        arm.equal(got, [sum(range(ROWS)) + 1000 * ROWS], "sum by the function that the workers registered")


def inlining_switched_off(arm: Arm) -> None:
    ctx = _session(arm).with_python_udf_inlining(enabled=False)
    ctx.register_udf(arm.df.udf(_main(lambda values: values), [pa.int64()], pa.int64(), "immutable", "same"))
    before = arm.tasks()
    try:
        got = ctx.sql("SELECT sum(same(v)) AS x FROM t").to_pydict()
    except Exception as error:
        arm.check("same" in str(error), f"the message does not name the function: {str(error)[:300]}")
        return
    arm.equal(got, {"x": [sum(range(ROWS))]}, "the answer")
    if arm.tasks() > before:
        raise Partial("the function was sent to workers although inlining was switched off")
