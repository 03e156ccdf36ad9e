"""Area 35: who may use a worker, and what a worker may be made to do."""

from __future__ import annotations

import random
import socket
import subprocess
from typing import Any

from .kit import BY_KEY, Arm, expected_by_key, short

SQL = BY_KEY.format(table="t")
TOKEN = "sesame-7f3a"


def loopback_by_default(arm: Arm) -> None:
    with arm.worker() as worker:
        arm.check(worker.url.startswith("http://127.0.0.1:"), f"by default a worker listens at {worker.url}")
    command = arm.command(listen="0.0.0.0:0")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    arm.check(done.returncode != 0, "a worker listens on every address without any protection")
    arm.check(
        "insecure" in done.stderr and "Traceback" not in done.stderr, f"the refusal says: {short(done.stderr, 300)}"
    )
    arm.raises(
        lambda: arm.api.Worker("0.0.0.0").start(), "a Worker object on every address", "insecure", kinds=(ValueError,)
    )
    with arm.worker("--insecure", listen="0.0.0.0:0") as worker:
        arm.check(worker.url, "an explicit --insecure is not accepted")


def _answer(arm: Arm, urls: list[str], what: str, **options: Any) -> None:
    ctx = arm.with_table(arm.context(workers=urls, **options))
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), what)


def _refusal(arm: Arm, urls: list[str], what: str, *mentions: str, **options: Any) -> str:
    def run() -> object:
        return arm.with_table(arm.context(workers=urls, **options)).sql(SQL).to_pydict()

    return arm.raises(run, what, *mentions)


def token(arm: Arm) -> None:
    with arm.worker("--token", TOKEN) as one, arm.worker("--token", TOKEN) as two:
        urls = [one.url, two.url]
        _answer(arm, urls, "the answer with the token", token=TOKEN)
        arm.figure["without"] = _refusal(arm, urls, "no token", "token")
        arm.figure["wrong"] = _refusal(arm, urls, "a wrong token", "token", token="guess")
        arm.raises(lambda: arm.status(urls), "status without the token")
        told = list(arm.api.worker_status(urls, token=TOKEN))
        arm.check(sum(row["tasks_started"] for row in told) > 0, "the workers with a token saw no task")
        _answer(arm, urls, "the answer after the refusals", token=TOKEN)


def tls(arm: Arm) -> None:
    files = arm.given["tls"]
    flags = ("--tls-cert", files["server"], "--tls-key", files["server_key"], "--tls-ca", files["ca"])
    with arm.worker(*flags) as one, arm.worker(*flags) as two:
        urls = [one.url, two.url]
        arm.check(all(url.startswith("https://") for url in urls), f"URLs of workers with TLS: {urls}")
        _answer(arm, urls, "the answer over https", tls_ca=files["ca"])
        told = list(arm.api.worker_status(urls, tls_ca=files["ca"]))
        arm.check(sum(row["tasks_started"] for row in told) > 0, "the workers with TLS saw no task")
        arm.figure["foreign authority"] = _refusal(
            arm, urls, "a foreign authority", one.url.rpartition(":")[2], tls_ca=files["other_ca"]
        )
        plain = [url.replace("https", "http") for url in urls]
        arm.figure["plain http"] = _refusal(arm, plain, "plain http to a worker with TLS")


def mutual_tls(arm: Arm) -> None:
    files = arm.given["tls"]
    flags = ("--tls-cert", files["server"], "--tls-key", files["server_key"], "--tls-client-ca", files["ca"])
    with arm.worker(*flags) as one, arm.worker(*flags) as two:
        urls = [one.url, two.url]
        own = {"tls_ca": files["ca"], "tls_cert": files["client"], "tls_key": files["client_key"]}
        _answer(arm, urls, "the answer with a client certificate", **own)
        arm.figure["without"] = _refusal(arm, urls, "no client certificate", tls_ca=files["ca"])


def garbage_does_not_crash(arm: Arm) -> None:
    dice = random.Random(1612)
    connections = 0
    http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for url in arm.urls:
        host, port = url.removeprefix("http://").split(":")
        for start in (b"", http2, http2 + bytes.fromhex("000000040000000000"), b"GET / HTTP/1.1\r\n\r\n"):
            for _ in range(15):
                with socket.create_connection((host, int(port)), 5) as connection:
                    connection.settimeout(0.2)
                    try:
                        connection.sendall(start + dice.randbytes(dice.randrange(1, 4000)))
                        connection.recv(1000)
                    except OSError:
                        pass
                    connections += 1
    arm.figure["connections"] = connections
    ctx = arm.with_table(arm.context())
    arm.equal(ctx.sql(SQL).to_pydict(), expected_by_key(), "the answer after the garbage")
    arm.equal([row["pid"] for row in arm.status()], arm.pids, "the workers are the same processes")


def secret_not_shown(arm: Arm) -> None:
    with arm.worker("--token", TOKEN) as one, arm.worker("--token", TOKEN) as two:
        urls = [one.url, two.url]
        ctx = arm.with_table(arm.context(workers=urls, token=TOKEN))
        frame = ctx.sql(SQL)
        settings = ctx.sql("SELECT * FROM information_schema.df_settings").to_pydict()
        texts = {
            "repr(ctx)": repr(ctx), "repr(frame)": repr(frame), "EXPLAIN": str(ctx.sql(f"EXPLAIN {SQL}").to_pydict()),
            "df_settings": str(settings), "worker's log": one.said(), "plan": str(frame.execution_plan()),
            "error": _refusal(arm, [urls[0], "http://127.0.0.1:9"], "a dead worker", token=TOKEN),
        }  # fmt: skip
        shown = [name for name, text in texts.items() if TOKEN in text]
        arm.figure["searched"] = list(texts)
        arm.equal(shown, [], "places that show the token")
