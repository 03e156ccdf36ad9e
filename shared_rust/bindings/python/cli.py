"""Command line of the package: run a worker, ask workers how they are."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from .spec import check_url
from .status import build_info, worker_status
from .worker import Worker

__all__ = ["main"]

PACKAGE = __package__
TOKEN_VARIABLE = "DATAFUSION_DISTRIBUTED_TOKEN"  # noqa: S105 - the name of a variable, not a token

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2

PARENT_POLL_S = 1.0
WAIT_SLICE_S = 0.2
STOP_MARGIN_S = 2.0
"""Seconds beyond the time to drain for closing connections."""

DESCRIPTION = "Workers for distributed DataFusion queries."

WORKER_HELP = f"""\
Run a worker until it is stopped. A worker executes stages of queries that coordinators (sessions made with this
package) send it, and streams the results to the next stage.

The first line on standard output is a JSON object with `url`, `pid` and `fingerprint`; logs go to standard error.
SIGTERM or Ctrl-C stops it: no new tasks, running ones get their time to finish, exit code 0. A second signal ends it
at once.

examples:
  python -m {PACKAGE} worker                                   a free port on loopback
  python -m {PACKAGE} worker --listen 127.0.0.1:50051
  python -m {PACKAGE} worker --listen 0.0.0.0:50051 --tls-cert w.pem --tls-key w.key --token-file token
  python -m {PACKAGE} worker --init my_setup:prepare           run your own set-up first

security:
  Whoever can reach a worker can run queries on it and read what it can read, so it listens on loopback unless told
  otherwise. Other addresses need a token or client certificates, or --insecure. A token without TLS can be overheard.
  --allow-python-udfs lets callers run any Python code here. Give it only when every caller is trusted.

exit codes:
  0 stopped as asked   1 the address is in use or serving failed   2 bad arguments
"""

STATUS_HELP = f"""\
Ask workers for their counters and print one JSON object per line. Exit code 1 when one of them does not answer.

example:
  python -m {PACKAGE} status http://127.0.0.1:50051 http://127.0.0.1:50052
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and where help is, instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"error: {message}\nsee: {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog=f"python -m {PACKAGE}", description=DESCRIPTION, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    worker = commands.add_parser("worker", help="run a worker", description=WORKER_HELP, formatter_class=raw)
    add = worker.add_argument
    add("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default 127.0.0.1:0; port 0 takes a free one")
    add("--allow-python-udfs", action="store_true", help="run Python functions that callers send (any code!)")
    add(
        "--init", metavar="MODULE:FUNCTION", help="call this before serving, with a WorkerSetup if it takes an argument"
    )
    _add_token(worker)
    add("--tls-cert", metavar="FILE", help="PEM certificate; with --tls-key the worker serves https")
    add("--tls-key", metavar="FILE", help="PEM key of the certificate")
    add("--tls-client-ca", metavar="FILE", help="PEM authority that callers' certificates must come from")
    add("--tls-ca", metavar="FILE", help="PEM authority of other workers' certificates (default: --tls-client-ca)")
    add("--insecure", action="store_true", help="permit a reachable address without token or client certificates")
    add("--memory-limit", type=int, metavar="BYTES", help="memory that queries may hold (no limit)")
    add("--drain-timeout", type=float, default=10.0, metavar="SECONDS", help="time for running tasks at the end (10)")
    add("--request-timeout", type=float, metavar="SECONDS", help="longest time for one request (no limit)")
    add("--max-message-bytes", type=int, metavar="BYTES", help="largest message accepted (no limit)")
    add("--stop-on-stdin-close", action="store_true", help="stop when standard input closes or the parent is gone")
    status = commands.add_parser("status", help="ask workers", description=STATUS_HELP, formatter_class=raw)
    status.add_argument("urls", nargs="+", metavar="URL")
    _add_token(status)
    status.add_argument("--tls-ca", metavar="FILE", help="PEM authority of the workers' certificates")
    status.add_argument("--tls-cert", metavar="FILE", help="PEM certificate of this client")
    status.add_argument("--tls-key", metavar="FILE", help="PEM key of the certificate")
    return parser


