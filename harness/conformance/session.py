"""From names of arms to a written `conformance.json`: build, environments, processes, file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.arms import Arm, all_arms, load_arm, select_arms
from harness.child.keeper import Keeper
from harness.conformance.arm_site import Site
from harness.conformance.model import Check, ConformanceFile
from harness.conformance.registry import load_expected, load_registry
from harness.conformance.runner import run_checks, shape
from harness.environments import prepare
from harness.errors import UserError
from harness.settings import cache_root

DEFAULT_ARMS = ("local", "inline", "external", "decorator")

FILE_NAME = "conformance.json"


def check_arms(
    checks: Sequence[Check], names: Sequence[str], *, arm_files: Sequence[Path] = (), wheels: Path | None = None,
    out: Path | None = None, selection: Mapping[str, Any] | None = None, say: Callable[[str], None] = lambda _: None,
) -> tuple[ConformanceFile, Path]:  # fmt: skip
    """Run checks on arms and write the outcomes; returns them and the path of the file.

    Raises:
        UserError: an arm or a file does not exist, or `out` cannot be written.
        HarnessFault: something cannot be built or installed.
    """
    expected = load_expected(load_registry())
    path = output_path(out)
    chosen = _arms(names, arm_files)
    with open_sites(chosen, path.parent / "logs", wheels=wheels, say=say) as (keeper, sites):
        results = run_checks(checks, sites, keeper, path.parent, expected=expected, say=say)
    done = shape(checks, results, expected, selection or {})
    write(done, path)
    return done, path


def _arms(names: Sequence[str], arm_files: Sequence[Path]) -> list[Arm]:
    given = list(names) + [name for path in arm_files if (name := load_arm(path).name) not in names]
    return select_arms(given or list(DEFAULT_ARMS), all_arms(list(arm_files)))


@contextlib.contextmanager
def open_sites(
    arms: Sequence[Arm], logs: Path, *, wheels: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[Keeper, list[Site]]]:
    """The arms with their environments, and the keeper of all processes; everything is gone at the end.

    Raises:
        UserError: an arm has no Python session.
        HarnessFault: something cannot be built or installed.
    """
    built = _build(arms, wheels)
    environments = [prepare(arm, built, say=say) for arm in arms]
    with Keeper() as keeper:
        sites = [Site(keeper, arm, env, logs / arm.name) for arm, env in zip(arms, environments, strict=True)]
        try:
            yield keeper, sites
        finally:
            for site in sites:
                site.close()


def _build(arms: Sequence[Arm], wheels: Path | None) -> dict[str, Path]:
    names = sorted({arm.environment.build for arm in arms if arm.environment and arm.environment.build})
    if not names:
        return {}
    from harness.build import ensure_wheels

    return {name: artifact.path for name, artifact in ensure_wheels(names, wheels_dir=wheels).items()}


def output_path(out: Path | None) -> Path:
    """Where the file goes: as told, into a folder as told, or into a new folder in the cache.

    Raises:
        UserError: it cannot be written there.
    """
    if out is None:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        out = cache_root() / "conformance" / f"{stamp}-{os.getpid()}" / FILE_NAME
    path = out.resolve()
    path = path / FILE_NAME if path.is_dir() or path.suffix != ".json" else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"--out {out}: cannot make the folder {path.parent}: {error.strerror}"
        raise UserError(msg) from error
    return path


def write(done: ConformanceFile, path: Path) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    text = json.dumps(done.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)
