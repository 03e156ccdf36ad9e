"""Areas 1, 2, 3, 5, 6, 7: names, classes, signatures."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import difflib
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

from .kit import BY_KEY, Arm, Partial, expected_by_key, missing, short
from .surface import surface

SQL = BY_KEY.format(table="t")

EXPECTED_ADDED = {"inline": {"distributed", "SessionConfig.with_distributed", "ExecutionPlan.display_distributed"}}
"""What a strategy may add to the namespace it shares with stock; the others must add nothing there."""


def new_names(arm: Arm) -> None:
    stock, own = arm.given["stock"], surface(arm.df.__name__)
    removed = sorted(stock.keys() - own.keys())
    added = sorted(own.keys() - stock.keys())
    package = arm.package if arm.distributed else ""
    public = sorted(getattr(importlib.import_module(package), "__all__", [])) if package else []
    arm.figure.update(
        {"added_to_namespace": added, "own_package": package, "own_names": public, "count": len(added) + len(public)}
    )
    arm.equal(removed, [], "names of the stock package that are gone")
    if arm.df.__name__ == "datafusion":
        arm.equal(
            sorted(set(added) - EXPECTED_ADDED.get(arm.name, set())),
            [],
            "names added inside `datafusion` beyond what the README lists",
        )


LOCAL = """from datafusion import SessionContext
ctx = SessionContext()
ctx.register_parquet("t", {path!r})
print(ctx.sql({sql!r}).to_pydict())
"""

DISTRIBUTED = {
    "datafusion.distributed": """from datafusion import SessionConfig, SessionContext
ctx = SessionContext(SessionConfig().with_distributed({urls!r}))
ctx.register_parquet("t", {path!r})
print(ctx.sql({sql!r}).to_pydict())
""",
    "datafusion_external": """from datafusion_external import DistributedSessionContext
ctx = DistributedSessionContext({urls!r})
ctx.register_parquet("t", {path!r})
print(ctx.sql({sql!r}).to_pydict())
""",
    "datafusion_decorator": """from datafusion import SessionContext
