"""Area 4: every public callable, called on a session of the arm and on a plain one; the answers must be equal."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import recipes, recipes_context
from .kit import Arm, Partial, rows, short

VOLATILE = {"rand", "random", "uuid", "now", "current_date", "current_time", "current_timestamp", "today"}
"""Their answers differ from call to call: only the number of rows is compared."""

UNORDERED = {
    "array_agg",
    "string_agg",
    "first_value",
    "last_value",
    "nth_value",
    "any_value",
    "approx_distinct",
    "row_number",
    "ntile",
    "lead",
    "lag",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
}
"""Without an ORDER BY of their own they may answer with any row: they get one, or only their number is compared."""

FROM_STATISTICS = {"count", "max", "min"}
"""Over a whole table these are answered from the files' statistics, on a single node too: nothing is left to distribute."""

TARGET = 0.95


def _table(arm: Arm, ctx: Any) -> Any:
    folder = arm.tmp / "x"
    if not folder.is_dir():
        folder.mkdir()
        moment = dt.datetime(2024, 5, 17, 13, 14, 15)  # noqa: DTZ001
        for part in range(4):
            ids = [part * 5 + i for i in range(5)]
            pq.write_table(pa.table({
                "i": ids, "f": [n / 8 + 0.05 for n in ids], "s": [f"text {n}" if n % 4 else None for n in ids],
                "ts": [moment + dt.timedelta(hours=n) for n in ids], "d": [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in ids],
                "b": [n % 2 == 0 for n in ids], "a": [[n, n + 1, 3] for n in ids], "y": [bytes([n, 255]) for n in ids],
                "h": [f"{n:02x}" for n in ids], "w": [["a", f"b{n}"] for n in ids],
                "m": pa.array([[("a", n)] for n in ids], pa.map_(pa.string(), pa.int64())),
                "st": [{"p": n, "q": "z"} for n in ids], "aa": [[[n], [1]] for n in ids],
            }), folder / f"{part}.parquet")  # fmt: skip
    floats = arm.tmp / "floats"
    if not floats.is_dir():
        floats.mkdir()
        for part in range(4):
            pq.write_table(pa.table({"fa": [[part + 1.5, 2.0], [3.0, 4.0]]}), floats / f"{part}.parquet")
    ctx.register_parquet("floats", str(floats))
    ctx.register_parquet("x", str(folder))
    return arm.with_table(ctx)


def _candidates(col: Callable[[str], Any], lit: Callable[[Any], Any]) -> Iterator[tuple[Any, ...]]:
    """Arguments to try, likely ones first."""
    yield ()
    single = [col(name) for name in ("i", "f", "s", "a", "ts", "d", "b", "m", "st", "y", "h", "w", "aa")]
    yield from ((one,) for one in single)
    yield from (([one],) for one in single[:4])
    yield from itertools.product(single[:6], [lit(2), lit("t"), lit(0.5)])
    yield from ((one, 2) for one in single[:4])
    yield from ((one, two) for one in single[:10] for two in single[:10])
    yield from ([(lit(part), col(c)) for part in ("day", "hour", "%Y", "1 day") for c in ("ts", "d")])
    yield from (
        [
            (col(c), lit(part))
            for part in ("Int32", "sha256", "hex", "%Y", "p", "a")
            for c in ("i", "s", "y", "h", "ts", "st", "m", "w")
        ]
    )
    yield from ((one, lit(1), lit(2)) for one in single[:4])
    yield from (
        (col("s"), lit("t"), lit("u")),
        (col("s"), lit(9), lit("*")),
        (col("s"), lit(" "), lit(1)),
        (col("a"), lit(1), col("i")),
    )
    yield from (
        (lit(1), lit(9), lit(2)),
        (col("i"), col("i"), lit(1)),
        (lit(2024), lit(5), lit(6)),
        (col("i"), lit(0), lit(30), lit(3)),
    )
    yield from (
        ([lit("k")], [col("i")]),
        ([("k", col("i"))],),
        ("s", [col("s")]),
        (",", col("s"), col("h")),
        (col("w"), lit(",")),
    )
    yield from (
        (col("b"), col("i"), lit(0)),
        (col("a"), col("a"), lit(1)),
        (col("s"), "t", "u"),
        (col("f"), 0.5),
        (col("f"), col("i"), 0.5),
    )
    yield from ((lit(2), lit(1), lit(1.0), lit(0)), (col("w"), ","), (lit("x{}"), col("i")))


def _apply(frame: Any, expression: Any, name: str, f: Any) -> Any:
    """The expression over the table: as a column if that plans, else as an aggregate."""
    try:
        made = frame.select(expression.alias("x"))
        rows(made.limit(1))
    except Exception:
        return frame.aggregate([], [expression.alias("x")])
    return made


def _function(arm: Arm, name: str, function: Any, ctx: Any, plain: Any) -> str:
    """`equal`, `local`, a difference, or why it was not called."""
    df = arm.df
    last: Exception | None = None
    for arguments in _candidates(df.col, df.lit):
        try:
            expression = function(*arguments)
            want = rows(_apply(plain.table("x"), expression, name, df.functions))
        except Exception as error:
            last = error
            continue
        if all(row == "{'x': None}" for row in want):
            continue
        return _compare(arm, name, lambda c, e=expression: _apply(c.table("x"), e, name, df.functions), ctx, want)
    return f"not called: no arguments found ({short(last, 80)})"


