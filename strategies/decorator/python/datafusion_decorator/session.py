"""The classes of the stock package, decorated: what writes gets its rows from workers, and `SET distributed.*` works.

The planner hook sees every query, but no sink: the stock package has no form in which a plan with a file format leaves
it. So a write is split here. Its query runs distributed; its sink is the stock package's own, in a session beside the
user's that plans locally and shares its tables, functions, settings and object stores. Batches stream from one to the
other.

A query whose plan has no form in which it could reach the engine at all (nested too deeply for protobuf, a kind of
table or function that the wire form does not know) is planned by the stock package, in that session beside, and EXPLAIN
says so.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from datafusion import DataFrame, SessionContext
from datafusion.expr import Analyze, CopyTo, DmlStatement, Explain

from . import _native
from .spec import PREFIX, option_strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from datafusion import LogicalPlan, SQLOptions

__all__ = ["DistributedDataFrame", "DistributedSessionContext", "decorate"]

_T = TypeVar("_T")

_INSERTS = ("Insert Into", "Insert Overwrite", "Replace Into")
"""Names of the changes that have a query as their input; the others are made by the table alone."""

_ADOPTED = ("DataFrame", "SessionContext")
"""Return annotations of the methods of the stock classes whose result is decorated too."""

_READERS = tuple(
    f"{verb}_{kind}" for verb in ("read", "register") for kind in ("avro", "arrow", "csv", "json", "parquet")
)
"""Methods that make a table from a path, their first argument or the one after the name."""

_GLOB = frozenset("*?[")

_GLOB_LOCATION = re.compile(r"\bLOCATION\s+'([^']*[*?\[][^']*)'", re.IGNORECASE)

_RUNNERS = (
    "__arrow_c_stream__",
    "__repr__",
    "_repr_html_",
    "cache",
    "collect",
    "collect_column",
    "collect_partitioned",
    "count",
    "describe",
    "execute_stream",
    "execute_stream_partitioned",
    "execution_plan",
    "explain",
    "show",
    "to_arrow_table",
    "to_pandas",
    "to_polars",
    "to_pydict",
    "to_pylist",
)
"""Methods of a frame that plan its query."""

_WRITERS = ("write_csv", "write_json", "write_parquet", "write_parquet_with_options", "write_table")


@functools.cache
def _local_planner() -> Any:
    """Return the stock package's own planner, as every new session has it."""
    return SessionContext().__datafusion_query_planner__()


