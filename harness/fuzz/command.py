"""From what the command line says to a run: names, options and environments checked, defaults filled in."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from harness.arms import Arm, all_arms, select_arms
from harness.child.outcome import first_line
from harness.environments import ArmEnvironment, prepare
from harness.errors import UserError
from harness.fuzz.corpus import corpus_case, load_case, load_corpus, write_case
from harness.fuzz.model import Finding, FuzzResult, FuzzSettings
from harness.fuzz.options import ALWAYS_DISTRIBUTE, DISTRIBUTED_CHOICES
from harness.fuzz.rerun import Rerun, rerun
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
    before: FuzzResult | None = None


def read_result(path: Path) -> FuzzResult:
    """Read the file of an earlier run, to go on with it.

    Raises:
        UserError: it is missing, or holds something else.
    """
    try:
        return FuzzResult.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        msg = f"--resume {path}: no result of `df-strategies fuzz --out` ({first_line(str(error))})"
        raise UserError(msg) from error


def fuzz(
    request: Request, *, say: Callable[[str], None], found: Callable[[Finding], None],
    checkpoint: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:  # fmt: skip
    """Prepare the arms and run. `checkpoint` is given the result so far after every batch.

    Raises:
        UserError: an unknown arm or option, or an arm that cannot be made.
    """
    known = all_arms(list(request.arm_files))
    names = request.before.settings.arms if request.before is not None else request.arms
    arms = select_arms(list(dict.fromkeys(names)), known)
    oracle = select_arms([request.oracle], known)[0]
    settings = _settings(request, arms)
    environments = environments_for([*arms, oracle], request.wheels, say)

    def keep(finding: Finding) -> None:
        found(finding)
        if request.keep is not None:
            request.keep.mkdir(parents=True, exist_ok=True)
            case = corpus_case(finding, finding.signature, "see a rerun", finding.reason, [])
            write_case(case, request.keep / f"{finding.arm}-{finding.seed.replace('/', '-')}.toml")

    return run_fuzz(
        settings, arms, oracle, environments, before=request.before, say=say, found=keep, checkpoint=checkpoint
    )


def _settings(request: Request, arms: list[Arm]) -> FuzzSettings:
    """What was asked for; of a run that goes on only the limits may change, the queries are those of its seed.

    Raises:
        UserError: the seed or an option of a run that goes on was given again.
    """
    given = {key: value for key, value in request.given.items() if value is not None}
    if request.before is None:
        own = {"arms": tuple(arm.name for arm in arms), "distributed_config": _overrides(request.overrides)}
        return FuzzSettings.model_validate({"seed": DEFAULT_SEED, **given, **own})
    if request.overrides or given.get("seed", request.before.settings.seed) != request.before.settings.seed:
        msg = "--resume goes on with the seed and the options of its file: leave out --seed and --set"
        raise UserError(msg)
    if given.get("queries", request.before.settings.queries) < request.before.settings.queries:
        msg = (
            f"--queries {given['queries']}: the run to go on with was for {request.before.settings.queries}; give more"
        )
        raise UserError(msg)
    # A time limit belongs to one sitting.
    return FuzzSettings.model_validate({**request.before.settings.model_dump(), "minutes": None, **given})


def rerun_corpus(
    paths: Sequence[Path], request: Request, *, say: Callable[[str], None], told: Callable[[Rerun], None]
) -> bool:
    """Run files of the corpus again (all of it when none is named); whether every case went as its file says.

    Raises:
        UserError: an unknown arm, or a file that is no case.
    """
    cases = {path.stem: load_case(path) for path in paths} or load_corpus()
    known = all_arms(list(request.arm_files))
    arms = select_arms(list(dict.fromkeys(request.arms)), known)
    oracle = select_arms([request.oracle], known)[0]
    right = True
    for done in rerun(cases, arms, oracle, environments_for([*arms, oracle], request.wheels, say)):
        told(done)
        right = right and done.as_expected
    return right


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
