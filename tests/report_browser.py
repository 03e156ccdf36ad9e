"""A headless Chromium over its debugging pipe, with nothing but the standard library.

The window of a headless Chromium is never narrower than 500 px; the pipe allows any width, and tells every console
message, exception and network request of a page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
START_TIMEOUT_S = 120.0
"""Seconds until the browser answers: a cold start on a loaded 2-core machine takes some 20."""


def find_chromium() -> str | None:
    """Path of a Chromium, or None. `DF_STRATEGIES_CHROMIUM` names one that is not on the path."""
    named = os.environ.get("DF_STRATEGIES_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab. `messages` collects what the page complains about, `requests` what it asks the network for."""

    def __init__(self, read: int, write: int) -> None:
        self.read, self.write = read, write
        self.buffer = b""
        self.number = 0
        self.session: str | None = None
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.loaded = False

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events that arrive meanwhile are noted."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith("Target."):
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self._next(START_TIMEOUT_S)
            if answer.get("id") == wanted:
                if "error" in answer:
                    message_ = f"{method}: {answer['error']}"
                    raise RuntimeError(message_)
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self, timeout: float) -> dict[str, Any]:
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                message = f"the browser did not answer within {timeout:g} s"
                raise TimeoutError(message)
            chunk = os.read(self.read, 1 << 16)
            if not chunk:
                message = "the browser closed the connection"
                raise ConnectionError(message)
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        kind, parameters = event.get("method"), event.get("params", {})
        if kind == "Page.loadEventFired":
            self.loaded = True
        elif kind == "Runtime.consoleAPICalled":
            self.messages.append(str(parameters["args"]))
        elif kind == "Runtime.exceptionThrown":
            self.messages.append(str(parameters["exceptionDetails"]))
        elif kind == "Log.entryAdded":
            self.messages.append(parameters["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Load a file at a width in CSS pixels and wait until it is drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.messages, self.requests, self.loaded = [], [], False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self.loaded:
            self._note(self._next(START_TIMEOUT_S))

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def key(self, name: str, code: int) -> None:
        """Press and release one key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)


@contextmanager
def browser(chromium: str, profile: Path) -> Iterator[Page]:
    """Start a Chromium with a fresh profile and end it, whatever happens."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars"
    command = f'exec "$0" {flags} --remote-debugging-pipe --user-data-dir="$1" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", command, chromium, str(profile)],
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    page = Page(from_read, to_write)
    try:
        yield page
    finally:
        os.close(to_write)
        os.close(from_read)
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