def _add_token(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--token-file", metavar="FILE", help=f"file with the bearer token; or set {TOKEN_VARIABLE}")
    group.add_argument("--token", metavar="TOKEN", help="the token itself; other users of this machine can see it")


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = build_parser().parse_args(argv)
    try:
        return _worker(options) if options.command == "worker" else _status(options)
    except (ValueError, TypeError) as error:
        return _fail(error, EXIT_USAGE)
    except (OSError, RuntimeError) as error:
        return _fail(error, EXIT_FAILED)


def _fail(error: BaseException, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; an IPv6 host stands in brackets.

    Raises:
        ValueError: another form, or a port that is not from 0 to 65535.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare and bare == host):
        msg = f"--listen expects HOST:PORT, for example 127.0.0.1:50051 or [::1]:50051, got {text!r}"
        raise ValueError(msg)
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        msg = f"--listen {text!r}: the port must be a number from 0 to 65535"
        raise ValueError(msg)
    return bare, int(port)


def read_token(options: argparse.Namespace) -> str | None:
    """Return the token from the command line, a file or the environment, in this order.

    Raises:
        ValueError: the file cannot be read or is empty.
    """
    if options.token is not None:
        return str(options.token)
    if options.token_file is not None:
        try:
            token = Path(options.token_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            msg = f"--token-file: cannot read {options.token_file!r} ({error.strerror})"
            raise ValueError(msg) from error
        if not token:
            msg = f"--token-file: {options.token_file!r} is empty"
            raise ValueError(msg)
        return token
    return os.environ.get(TOKEN_VARIABLE) or None


def _worker(options: argparse.Namespace) -> int:
    host, port = parse_listen(options.listen)
    token = read_token(options)
    worker = Worker(
        host,
        port,
        allow_python_udfs=options.allow_python_udfs,
        insecure=options.insecure,
        drain_timeout=options.drain_timeout,
        **_given(
            memory_limit=options.memory_limit,
            request_timeout=options.request_timeout,
            max_message_bytes=options.max_message_bytes,
            init=options.init,
            token=token,
            tls_cert=options.tls_cert,
            tls_key=options.tls_key,
            tls_client_ca=options.tls_client_ca,
            tls_ca=options.tls_ca,
        ),
    )
    stopping = _Stopping()
    worker.start()
    ready = {"url": worker.url, "pid": os.getpid(), "fingerprint": build_info()["fingerprint"]}
    print(json.dumps(ready), flush=True)
    if options.stop_on_stdin_close:
        threading.Thread(target=_watch_parent, args=(stopping,), daemon=True, name="watch-parent").start()
    while not stopping.asked and not worker.wait(WAIT_SLICE_S):
        pass
    if not stopping.asked:
        return _fail(RuntimeError("the worker stopped by itself, see the log above"), EXIT_FAILED)
    worker.stop(options.drain_timeout + STOP_MARGIN_S)
    return EXIT_OK


class _Stopping:
    """Remembers that somebody asked the worker to stop; the second signal ends the process at once."""

    def __init__(self) -> None:
        self.asked = False
        for name in ("SIGTERM", "SIGINT", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, self._signalled)

    def _signalled(self, number: int, _frame: Any) -> None:
        if self.asked:
            os._exit(128 + number)
        self.asked = True


def _watch_parent(stopping: _Stopping) -> None:
    """Ask for a stop when standard input ends or this process gets another parent.

    The second test covers a pipe that a forked sibling still holds open. (A death signal from the kernel would do too,
    but it fires when the thread that started us ends, not the process.)
    """
    parent = os.getppid()
    descriptor = sys.stdin.fileno()
    while not stopping.asked:
        if os.name == "nt":  # pragma: no cover - select takes no pipes there
            ended = not os.read(descriptor, 4096)
        else:
            readable, _, _ = select.select([descriptor], [], [], PARENT_POLL_S)
            ended = bool(readable) and not os.read(descriptor, 4096)
        if ended or os.getppid() != parent:
            stopping.asked = True


def _status(options: argparse.Namespace) -> int:
    token = read_token(options)
    urls = [check_url(url) for url in options.urls]
    client = _given(token=token, tls_ca=options.tls_ca, tls_cert=options.tls_cert, tls_key=options.tls_key)
    code = EXIT_OK
    for url in urls:
        try:
            print(json.dumps(worker_status([url], **client)[0]), flush=True)
        except (OSError, RuntimeError) as error:
            code = _fail(error, EXIT_FAILED)
    return code


def _given(**values: Any) -> Any:
    return {name: value for name, value in values.items() if value is not None}
