"""What the factories of all strategies share: `make_context` takes one flat dictionary of settings."""

from __future__ import annotations

from collections.abc import Mapping

from .spec import PREFIX

__all__ = ["split_config"]


def split_config(config: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the session's settings and the distributed planner's, which go to different places.

    Args:
        config: settings by full key, for example `datafusion.execution.batch_size` or `distributed.compression`.
    """
    distributed = {key: value for key, value in config.items() if key.startswith(PREFIX)}
    session = {key: value for key, value in config.items() if not key.startswith(PREFIX)}
    return session, distributed
