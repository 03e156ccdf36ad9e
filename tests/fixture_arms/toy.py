"""A small distributed arm: a real session that tells real worker processes about each task over HTTP.

It exercises what the harness does with an arm that has workers (cluster, proof of reach, fingerprints, plans)
without an engine that takes half an hour to build. The workers are `fake_worker.py`.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from wrap import Context

FINGERPRINT = os.environ.get("FIXTURE_FINGERPRINT", "f" * 64)
TASKS_PER_QUERY = int(os.environ.get("FIXTURE_TASKS", "1"))


def call(url: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return dict(json.load(answer))


def make_context(config: dict[str, str], workers: list[str]) -> Context:
    def spoil(frame: Any) -> Any:
        for url in workers:
            for _ in range(TASKS_PER_QUERY):
                call(url, "/task")
        return frame.collect()

    return Context(config, spoil)


def worker_status(urls: list[str]) -> list[dict[str, Any]]:
    return [call(url, "/status") for url in urls]


def plan_info(df: Any) -> dict[str, Any]:
    return {"distributed": TASKS_PER_QUERY > 0, "stages": 2, "tasks": 3, "urls": [], "text": str(df.execution_plan())}


def build_info() -> dict[str, Any]:
    return {"fingerprint": FINGERPRINT, "source_hash": FINGERPRINT[:8], "rustc": "none", "profile": "toy"}
