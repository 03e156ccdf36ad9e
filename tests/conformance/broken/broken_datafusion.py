"""Stock datafusion, broken on purpose: `CONFORMANCE_LIE` says how. The conformance suite must notice every kind.

The module patches the real package inside the one process it is imported into, and then stands in for it.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import datafusion
from datafusion import *  # noqa: F403
from datafusion import (
    DataFrame,
    SessionContext,
)  # noqa: F401

LIE = os.environ.get("CONFORMANCE_LIE", "")

_to_pydict, _collect, _sql = DataFrame.to_pydict, DataFrame.collect, SessionContext.sql


class PanicException(BaseException):
    """Looks like what a Rust panic raises."""


def lose_a_row(frame: Any) -> Any:
    return {name: values[:-1] if len(values) > 1 else values for name, values in _to_pydict(frame).items()}


def lose_a_batch(frame: Any) -> Any:
    return _collect(frame)[:-1]


def answer_late(context: Any, *args: Any, **kwargs: Any) -> Any:
    time.sleep(3600)


def die(context: Any, *args: Any, **kwargs: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def panic(context: Any, *args: Any, **kwargs: Any) -> Any:
    raise PanicException("called `Option::unwrap()` on a `None` value")


def swallow_errors(context: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return _sql(context, *args, **kwargs)
    except Exception:
        return _sql(context, "SELECT 1 AS n")


def write_nothing(frame: Any, *args: Any, **kwargs: Any) -> None:
    return None


def forget_setting(context: Any, text: str, *args: Any, **kwargs: Any) -> Any:
    return _sql(context, "SELECT 1 AS n" if text.startswith("SET ") else text, *args, **kwargs)


if LIE == "rows":
    DataFrame.to_pydict, DataFrame.collect = lose_a_row, lose_a_batch
elif LIE == "hang":
    SessionContext.sql = answer_late
elif LIE == "crash":
    SessionContext.sql = die
elif LIE == "panic":
    SessionContext.sql = panic
elif LIE == "errors":
    SessionContext.sql = swallow_errors
elif LIE == "writes":
    DataFrame.write_parquet = DataFrame.write_csv = write_nothing
elif LIE == "settings":
    SessionContext.sql = forget_setting
elif LIE == "names":
    del DataFrame.describe
    del datafusion.SessionConfig.with_batch_size
