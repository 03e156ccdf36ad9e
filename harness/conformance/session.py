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
from harness.child.outcome import first_line
from harness.conformance.arm_site import Site
from harness.conformance.model import Check, ConformanceFile, ConformanceResult
from harness.conformance.registry import load_expected, load_registry
from harness.conformance.runner import run_checks, shape
from harness.environments import prepare
from harness.errors import UserError
from harness.settings import cache_root

DEFAULT_ARMS = ("local", "inline", "external", "decorator")

FILE_NAME = "conformance.json"


def check_arms(
    checks: Sequence[Check], names: Sequence[str], *, arm_files: Sequence[Path] = (), wheels: Path | None = None,
    out: Path | None = None, add: bool = False, selection: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[ConformanceFile, Path]:  # fmt: skip
    """Run checks on arms and write the outcomes; returns them and the path of the file.

    `add` keeps what the file already says of other checks and arms, as long as the arm still has the same wheel.

    Raises:
        UserError: an arm or a file does not exist, or `out` cannot be written.
        HarnessFault: something cannot be built or installed.
    """
    registry = load_registry()
    expected = load_expected(registry)
    path = output_path(out)
    before = read(path) if add and path.is_file() else None
    chosen = _arms(names, arm_files)
    with open_sites(chosen, path.parent / "logs", wheels=wheels, say=say) as (keeper, sites):
        made = {site.arm.name: site.environment.wheel_sha256 for site in sites}
        kept = _kept(before, checks, made, say)
        wheels_of = {**(before.wheels if before is not None else {}), **made}

        def shaped(results: Sequence[ConformanceResult], *, stopped: bool) -> ConformanceFile:
            ran = {result.check for result in (*kept, *results)} | {check.id for check in checks}
            rows = [check for check in registry if check.id in ran] if before is not None else checks
            marked = {**(selection or {}), **({"stopped_early": True} if stopped else {})}
            return shape(rows, [*kept, *results], expected, marked, wheels_of)

        results = run_checks(
            checks, sites, keeper, path.parent, expected=expected, earlier=kept, say=say,
            so_far=lambda found: write(shaped(found, stopped=True), path),
        )  # fmt: skip
    done = shaped(results, stopped=False)
    write(done, path)
    return done, path


def _kept(
    before: ConformanceFile | None, checks: Sequence[Check], made: Mapping[str, str | None], say: Callable[[str], None]
) -> list[ConformanceResult]:
    """Outcomes of an earlier run that still hold: other checks, or other arms; never those of another wheel."""
    if before is None:
        return []
    for name, wheel in made.items():
        if before.wheels.get(name, wheel) != wheel:
            say(f"{name}: earlier outcomes are dropped, they are of another wheel")
    again = {check.id for check in checks}
    return [
        result
        for result in before.results
        if result.arm not in made or (before.wheels.get(result.arm) == made[result.arm] and result.check not in again)
    ]


def read(path: Path) -> ConformanceFile:
    """Read a file that this module wrote.

    Raises:
        UserError: it holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        # `ok` follows from the problems.
        return ConformanceFile.model_validate({key: value for key, value in data.items() if key != "ok"})
    except (OSError, ValueError, AttributeError) as error:
        found = first_line(str(error))
        msg = f"{path} holds no outcomes of `df-strategies check` ({found}): remove it, or leave out --add"
        raise UserError(msg) from error


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
    built = build_wheels(arms, wheels)
    environments = [prepare(arm, built, say=say) for arm in arms]
    with Keeper() as keeper:
        sites = [Site(keeper, arm, env, logs / arm.name) for arm, env in zip(arms, environments, strict=True)]
        try:
            yield keeper, sites
        finally:
            for site in sites:
                site.close()


def build_wheels(arms: Sequence[Arm], wheels: Path | None) -> dict[str, Path]:
    """What this repository builds for the arms, by build name; built where it is not there yet."""
    names = sorted({arm.environment.build for arm in arms if arm.environment and arm.environment.build})
    if not names:
        return {}
    from harness.build import ensure_wheels

    return {name: artifact.path for name, artifact in ensure_wheels(names, wheels_dir=wheels).items()}


def output_path(out: Path | None, name: str = FILE_NAME) -> Path:
    """Where the file goes: as told, into a folder as told, or into a new folder in the cache.

    Raises:
        UserError: it cannot be written there.
    """
    if out is None:
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        out = cache_root() / "conformance" / f"{stamp}-{os.getpid()}" / name
    path = out.resolve()
    path = path / name if path.is_dir() or path.suffix != ".json" else path
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