from datafusion_decorator import distributed
ctx = distributed(SessionContext(), {urls!r})
ctx.register_parquet("t", {path!r})
print(ctx.sql({sql!r}).to_pydict())
""",
}


def shortest_script(arm: Arm) -> None:
    names = {"path": str(arm.parquet()), "sql": SQL}
    if not arm.distributed:
        text = LOCAL.format(**names)
        arm.figure["lines"] = len(text.splitlines())
    else:
        if arm.package not in DISTRIBUTED:
            raise Partial("the arm has no script of its own here; its factory is all that is known")
        with arm.worker() as worker:
            text = DISTRIBUTED[arm.package].format(urls=[worker.url], **names)
            _run(arm, text)
        local = LOCAL.format(**names).splitlines()
        changed = [
            line
            for line in difflib.unified_diff(local, text.splitlines(), n=0, lineterm="")
            if line[:1] == "+" and line[:3] != "+++"
        ]
        arm.figure.update({"changed_lines": len(changed), "lines": len(text.splitlines()), "diff": changed})
        arm.check(len(changed) <= 3, f"{len(changed)} lines change to go distributed: {changed}")
        return
    _run(arm, text)


def _run(arm: Arm, text: str) -> None:
    done = subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, timeout=60, check=False)
    arm.equal(done.returncode, 0, f"exit code of the script ({short(done.stderr, 300)})")
    arm.equal(done.stdout.strip(), str(expected_by_key()), "what the script prints")


def class_identity(arm: Arm) -> None:
    df = arm.df
    ctx = arm.with_table(arm.context())
    frame = ctx.sql(SQL)
    arm.check(isinstance(ctx, df.SessionContext), f"the context is a {type(ctx)}, no {df.__name__}.SessionContext")
    arm.check(isinstance(frame, df.DataFrame), f"a result is a {type(frame)}, no {df.__name__}.DataFrame")
    chained = frame.filter(df.col("k") > df.lit(1)).select("k").limit(3)
    arm.check(type(chained) is type(frame), f"a chained result is a {type(chained)}")
    arm.check(isinstance(chained.logical_plan(), df.LogicalPlan), "the logical plan is of another class")
    arm.check(isinstance(frame.execution_plan(), df.ExecutionPlan), "the execution plan is of another class")
    arm.equal(sorted(chained.to_pydict()["k"])[0] > 1, True, "rows of the chain")
    arm.figure.update({"context": _path(ctx), "frame": _path(frame), "expr": _path(df.col("k"))})
    if not all(_is_stock_object(thing) for thing in (ctx, frame)):
        raise Partial(
            f"classes are not those of `datafusion`: isinstance(df, datafusion.DataFrame) is False for {_path(frame)}"
        )


def _is_stock_object(thing: Any) -> bool:
    """Whether user code that asks `isinstance(thing, datafusion.X)` is told yes; `datafusion` need not be installed."""
    return any(base.__module__.startswith("datafusion.") for base in type(thing).__mro__)


def _path(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def foreign_objects(arm: Arm) -> None:
    sys.path.append(
        arm.given["stock_site"]["path"]
    )  # behind the arm's own packages, so that only what is missing comes from it
    stock = importlib.import_module("datafusion")
    ctx = arm.with_table(arm.context())
    frame = ctx.table("t")
    plain = stock.SessionContext()
    foreign = plain.from_pydict({"k": [1, 2], "name": ["a", "b"]})
    acts = {
        "Expr in select": lambda: frame.select(stock.col("v")).count(),
        "Expr in filter": lambda: frame.filter(stock.col("v") < stock.lit(10)).count(),
        "function": lambda: frame.aggregate([], [stock.functions.sum(stock.col("v"))]).collect(),
        "DataFrame in join": lambda: frame.join(foreign, on="k").count(),
        "DataFrame as table": lambda: (ctx.register_table("f", foreign), ctx.sql("SELECT count(*) FROM f").collect())[
            1
        ],
        "DataFrame as Arrow": lambda: ctx.from_arrow(foreign, name="fa").count(),
        "UDF": lambda: ctx.register_udf(
            stock.udf(lambda x: x, [__import__("pyarrow").int64()], __import__("pyarrow").int64(), "immutable", "same")
        ),
        "SessionConfig": lambda: arm.open(stock.SessionConfig(), arm.urls),
    }
    outcomes, unclear = {}, []
    for name, act in acts.items():
        try:
            act()
            outcomes[name] = "works"
        except Exception as error:
            outcomes[name] = f"{type(error).__name__}: {short(error, 160)}"
            clear = "datafusion" in str(error) and ("stock" in str(error) or "another copy" in str(error))
            unclear += [] if clear else [f"{name} ({outcomes[name]})"]
    arm.figure["outcomes"] = outcomes
    arm.check(not unclear, "objects of `datafusion` that fail without saying why: " + "; ".join(unclear))
    failing = [name for name, outcome in outcomes.items() if outcome != "works"]
    if failing:
        raise Partial(f"refused with a clear error: {', '.join(failing)}")


def other_session(arm: Arm) -> None:
    one, two = arm.with_table(arm.context()), arm.context()
    plain = arm.with_table(arm.plain())
    two.register_view("seen", one.table("t"))
    arm.equal(
        two.sql(BY_KEY.format(table="seen")).to_pydict(), expected_by_key(), "a DataFrame of another session as a view"
    )
    two.register_table("given", one.table_provider("t"))
    arm.equal(two.sql(BY_KEY.format(table="given")).to_pydict(), expected_by_key(), "a table of another session")
    joined = one.table("t").join(plain.table("t").with_column_renamed("v", "w").select("w"), left_on="v", right_on="w")
    arm.equal(joined.count(), 1000, "rows of a join with a DataFrame of a plain session")
    frame = two.create_dataframe_from_logical_plan(one.table("t").logical_plan())
    arm.equal(frame.count(), 1000, "rows of another session's logical plan")


def stock_session_unchanged(arm: Arm) -> None:
    ctx = arm.with_table(arm.plain())
    before = arm.tasks()
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer of a plain session")
    arm.equal(arm.tasks(), before, "tasks that a plain session caused on workers")
    names = ctx.sql("SELECT name FROM information_schema.df_settings").to_pydict()["name"]
    arm.equal([name for name in names if "distributed" in name], [], "distributed settings in a plain session")
    plan = str(ctx.sql(SQL).execution_plan())
    arm.check("Network" not in plan and "Stage" not in plan, f"a plain session's plan: {short(plan, 300)}")


def signatures(arm: Arm) -> None:
    stock, own = arm.given["stock"], surface(arm.df.__name__)
    changed = sorted(name for name in stock.keys() & own.keys() if stock[name] != own[name])
    arm.figure.update({"compared": len(stock), "changed": changed, "added": len(own.keys() - stock.keys())})
    arm.equal(sorted(stock.keys() - own.keys()), [], "public names that are gone")
    arm.equal(changed, [], "public names with other parameters")


def typed(arm: Arm) -> None:
    package = importlib.import_module(arm.package)
    root = Path(str(importlib.import_module(arm.package.partition(".")[0]).__file__)).parent
    arm.check((root / "py.typed").is_file(), f"{root.name} has no py.typed")
    bare = []
    for name, thing in _members(arm, package):
        try:
            signature = inspect.signature(thing)
        except (TypeError, ValueError):
            continue
        bare += [
            f"{name}({p.name})"
            for p in signature.parameters.values()
            if p.annotation is p.empty and p.name not in ("self", "cls")
        ]
    arm.figure["names"] = len(_members(arm, package))
    arm.equal(bare, [], "parameters without annotation")


def _members(arm: Arm, package: Any) -> list[tuple[str, Any]]:
    """Public classes, methods and functions that the stock package does not have."""
    found = []
    for name in sorted(set(package.__all__) - arm.given["stock"].keys()):
        thing = getattr(package, name)
        if not callable(thing) or getattr(thing, "__module__", "").startswith(("typing", "collections")):
            continue
        found.append((name, thing))
        if inspect.isclass(thing) and not hasattr(thing, "__total__"):
            found += [
                (f"{name}.{m}", f) for m, f in vars(thing).items() if inspect.isfunction(f) and not m.startswith("_")
            ]
    return found


def help_texts(arm: Arm) -> None:
    package = importlib.import_module(arm.package)
    bare, unnamed = [], []
    for name, thing in _members(arm, package):
        text = inspect.getdoc(thing) or ""
        if len(text) < 20:
            bare.append(name)
            continue
        owner = package if "." not in name else getattr(package, name.partition(".")[0])
        whole = text + (inspect.getdoc(owner) or "" if name.endswith("__init__") else "")
        try:
            parameters = inspect.signature(thing).parameters.values()
        except (TypeError, ValueError):
            continue
        unnamed += [
            f"{name}({p.name})" for p in parameters if p.name not in ("self", "cls", "options") and p.name not in whole
        ]
    arm.figure.update(
        {"names": len(_members(arm, package)), "without_docstring": bare, "parameters_not_named": unnamed}
    )
    arm.equal(bare, [], "new public names without a docstring")
    missing([f"parameters that no docstring names: {', '.join(unnamed)}"] if unnamed else [])
