"""From what the command line says to a run: names, options and environments checked, defaults filled in."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.arms import Arm, all_arms, select_arms
from harness.environments import ArmEnvironment, prepare
from harness.errors import UserError
from harness.fuzz.corpus import corpus_case, write_case
from harness.fuzz.model import Finding, FuzzResult, FuzzSettings
from harness.fuzz.options import ALWAYS_DISTRIBUTE, DISTRIBUTED_CHOICES
from harness.fuzz.run import run_fuzz
from harness.settings import DEFAULT_SEED


@dataclass(frozen=True)
class Request:
    """A run as asked for. `given` holds fields of `FuzzSettings`, None where the default is meant."""

    arms: tuple[str, ...]
    oracle: str = "local"
    arm_files: tuple[Path, ...] = ()
    wheels: Path | None = None
    keep: Path | None = None
    given: Mapping[str, int | float | None] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()


def fuzz(request: Request, *, say: Callable[[str], None], found: Callable[[Finding], None]) -> FuzzResult:
    """Prepare the arms and run.

    Raises:
        UserError: an unknown arm or option, or an arm that cannot be made.
    """
    known = all_arms(list(request.arm_files))
    arms = select_arms(list(dict.fromkeys(request.arms)), known)
    oracle = select_arms([request.oracle], known)[0]
    given = {key: value for key, value in request.given.items() if value is not None}
    settings = FuzzSettings.model_validate(
        {
            "seed": DEFAULT_SEED,
            **given,
            "arms": tuple(arm.name for arm in arms),
            "distributed_config": _overrides(request.overrides),
        }
    )
    environments = environments_for([*arms, oracle], request.wheels, say)

    def keep(finding: Finding) -> None:
        found(finding)
        if request.keep is not None:
            request.keep.mkdir(parents=True, exist_ok=True)
            case = corpus_case(finding, finding.signature, "see a rerun", finding.reason, [])
            write_case(case, request.keep / f"{finding.arm}-{finding.seed.replace('/', '-')}.toml")

    return run_fuzz(settings, arms, oracle, environments, say=say, found=keep)


def environments_for(arms: list[Arm], wheels: Path | None, say: Callable[[str], None]) -> dict[str, ArmEnvironment]:
    """The environment of every arm, built and installed where it is not there yet."""
    names = sorted({arm.environment.build for arm in arms if arm.environment and arm.environment.build})
    built: dict[str, Path] = {}
    if names:
        from harness.build import ensure_wheels

        built = {name: artifact.path for name, artifact in ensure_wheels(names, wheels_dir=wheels).items()}
    return {arm.name: prepare(arm, built, say=say) for arm in arms}


def _overrides(texts: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` options of the distributed planner."""
    known = (*DISTRIBUTED_CHOICES, *ALWAYS_DISTRIBUTE)
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("distributed."):
            near = difflib.get_close_matches(key, known, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            msg = f"--set {text!r}: expected KEY=VALUE with a key such as {known[0]}.{hint}"
            raise UserError(msg)
        found[key] = value
    return found
