"""Old run directories, read as if this version had written them: nothing on disk changes, nothing is guessed.

A migration turns the JSON of one version into that of the next; reading applies them in order. What an old run did not
record becomes null, or the one value that it can have had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.errors import UserError
from harness.model import SCHEMA_VERSION

Json = dict[str, Any]


def _manifest_1(data: Json) -> Json:
    """Version 1 knew neither cold runs nor throughput runs: every run was a warm timing run."""
    settings = {"cold": False, "streams": 0, **data["settings"]}
    return {**data, "settings": settings, "schema_version": 2}


def _sample_1(data: Json) -> Json:
    """Version 1 read no resources, and looked at the page cache of no run: null, not zero."""
    return {"batches": None, "cache": "hot", "residency": None, "processes": [], **data}


MANIFESTS: dict[int, Callable[[Json], Json]] = {1: _manifest_1}
SAMPLES: dict[int, Callable[[Json], Json]] = {1: _sample_1}
"""By the version that they start from; each leads to the next one."""


def read_version(data: object, name: str) -> int:
    """The schema version of a manifest.

    Raises:
        UserError: it has none that this version can read.
    """
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not min(MANIFESTS) <= version <= SCHEMA_VERSION:
        msg = (
            f"run {name} has schema version {version!r}, this version reads {min(MANIFESTS)} to {SCHEMA_VERSION}. "
            "Use the version of the harness that wrote it, or run again."
        )
        raise UserError(msg)
    return version


def migrate_manifest(data: Json, version: int) -> Json:
    """A manifest of `version` in the form of this version. Malformed input comes back as far as it got."""
    for step in range(version, SCHEMA_VERSION):
        if not isinstance(data.get("settings"), dict):
            return data
        data = MANIFESTS[step](data)
    return data


def migrate_sample(data: Json, version: int) -> Json:
    """A sample of a run of `version` in the form of this version."""
    for step in range(version, SCHEMA_VERSION):
        data = SAMPLES[step](data)
    return data