class _Session:
    """What a decorated frame knows of its session, which lives as long as the frame. No context holds one: a cycle
    would leave closing sessions to the garbage collector."""

    def __init__(self, ctx: SessionContext, options: _native.SessionOptions) -> None:
        self.ctx = ctx
        self.options = options

    def adopt(self, result: _T) -> _T:
        """Decorate what a method of the stock package returned, if it is one of the decorated kinds."""
        if isinstance(result, DataFrame) and "_session" not in vars(result):
            result.__class__ = DistributedDataFrame  # type: ignore[assignment]
            result._session = self  # type: ignore[attr-defined]
        elif isinstance(result, SessionContext) and "_options" not in vars(result):
            decorate(result, self.options)
        return result

    def host_planned(self, frame: DataFrame, error: Exception) -> tuple[DataFrame, str] | None:
        """Return a frame that the stock package plans, and why; None when `error` is the query's own.

        Raises:
            ValueError: the session is strict.
        """
        if self.options.refused(str(error)):
            return None
        failed = _planning_error(frame)
        if failed is None or self.options.refused(str(failed)):
            return None
        beside = self.sink_session()
        plan = frame.logical_plan()
        local = beside.create_dataframe_from_logical_plan(plan)
        if _planning_error(local) is not None:
            return None
        reason = f"its plan cannot leave the host ({_first_line(failed)})"
        if self.options.strict:
            msg = f"This session is strict and the query cannot be distributed: {reason}"
            raise ValueError(msg) from error
        if isinstance(plan.to_variant(), Explain):
            shown = local.to_pydict()
            notes = [f"not distributed: {reason}\n" if "physical" in kind else "" for kind in shown["plan_type"]]
            shown["plan"] = [note + text for note, text in zip(notes, shown["plan"], strict=True)]
            local = beside.from_pydict(shown)
        return local, reason

    def sink_session(self) -> SessionContext:
        """Return a session that writes: the user's own as it is now, but with the local planner.

        `enable_url_table` is the one public way to a second session with the same runtime, and so the same object
        stores. That it can read files by name too does not show: it is given tables that exist.
        """
        beside = SessionContext.enable_url_table(self.ctx)
        beside.__class__ = SessionContext
        beside.set_query_planner(_local_planner())
        return beside

    def rows_of(self, frame: DataFrame) -> _native.QueryTable:
        """Return the result of a query as a table, planned and run anew on workers whenever it is read."""
        return _native.QueryTable(frame.execution_plan, frame.schema())

    def views_of(self, params: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
        """Return named parameters as text, and the names of views registered for those that are frames.

        The stock method registers a kind of view that hides its query, which could not be distributed then.
        """
        named, views = {}, []
        for name, value in params.items():
            named[name] = str(value) if not isinstance(value, DataFrame) else f"view_{uuid.uuid4().hex}"
            if isinstance(value, DataFrame):
                self.ctx.register_view(named[name], value)
                views.append(named[name])
        return named, views

    def split_write(self, frame: DataFrame, query: str, replacements: dict[str, str]) -> DataFrame:
        """Return a statement that writes with a distributed input; any other one as it is.

        Raises:
            NotImplementedError: the statement writes, but its text does not say what, as with EXECUTE.
        """
        plan = frame.logical_plan()
        change = plan
        while isinstance(change.to_variant(), (Explain, Analyze)):
            change = change.inputs()[0]
        kind = change.to_variant()
        if isinstance(kind, DmlStatement) and kind.op().name() not in _INSERTS:
            # DELETE, UPDATE and TRUNCATE are carried out by the table itself, where it is.
            beside = self.sink_session()
            return self.keep(beside.create_dataframe_from_logical_plan(plan), beside)
        if not isinstance(kind, (CopyTo, DmlStatement)):
            return frame
        table = f"rows_{uuid.uuid4().hex}"
        statement = _native.sink_statement(query, replacements, table)
        if statement is None:
            msg = f"a distributed session cannot tell query and sink of this statement apart: {query}. Run it as INSERT"
            raise NotImplementedError(msg)
        return self.run_with_rows(statement, table, change.inputs()[0])

    def run_with_rows(self, statement: str, table: str, plan: LogicalPlan) -> DataFrame:
        """Return `statement` in a session beside the user's, with the result of `plan` as the rows of `table`."""
        rows = self.rows_of(self.ctx.create_dataframe_from_logical_plan(plan))
        beside = self.sink_session()
        # Catalogs are shared, so the table is there under a unique name until the statement has found it.
        beside.register_table(table, rows)
        try:
            result = beside.sql(statement)
        finally:
            beside.deregister_table(table)
        return self.keep(result, beside)

    def keep(self, frame: DataFrame, beside: SessionContext) -> DataFrame:
        """Decorate a frame of the session beside, which lives as long as the frame and what is derived from it."""
        return _Session(beside, self.options).adopt(frame)

    def option(self, query: str) -> DataFrame | None:
        """Carry out SET, RESET or SHOW of a `distributed.*` option; None for any other statement.

        Raises:
            ValueError: an unknown option, with near matches, or a value that it does not take.
        """
        parsed = _native.option_statement(query)
        if parsed is None or not parsed[1].lower().startswith(PREFIX):
            return None
        verb, key, value = parsed[0], parsed[1].lower(), parsed[2]
        option_strings({key: value or ""})
        if verb == "show":
            return self.ctx.from_pydict({"name": [key], "value": [self.options.get(key)]})
        if verb == "set":
            self.options.set(key, value or "")
        else:
            self.options.reset(key)
        return self.ctx.empty_table()


def _planning_error(frame: DataFrame) -> Exception | None:
    """Return why a frame cannot be planned as it is, or None if it can."""
    try:
        DataFrame.execution_plan(frame)
    except Exception as error:  # noqa: BLE001  the stock package raises what its native side did, of any kind
        return error
    return None


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _adopting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._session.adopt(method(self, *args, **kwargs))

    return wrapper


def _running(method: Callable[..., Any], distributed: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Wrap a method that plans the frame's query; `distributed` is what stands for it as long as workers can run it."""

    @functools.wraps(method)
    def wrapper(self: DistributedDataFrame, *args: Any, **kwargs: Any) -> Any:
        try:
            return (distributed or method)(self, *args, **kwargs)
        except Exception as error:
            planned = self._session.host_planned(self, error)
            if planned is None:
                raise
        local, reason = planned
        if method.__name__ == "explain":
            print(f"not distributed: {reason}")  # where the stock method prints the plan
        return method(local, *args, **kwargs)

    return wrapper


def _writing(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def wrapper(self: DistributedDataFrame, *args: Any, **kwargs: Any) -> None:
        beside = self._session.sink_session()
        method(beside.read_table(self._session.rows_of(self)), *args, **kwargs)

    return wrapper


def _refuse_pattern(path: object) -> None:
    """Refuse a path with a pattern: of it a plan in its wire format keeps the folder, and every file would be read.

    Raises:
        NotImplementedError: there is one in the path, or in one of the paths.
    """
    paths = path if isinstance(path, (list, tuple)) else [path]
    for one in paths:
        text = os.fspath(one) if isinstance(one, (str, os.PathLike)) else ""
        if not _GLOB.isdisjoint(text):
            msg = (
                f"a decorated session cannot read the pattern {str(text)!r}: a plan on its way to the engine keeps the "
                "folder alone, and every file in it would be read. Put the files into a folder of their own"
            )
            raise NotImplementedError(msg)


def _reading(method: Callable[..., Any]) -> Callable[..., Any]:
    position = 0 if method.__name__.startswith("read") else 1

    @functools.wraps(method)
    def wrapper(self: DistributedSessionContext, *args: Any, **kwargs: Any) -> Any:
        _refuse_pattern(args[position] if len(args) > position else kwargs.get("path"))
        return self._session.adopt(method(self, *args, **kwargs))

    return wrapper


def _adopt_results(decorated: type[_T]) -> type[_T]:
    """Wrap the inherited methods that run or write a query, and those whose result is a frame or a context."""
    stock = decorated.__mro__[1]
    for name, method in vars(stock).items():
        if not inspect.isfunction(method) or name in vars(decorated):
            continue
        if name in _READERS:
            setattr(decorated, name, _reading(method))
        elif name in _WRITERS:
            setattr(decorated, name, _running(method, _writing(method)))
        else:
            adopts = method.__annotations__.get("return") in _ADOPTED
            wrapped = _running(method) if stock is DataFrame and name in _RUNNERS else method
            if wrapped is not method or adopts:
                setattr(decorated, name, _adopting(wrapped) if adopts else wrapped)
    return decorated


@_adopt_results
class DistributedSessionContext(SessionContext):
    """A stock context whose queries, those inside of writes included, run on workers.

    Made by `distributed` and by `SessionContext.with_extensions`; not called directly.
    """

    _options: _native.SessionOptions

    def __init__(self, *_: object, **__: object) -> None:
        """Refuse: a decorated context is made from one of the stock package."""
        msg = "make a stock SessionContext and give it to distributed(ctx, workers)"
        raise TypeError(msg)

    @property
    def _session(self) -> _Session:
        return _Session(self, self._options)

    def sql(
        self,
        query: str,
        options: SQLOptions | None = None,
        param_values: dict[str, Any] | None = None,
        **named_params: Any,
    ) -> DataFrame:
        """Create a frame from SQL, as the stock context does, with two additions.

        `SET`, `RESET` and `SHOW` know the keys of `DistributedOptions`, and statements that write (COPY, INSERT) get
        their rows from workers.

        Raises:
            ValueError: an unknown `distributed.*` option, with near matches, or a value that it does not take.
            NotImplementedError: EXECUTE of a prepared statement that writes; a table at a path with a pattern.
        """
        session = self._session
        named, views = session.views_of(named_params)
        found = _GLOB_LOCATION.search(query) if "external" in query.lower() else None
        if found:
            _refuse_pattern(found.group(1))
        try:
            frame = super().sql(query, options, param_values, **named)
        except ValueError as error:
            # The host does not know the namespace and refuses before it has done anything.
            done = session.option(query) if PREFIX.rstrip(".") in str(error) else None
            if done is None:
                raise
            return done
        finally:
            for view in views:
                self.deregister_table(view)
        return session.split_write(session.adopt(frame), query, named)


@_adopt_results
class DistributedDataFrame(DataFrame):
    """A stock frame whose query runs on workers, also when its result is written.

    Made by the methods of a decorated context; not called directly.
    """

    _session: _Session


def decorate(ctx: SessionContext, options: _native.SessionOptions) -> None:
    """Turn a context into a decorated one, in place: an extension cannot choose the object that the host returns."""
    ctx.__class__ = DistributedSessionContext
    ctx._options = options  # type: ignore[attr-defined]
