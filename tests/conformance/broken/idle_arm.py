"""An arm that takes worker URLs and never uses them: right answers, all of them from the coordinator."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from datafusion import SessionConfig, SessionContext


def make_context(config: dict[str, str], workers: list[str]) -> SessionContext:
    return SessionContext(
        SessionConfig({key: value for key, value in config.items() if not key.startswith("distributed.")})
    )


def worker_status(urls: list[str]) -> list[dict[str, Any]]:
    statuses = []
    for url in urls:
        with urllib.request.urlopen(url + "/status", timeout=10) as answer:
            statuses.append({"bytes_out": 0, **json.load(answer)})
    return statuses
