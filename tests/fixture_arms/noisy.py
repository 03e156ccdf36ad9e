"""Prints on stdout from Python, through the file descriptor and from a child process, before it answers rightly."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from wrap import Context

print('{"ok": true, "note": "printed while importing"}')


def spoil(frame: Any) -> Any:
    print('{"ok": false}')
    sys.stdout.flush()
    os.write(1, b'{"ok": true}\n\x00\xff garbage without an end of line')
    subprocess.run(["echo", "from a child"], check=True)
    return frame.collect()


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    del workers
    return Context(config, spoil)
