"""Areas 19 and 20: more than one extension in a session."""

# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from .kit import BY_KEY, Arm, expected_by_key

SQL = BY_KEY.format(table="t")


class _Other:
    """A bundle that brings nothing."""

    def __init__(self, arm: Arm) -> None:
        self.components = arm.df.SessionExtensionComponents

    def __datafusion_session_components__(self, ctx: Any) -> Any:
        return self.components()


class _Raising:
    """A bundle that fails while it is installed."""

    def __datafusion_session_components__(self, ctx: Any) -> Any:
        raise RuntimeError("this bundle cannot be installed")


def _answer(arm: Arm, ctx: Any, what: str) -> None:
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), what)


def duplicate_id(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    try:
        again = arm.api.distributed(ctx, arm.urls)
    except ValueError as error:
        arm.figure["twice"] = f"ValueError: {error}"
    else:
        arm.figure["twice"] = "accepted"
        _answer(arm, again, "the session with the extension twice")
    _answer(arm, ctx, "the first handle after the second installation")


def order(arm: Arm) -> None:
    ours = arm.api.DistributedExtension(arm.urls, options={"file_scan_config_bytes_per_partition": 1})
    for name, bundles in (
        ("other first", (_Other(arm), ours)),
        ("ours first", (ours, _Other(arm))),
        ("one call each", (ours,)),
    ):
        ctx = arm.df.SessionContext(arm.df.SessionConfig().with_target_partitions(2)).with_extensions(*bundles)
        if name == "one call each":
            ctx = ctx.with_extensions(_Other(arm))
        arm.with_table(ctx)
        _answer(arm, ctx, name)
        arm.on_workers(lambda ctx=ctx: ctx.sql(SQL).collect(), name)


def atomic_install(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())

    def state() -> tuple[Any, ...]:
        settings = ctx.sql("SELECT name, value FROM information_schema.df_settings").to_pydict()
        return ctx.logical_extension_codec_ids(), ctx.physical_extension_codec_ids(), settings

    before = state()
    arm.raises(lambda: ctx.with_extensions(_Other(arm), _Raising()), "a bundle that raises", "cannot be installed")
    arm.equal(state(), before, "codecs and settings after the failed installation")
    _answer(arm, ctx, "the session after the failed installation")
    arm.on_workers(lambda: ctx.sql(SQL).collect())
    if arm.package == "datafusion_decorator":
        plain = arm.with_table(arm.plain())
        settings = plain.sql("SELECT name, value FROM information_schema.df_settings").to_pydict()
        ours = arm.api.DistributedExtension(arm.urls)
        arm.raises(
            lambda: plain.with_extensions(ours, _Raising()), "ours, then a bundle that raises", "cannot be installed"
        )
        arm.equal(
            plain.sql("SELECT name, value FROM information_schema.df_settings").to_pydict(),
            settings,
            "settings after ours and one that raises",
        )
        _answer(arm, plain, "a plain session after ours and one that raises")
