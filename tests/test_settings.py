"""Where things go that may be made again: one answer, whoever asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.build.paths import target_dir
from harness.environments import cache_root as of_environments
from harness.settings import cache_root

NAME = "datafusion-strategies"


@pytest.mark.parametrize(
    ("given", "xdg", "expected"),
    [
        (None, None, f"~/.cache/{NAME}"),
        (None, "", f"~/.cache/{NAME}"),
        (None, "relative", f"~/.cache/{NAME}"),
        (None, "/xdg", f"/xdg/{NAME}"),
        ("/own", "/xdg", "/own"),
        ("~/own", None, "~/own"),
        ("", "/xdg", f"/xdg/{NAME}"),
    ],
)
def test_one_cache_for_builds_and_environments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None, xdg: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    for name, value in (("DF_STRATEGIES_CACHE", given), ("XDG_CACHE_HOME", xdg)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    folder = Path(expected.replace("~", str(tmp_path)))
    assert cache_root() == folder
    assert of_environments() == folder
    assert target_dir() == folder / "target"


def test_a_relative_name_is_below_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DF_STRATEGIES_CACHE", "cache")
    assert cache_root() == tmp_path / "cache"