def _compare(arm: Arm, name: str, build: Callable[[Any], Any], ctx: Any, want: list[str]) -> str:
    before = arm.tasks()
    try:
        got = rows(build(ctx))
    except Exception as error:
        return f"differs: {type(error).__name__}: {short(error, 160)}"
    loose = name.rpartition(".")[2] in VOLATILE | UNORDERED
    same = len(got) == len(want) if loose else [*map(_rounded, got)] == [*map(_rounded, want)]
    if not same:
        return f"differs: {short(got, 80)} instead of {short(want, 80)}"
    reached = not arm.distributed or name in FROM_STATISTICS or arm.tasks() > before
    return "equal" if reached else "local"


def _methods(arm: Arm, group: str, table: dict[str, Any], members: list[str], ctx: Any, plain: Any) -> dict[str, str]:
    """Outcome of every member of one class, by the recipe for it."""
    found = {}
    for member in members:
        recipe = table.get(member)
        if recipe is None:
            found[f"{group}.{member}"] = "not called: no recipe"
        elif isinstance(recipe, str):
            found[f"{group}.{member}"] = f"not called: {recipe}"
        else:
            found[f"{group}.{member}"] = _method(arm, recipe, ctx, plain)
    return found


def _method(arm: Arm, recipe: Callable[..., Any], ctx: Any, plain: Any) -> str:
    try:
        want = _value(recipe(arm, plain))
    except Exception as error:
        return f"not called: the recipe fails on a single node ({type(error).__name__}: {short(error, 80)})"
    before = arm.tasks()
    try:
        got = _value(recipe(arm, ctx))
    except BaseException as error:
        return f"differs: {type(error).__name__}: {short(error, 160)}"
    if got != want:
        return f"differs: {short(got, 100)} instead of {short(want, 100)}"
    touches = hasattr(recipe, "runs_query")
    return "local" if touches and arm.distributed and arm.tasks() == before else "equal"


def _value(value: Any) -> Any:
    if hasattr(value, "collect") and hasattr(value, "schema"):
        return [_rounded(row) for row in rows(value)]
    return value


FLOAT = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def _rounded(row: str) -> str:
    """Floats to 12 digits: two builds of the same function may differ in the last one."""
    return FLOAT.sub(lambda found: f"{float(found.group()):.12g}", row)


def _public(thing: Any) -> list[str]:
    return sorted(name for name in dir(thing) if not name.startswith("_") and callable(getattr(thing, name)))


def _finish(arm: Arm, found: dict[str, str], *, need: float) -> None:
    equal = [name for name, outcome in found.items() if outcome in ("equal", "local")]
    local = sorted(name for name, outcome in found.items() if outcome == "local")
    wrong = {name: outcome for name, outcome in found.items() if outcome.startswith("differs")}
    skipped = {name: outcome for name, outcome in found.items() if outcome.startswith("not called")}
    share = len(equal) / len(found)
    arm.figure.update({
        "callables": len(found), "equal": len(equal), "share": round(share, 4), "silently_local": local,
        "differing": wrong, "not_called": skipped,
    })  # fmt: skip
    arm.check(
        not wrong,
        f"{len(wrong)} of {len(found)} differ from single node: " + "; ".join(f"{n}: {o}" for n, o in wrong.items()),
    )
    if share < need:
        raise Partial(f"{len(equal)} of {len(found)} called with equal answers; not called: {', '.join(skipped)}")
    if local:
        raise Partial(f"right, but no worker took part in {len(local)}: {', '.join(local)}")


def dataframe_methods(arm: Arm) -> None:
    ctx, plain = _table(arm, arm.context()), _table(arm, arm.plain())
    _finish(arm, _methods(arm, "DataFrame", recipes.DATAFRAME, _public(arm.df.DataFrame), ctx, plain), need=TARGET)


def public_surface(arm: Arm) -> None:
    df = arm.df
    ctx, plain = _table(arm, arm.context()), _table(arm, arm.plain())
    found = {
        f"functions.{name}": _function(arm, name, getattr(df.functions, name), ctx, plain)
        for name in sorted(df.functions.__all__)
        if name not in recipes.FUNCTIONS
    }
    found |= _methods(arm, "functions", recipes.FUNCTIONS, sorted(recipes.FUNCTIONS), ctx, plain)
    own = {name: recipes.EXPR.get(name, recipes.unary(name)) for name in _public(df.Expr)}
    found |= _methods(arm, "Expr", own, sorted(own), ctx, plain)
    for group, table in (
        ("DataFrame", recipes.DATAFRAME),
        ("SessionContext", recipes_context.CONTEXT),
        ("SessionConfig", recipes.CONFIG),
    ):
        # Some recipes change the session, so each class gets fresh ones.
        ctx, plain = _table(arm, arm.context()), _table(arm, arm.plain())
        found |= _methods(arm, group, table, _public(getattr(df, group)), ctx, plain)
    _finish(arm, found, need=TARGET)
