"""Areas 26 and 27: settings, on the coordinator and on the workers."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .kit import BY_KEY, Arm, Partial, expected_by_key

CHANGED = {
    "datafusion.execution.batch_size": "17",
    "datafusion.execution.time_zone": "+08:00",
    "datafusion.execution.collect_statistics": "false",
    "datafusion.sql_parser.dialect": "postgresql",
    "datafusion.execution.parquet.pushdown_filters": "true",
    "datafusion.optimizer.prefer_hash_join": "false",
}


def _settings(ctx: Any) -> dict[str, str]:
    table = ctx.sql("SELECT name, value FROM information_schema.df_settings").to_pydict()
    return dict(zip(table["name"], table["value"], strict=True))


def parity_on_workers(arm: Arm) -> None:
    # No worker tells its settings, so they are read off its behaviour: a function sees the size of its batches, a
    # zoneless string the time zone (see `time_zone`), and every switch is changed once and the answer compared with single node.
    observed = {}
    for size in ("17", "64"):
        ctx = arm.context({**CHANGED, "datafusion.execution.batch_size": size}, allow_python_udfs=True)
        folder = arm.parquet()
        ctx.register_parquet("t", str(folder))
        length = lambda values: pa.array([len(values)] * len(values), pa.int64())
        length.__module__ = "__main__"
        ctx.register_udf(arm.df.udf(length, [pa.int64()], pa.int64(), "volatile", "batch_rows"))
        observed[size] = max(ctx.sql("SELECT batch_rows(v) AS n FROM t WHERE v >= 0").to_pydict()["n"])
        arm.check(
            observed[size] <= int(size), f"batch size {size} was set, a worker made a batch of {observed[size]} rows"
        )
        own = _settings(ctx)
        differing = {
            key: own.get(key)
            for key, value in {**CHANGED, "datafusion.execution.batch_size": size}.items()
            if own.get(key) != value
        }
        arm.equal(differing, {}, "settings on the coordinator that differ from what was set")
    arm.figure["largest_batch_by_batch_size"] = observed
    _all_keys_survive(arm)


def _all_keys_survive(arm: Arm) -> None:
    """Change every boolean and number of df_settings, one session per group, and see that distributed queries still answer."""
    defaults = _settings(arm.context())
    plain = arm.df.SessionConfig
    changed, refused, wrong = 0, [], []
    for key, value in defaults.items():
        if not key.startswith("datafusion.") or value not in ("true", "false") or key.startswith("datafusion.runtime."):
            continue
        other = "false" if value == "true" else "true"
        try:
            plain({key: other})
            ctx = arm.with_table(arm.context({key: other}))
        except Exception:
            refused.append(key)
            continue
        changed += 1
        single = arm.with_table(arm.plain({key: other}))
        try:
            want: Any = single.sql(BY_KEY.format(table="t")).to_pydict()
        except Exception as error:
            want = type(error).__name__
        try:
            got: Any = ctx.sql(BY_KEY.format(table="t")).to_pydict()
        except Exception as error:
            got = type(error).__name__
        wrong += [] if got == want else [f"{key}={other} ({str(got)[:120]})"]
    arm.figure.update({"switches": changed, "refused": refused})
    arm.check(not wrong, "a switch that makes the distributed answer differ from single node: " + "; ".join(wrong))
    arm.check(changed > 30, f"only {changed} switches could be changed")


def time_zone(arm: Arm) -> None:
    folder = arm.tmp / "strings"
    folder.mkdir()
    for part in range(4):
        pq.write_table(pa.table({"s": ["2024-01-01T23:30:00"] * 10}), folder / f"{part}.parquet")
    sql = "SELECT DISTINCT CAST(to_timestamp(s) AS VARCHAR) AS x FROM z"
    ctx, plain = arm.context(), arm.plain()
    for each in (ctx, plain):
        each.register_parquet("z", str(folder))
    default = plain.sql(sql).to_pydict()
    for each in (ctx, plain):
        each.sql("SET datafusion.execution.time_zone = '+08:00'").collect()
    want = plain.sql(sql).to_pydict()
    arm.check(want != default, f"on a single node the time zone changes nothing ({want}), so equality proves nothing")
    run = lambda: ctx.sql(sql).to_pydict()
    arm.equal(run(), want, "the session's time zone, against single node")
    arm.on_workers(run)


def client_sees_its_settings(arm: Arm) -> None:
    ctx = arm.context(CHANGED)
    own = _settings(ctx)
    arm.equal({key: own.get(key) for key in CHANGED}, CHANGED, "settings given to SessionConfig")
    ctx.sql("SET datafusion.execution.batch_size = 33").collect()
    arm.equal(_settings(ctx)["datafusion.execution.batch_size"], "33", "a setting changed by SET")
    show = ctx.sql("SHOW datafusion.execution.batch_size").to_pydict()
    arm.check("33" in str(show), f"SHOW tells {show}")


def _options(arm: Arm) -> dict[str, Any]:
    """Every documented option with a value that differs from its default."""
    import dataclasses

    options = arm.api.DistributedOptions
    values: dict[str, Any] = {"int": 3, "float": 2.0, "bool": True, "str": "zstd"}
    return {field.name: values[str(field.type).split(" ")[0]] for field in dataclasses.fields(options)}


def set_distributed(arm: Arm) -> None:
    ctx = arm.context()
    failed = []
    options = _options(arm)
    for name, value in options.items():
        try:
            ctx.sql(f"SET distributed.{name} = '{str(value).lower()}'").collect()
        except Exception as error:
            failed.append(f"{name} ({type(error).__name__}: {str(error)[:100]})")
    arm.figure.update({"keys": len(options), "set": len(options) - len(failed)})
    arm.check(not failed, f"{len(failed)} of {len(options)} keys cannot be SET: " + "; ".join(failed))
    ctx = arm.with_table(arm.context(options=None) if False else arm.context())
    for name, value in (("broadcast_joins", "false"), ("compression", "'none'"), ("dynamic_task_count", "true")):
        ctx.sql(f"SET distributed.{name} = {value}").collect()
        arm.equal(
            ctx.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), f"an answer after SET distributed.{name}"
        )
    shown = _settings(ctx)
    if not any(key.startswith("distributed.") for key in shown):
        raise Partial("SET works, but df_settings does not list the distributed.* keys")


def set_takes_effect(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    frame = lambda: ctx.sql(BY_KEY.format(table="t"))
    arm.check(arm.probe.plan_info(frame())["distributed"], "the plan is not distributed to begin with")
    ctx.sql("SET distributed.file_scan_config_bytes_per_partition = 1000000000").collect()
    arm.check(not arm.probe.plan_info(frame())["distributed"], "SET changed nothing: the plan is still distributed")
    arm.equal(frame().to_pydict(), expected_by_key(), "the answer, undistributed")
    ctx.sql("SET distributed.file_scan_config_bytes_per_partition = 1").collect()
    arm.check(arm.probe.plan_info(frame())["distributed"], "SET back changed nothing")
    arm.on_workers(lambda: frame().collect())


def unknown_key(arm: Arm) -> None:
    ctx = arm.context()
    said = arm.raises(
        lambda: ctx.sql("SET distributed.compresion = 'lz4'").collect(), "SET of a misspelt key", "compresion"
    )
    option = arm.raises(lambda: arm.context({"distributed.compresion": "lz4"}), "a misspelt option", "compression")
    rar = {"distributed.compression": "rar"}
    run = lambda: arm.with_table(arm.context(rar)).sql(BY_KEY.format(table="t")).collect()
    value = arm.raises(run, "a value that does not exist", "rar")
    arm.raises(
        lambda: arm.context({"datafusion.execution.no_such_key": "1"}),
        "a misspelt session key",
        "no_such_key",
        kinds=(Exception,),
    )
    arm.figure.update({"SET": said, "option": option, "value": value})
    if "compression" not in said:
        raise Partial(f"SET of a misspelt key names no near match: {said[:200]}")


def typed_options(arm: Arm) -> None:
    options = arm.api.DistributedOptions
    names = list(_options(arm))
    documented = [name for name in names if f"{name}:" in (options.__doc__ or "")]
    arm.equal(documented, names, "options that the docstring explains")
    arm.figure["options"] = len(names)
    ctx = arm.with_table(arm.context(None if not arm.distributed else {}, allow_python_udfs=False))
    made = arm.open(
        arm.df.SessionConfig(), arm.urls, options=options(file_scan_config_bytes_per_partition=1, compression="zstd")
    )
    made.register_parquet("t", str(arm.parquet()))
    arm.equal(made.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), "an answer with the typed options")
    arm.on_workers(lambda: made.sql(BY_KEY.format(table="t")).collect())
    arm.raises(lambda: options(no_such=1), "an option that does not exist", "no_such", kinds=(TypeError,))
    arm.check(ctx is not made, "the two sessions are one")


def runtime_keys(arm: Arm) -> None:
    found, odd = [], []
    for key, value in _settings(arm.context()).items():
        if value is None or not key.startswith("datafusion."):
            continue
        try:
            arm.df.SessionConfig().set(key, value)
            arm.df.SessionConfig({key: value})
        except Exception:
            found.append(key)
        except BaseException as error:
            odd.append(f"{key}: {type(error).__name__}")
    arm.figure.update({"not_settable": found, "panics": odd})
    arm.check(not odd, f"setting a key back panics: {json.dumps(odd)}")
    if found:
        raise Partial(f"{len(found)} keys of df_settings cannot be set back: {', '.join(found[:6])}")
