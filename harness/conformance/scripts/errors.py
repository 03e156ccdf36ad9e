"""Area 36: how mistakes are told."""

from __future__ import annotations

from typing import Any

from .kit import Arm, short

PLANNING = {
    "syntax": ("SELEC 1", "SELEC"),
    "unknown table": ("SELECT * FROM nowhere", "nowhere"),
    "unknown column": ("SELECT nothing FROM t", "nothing"),
    "unknown function": ("SELECT frobnicate(v) FROM t", "frobnicate"),
    "wrong argument": ("SELECT sqrt('a', 'b') FROM t", "sqrt"),
    "not grouped": ("SELECT k, v FROM t GROUP BY k", "v"),
    "type clash": ("SELECT v FROM t UNION SELECT named_struct('a', 1)", ""),
    "missing file": ("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/no/such/file.parquet'", ""),
}

RUN_TIME = {
    "division by zero": ("SELECT k, sum(v / (k - k)) FROM t GROUP BY k", "divide by zero"),
    "cast": ("SELECT k, max(CAST(concat('x', CAST(v AS VARCHAR)) AS INT)) FROM t GROUP BY k", "x"),
    "overflow": ("SELECT k, max(v * 9223372036854775807 * 2) FROM t GROUP BY k", "overflow"),
    "regular expression": ("SELECT k, count(regexp_match(CAST(v AS VARCHAR), '(')) FROM t GROUP BY k", "regex"),
    "array index": ("SELECT k, max(CAST(CAST(v AS VARCHAR) AS DATE)) FROM t GROUP BY k", "date"),
}


def _outcome(ctx: Any, sql: str) -> tuple[str, str]:
    try:
        ctx.sql(sql).collect()
    except BaseException as error:
        return type(error).__name__, str(error)
    return "answer", ""


def messages(arm: Arm) -> None:
    ctx, plain = arm.with_table(arm.context()), arm.with_table(arm.plain())
    for name, (sql, mention) in PLANNING.items():
        want, got = _outcome(plain, sql), _outcome(ctx, sql)
        arm.equal(got[0], want[0], f"{name}: type of the exception ({short(got[1])})")
        arm.check(mention.lower() in got[1].lower(), f"{name}: the message lacks {mention!r}: {short(got[1], 300)}")
    frame = ctx.table("t")
    arm.raises(lambda: frame.select(arm.df.col("nothing")), "an unknown column in a DataFrame", "nothing")
    arm.raises(
        lambda: frame.select(object()), "a column that is no expression", kinds=(TypeError, AttributeError, Exception)
    )
    arm.raises(lambda: ctx.table("nowhere"), "an unknown table by name", "nowhere")
    arm.figure["mistakes"] = len(PLANNING) + 3


def run_time(arm: Arm) -> None:
    ctx, plain = arm.with_table(arm.context()), arm.with_table(arm.plain())
    seen = {}
    for name, (sql, mention) in RUN_TIME.items():
        want = _outcome(plain, sql)
        got = _outcome(ctx, sql)
        seen[name] = short(f"{got[0]}: {got[1]}", 250)
        arm.check(
            (want[0] == "answer") == (got[0] == "answer"),
            f"{name}: single node gives {short(want)}, the arm {short(got)}",
        )
        if want[0] == "answer":
            continue
        arm.check(got[0] != "PanicException", f"{name}: a panic: {short(got[1])}")
        has = mention.lower() in got[1].lower() or mention.lower() not in want[1].lower()
        arm.check(has, f"{name}: the cause is lost ({mention!r}): {short(got[1], 300)}")
    arm.figure["messages"] = seen


def no_panic_anywhere(arm: Arm) -> None:
    """Decided by the harness from the logs of all the other checks; see `runner.panics`."""
    arm.check(condition=False, otherwise="this check is not run in a child")
