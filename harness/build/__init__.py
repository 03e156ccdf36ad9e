"""Make the three strategies and the native binary from this checkout: fetch, generate, compile, cache.

`ensure_wheels` is what the rest of the harness calls. Nothing here runs a query, and nothing is committed by it: the
upstream source is fetched from the package registry, checked against a pinned hash and kept in a cache folder outside
the repository. It may import `harness.errors`, `harness.model` and `harness.settings` only.
"""

from __future__ import annotations

from harness.build.artifacts import Artifact, BuildRecord
from harness.build.build import ensure_wheels
from harness.build.hashing import lock_hash, source_hash, strategy_hash
from harness.build.paths import STRATEGIES, TARGETS

__all__ = [
    "STRATEGIES",
    "TARGETS",
    "Artifact",
    "BuildRecord",
    "ensure_wheels",
    "lock_hash",
    "source_hash",
    "strategy_hash",
]
