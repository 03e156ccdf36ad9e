"""The Python that users see is typed: mypy --strict over the generated packages' own files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from build_helpers import REPOSITORY
from harness.build.generate import generated_tree, own_files, shared_files, sync
from harness.build.overlay import load_overlay
from harness.build.paths import OWN_PACKAGES, STRATEGIES

pytest.importorskip("mypy", reason="mypy is in the lint environment")

# Upstream's own files are not strict; what they declare is used, what they lack is not our finding.
CONFIG = """
[mypy]
strict = True
python_version = 3.10
follow_imports = silent
disallow_untyped_calls = False
warn_unused_ignores = False
allow_untyped_decorators = True
disallow_subclassing_any = False
cache_dir = {cache}

[mypy-pyarrow.*,datafusion._internal.*,datafusion_external._internal.*,polars.*,pandas.*]
ignore_missing_imports = True
follow_imports = skip
"""


@pytest.mark.parametrize("name", STRATEGIES)
def test_own_files_are_strictly_typed(name: str, tmp_path: Path) -> None:
    sync(tmp_path / "tree", generated_tree(REPOSITORY, name))
    package = tmp_path / "tree" / "python" / OWN_PACKAGES[name]
    if name == "inline":
        new = load_overlay(REPOSITORY / "strategies" / "inline" / "overlay").new_files
        prefix = f"python/{OWN_PACKAGES[name]}/"
        own = {path[len(prefix) :] for path in new if path.startswith(prefix)} | shared_files(REPOSITORY, name).keys()
    else:
        own = set(own_files(REPOSITORY, name))
    # `_internal.py` replaces itself by the native module, which has no types.
    own -= {"_internal.py"} | {path.removesuffix("i") for path in own if path.endswith(".pyi")}
    files = sorted(str(package / path) for path in own if path.endswith((".py", ".pyi")))
    config = tmp_path / "mypy.ini"
    config.write_text(CONFIG.format(cache=tmp_path / "cache"))
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), *files]
    done = subprocess.run(
        command, cwd=tmp_path / "tree" / "python", capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
