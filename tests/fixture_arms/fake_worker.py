"""A real process in the place of a worker: prints a ready line, counts tasks over HTTP, and misbehaves on request.

`python fake_worker.py [BEHAVIOUR]` with BEHAVIOUR one of: ready (default), silent, dies, usage, crash, nonsense,
bad-url, unreachable, deaf (ignores SIGTERM), chatty (floods stdout), family (starts a process of its own).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FINGERPRINT = os.environ.get("FIXTURE_WORKER_FINGERPRINT", os.environ.get("FIXTURE_FINGERPRINT", "f" * 64))
COUNTERS = {"tasks_started": 0, "tasks_finished": 0, "tasks_failed": 0, "tasks_running": 0, "bytes_out": 0}
TASK_BYTES = 1000
"""What a task says it has sent: a round figure, so that a test can tell it from anything else."""


class Handler(BaseHTTPRequestHandler):
    """`/task` runs one (empty) task, `/die` ends the process by SIGKILL, anything else tells the status."""

    def do_GET(self) -> None:
        if self.path == "/die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.path == "/task":
            COUNTERS["tasks_started"] += 1
            COUNTERS["tasks_finished"] += 1
            COUNTERS["bytes_out"] += TASK_BYTES
        body = json.dumps({"pid": os.getpid(), "build": {"fingerprint": FINGERPRINT}, **COUNTERS}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        del args


def fail_early(behaviour: str) -> None:
    if behaviour == "silent":
        time.sleep(3600)
    if behaviour == "dies":
        sys.exit("cannot bind 127.0.0.1:50051: address already in use")
    if behaviour == "usage":
        sys.stderr.write("unknown argument --listn\n")
        sys.exit(2)
    if behaviour == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "nonsense":
        print("Welcome to the worker!", flush=True)
        time.sleep(3600)
    if behaviour == "bad-url":
        print(json.dumps({"url": "ftp://127.0.0.1", "pid": os.getpid()}), flush=True)
        time.sleep(3600)
    if behaviour == "unreachable":
        print(json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid()}), flush=True)
        time.sleep(3600)


def flood() -> None:
    while True:
        sys.stdout.write("noise " * 1000 + "\n")
        time.sleep(0.001)


def main() -> None:
    behaviour = sys.argv[1] if len(sys.argv) > 1 else "ready"
    fail_early(behaviour)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if behaviour == "family":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        sys.stderr.write(f"child {child.pid}\n")
        sys.stderr.flush()
    ready = {"url": f"http://127.0.0.1:{server.server_port}", "pid": os.getpid(), "fingerprint": FINGERPRINT}
    print(json.dumps(ready), flush=True)
    if behaviour == "chatty":
        threading.Thread(target=flood, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
