"""Area 32: what goes wrong around a query, how it is told, and how soon."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from .kit import BY_KEY, ROWS, SLOW, Arm, Blocked, expected_by_key, short, wait_until

SQL = BY_KEY.format(table="t")


def _free_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def _timed_failure(arm: Arm, act: Callable[[], object], what: str, *mentions: str, within: float) -> str:
    began = time.monotonic()
    message = arm.raises(act, what, *mentions)
    seconds = time.monotonic() - began
    arm.figure.update({"message": short(message, 500), "seconds": round(seconds, 2)})
    arm.check(seconds < within, f"{what}: the error came after {seconds:.1f} s, the limit is {within:g} s")
    return message


def dead_url(arm: Arm) -> None:
    url = _free_url()
    ctx = arm.with_table(arm.context(workers=[url, _free_url()]))
    _timed_failure(arm, lambda: ctx.sql(SQL).collect(), "workers that are not there", "http://127.0.0.1:", within=20)


def invalid_url(arm: Arm) -> None:
    said = {}
    for url in (
        "ftp://127.0.0.1:1",
        "127.0.0.1:5",
        "http://127.0.0.1:70000",
        "http://",
        "",
        "http://host:port",
        "http://a b:1",
    ):
        said[url] = arm.raises(lambda url=url: arm.context(workers=[url]), f"the URL {url!r}", url, kinds=(ValueError,))
        arm.check("http" in said[url], f"the message for {url!r} shows no good URL: {said[url]}")
    arm.raises(lambda: arm.context(workers=[5]), "a number instead of a URL", kinds=(TypeError, ValueError))
    arm.figure["messages"] = {url: short(text, 120) for url, text in said.items()}


def zero_workers(arm: Arm) -> None:
    os.environ.pop("DATAFUSION_DISTRIBUTED_WORKERS", None)
    arm.figure["empty list"] = arm.raises(
        lambda: arm.context(workers=[]), "an empty list", "worker", kinds=(ValueError,)
    )
    variable = arm.raises(
        lambda: arm.open(arm.df.SessionConfig(), None),
        "no workers and no variable",
        "DATAFUSION_DISTRIBUTED_WORKERS",
        kinds=(ValueError,),
    )
    arm.figure["unset variable"] = variable
    ctx = arm.with_table(arm.context(workers=list))
    try:
        got = ctx.sql(SQL).to_pydict()
    except Exception as error:
        arm.figure["resolver that returns none"] = f"{type(error).__name__}: {error}"
        arm.check("worker" in str(error).lower(), f"a resolver without workers: {error}")
    else:
        arm.equal(got, expected_by_key(), "the answer with a resolver that returns none")


def _slow(arm: Arm, urls: list[str]) -> tuple[Any, list[Any], threading.Thread]:
    ctx = arm.with_slow_table(arm.context({"datafusion.execution.batch_size": "256"}, workers=urls))
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(("answer", ctx.sql(SLOW).to_pydict()))
        except BaseException as error:
            ended.append((type(error).__name__, str(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not wait_until(lambda: arm.tasks("tasks_running") > 0 or not thread.is_alive(), 30) or not thread.is_alive():
        raise Blocked(f"the query ended before a worker could be harmed: {short(ended)}")
    time.sleep(0.3)
    return ctx, ended, thread


def _told(
    arm: Arm, ended: list[Any], thread: threading.Thread, began: float, limit: float, victim: str, what: str
) -> None:
    thread.join(limit)
    seconds = time.monotonic() - began
    arm.figure.update({"seconds": round(seconds, 1), "outcome": short(ended, 600)})
    arm.check(ended, f"{what}: the query still hangs {limit:g} s later")
    kind, message = ended[0]
    arm.check(kind != "answer", f"{what}: the query answered as if nothing had happened: {short(message)}")
    arm.check(kind != "PanicException", f"{what}: a panic: {short(message)}")
    arm.check(victim in message, f"{what}: the message does not name {victim}: {kind}: {short(message, 400)}")


def killed_mid_query(arm: Arm) -> None:
    _, ended, thread = _slow(arm, arm.urls)
    os.kill(arm.pids[1], signal.SIGKILL)
    _told(arm, ended, thread, time.monotonic(), 45, arm.urls[1], "a worker killed mid-query")
    survivor = arm.urls[:1]
    answer = arm.with_table(arm.context(workers=survivor)).sql(SQL).to_pydict()
    arm.equal(answer, expected_by_key(), "a new session on the worker that is left")
    arm.check(
        wait_until(lambda: arm.tasks("tasks_running", survivor) == 0, 15),
        "tasks of the failed query still run on the worker that is left",
    )


def killed_between_queries(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer while both live")
    os.kill(arm.pids[1], signal.SIGKILL)
    time.sleep(0.5)
    _timed_failure(arm, lambda: ctx.sql(SQL).collect(), "a worker that died before the query", arm.urls[1], within=30)
    again = arm.with_table(arm.context(workers=arm.urls[:1])).sql(SQL).to_pydict()
    arm.equal(again, expected_by_key(), "a new session on the worker that is left")


def stopped_worker(arm: Arm) -> None:
    _, ended, thread = _slow(arm, arm.urls)
    os.kill(arm.pids[1], signal.SIGSTOP)
    try:
        _told(arm, ended, thread, time.monotonic(), 75, arm.urls[1], "a worker that hangs")
    finally:
        os.kill(arm.pids[1], signal.SIGCONT)


def resolver_raises(arm: Arm) -> None:
    def unlucky() -> list[str]:
        raise RuntimeError("the registry is on fire")

    ctx = arm.with_table(arm.context(workers=unlucky))
    arm.figure["raises"] = arm.raises(lambda: ctx.sql(SQL).collect(), "a resolver that raises", "registry is on fire")
    for answer in ("http://127.0.0.1:1", [5], None, ["nonsense"]):
        odd = arm.with_table(arm.context(workers=lambda answer=answer: answer))
        said = arm.raises(lambda odd=odd: odd.sql(SQL).collect(), f"a resolver that returns {answer!r}")
        arm.check(
            "resolver" in said or "callable" in said,
            f"a resolver that returns {answer!r} is not named: {short(said, 300)}",
        )
    fine = arm.with_table(arm.context(workers=lambda: list(arm.urls)))
    arm.equal(fine.sql(SQL).to_pydict(), expected_by_key(), "a good resolver afterwards")


def bad_file_on_worker(arm: Arm) -> None:
    ctx = arm.with_table(arm.context())
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer while the files are whole")
    bad = arm.parquet() / "2.parquet"
    whole = bad.read_bytes()
    fresh = arm.with_table(arm.context())
    bad.write_bytes(whole[:200] + bytes(200) + whole[400:])
    try:
        arm.figure["damaged"] = short(
            arm.raises(lambda: fresh.sql("SELECT sum(v), sum(k) FROM t").collect(), "a damaged file"), 400
        )
        bad.unlink()
        arm.figure["removed"] = short(
            arm.raises(lambda: fresh.sql("SELECT sum(v), sum(k) FROM t").collect(), "a removed file", "2.parquet"), 400
        )
    finally:
        bad.write_bytes(whole)
    arm.equal(
        arm.with_table(arm.context()).sql("SELECT count(*) AS n FROM t").to_pydict(), {"n": [ROWS]}, "the next query"
    )


def other_engine(arm: Arm) -> None:
    import http.server

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    ctx = arm.with_table(arm.context(workers=[url, url.replace("127.0.0.1", "localhost")]))
    _timed_failure(
        arm, lambda: ctx.sql(SQL).collect(), "a web server instead of a worker", str(server.server_port), within=30
    )
    server.shutdown()
