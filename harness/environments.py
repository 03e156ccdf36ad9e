"""One virtual environment per arm, kept in a cache and reused as long as nothing that goes into it has changed.

An environment is known by the hash of its content: base interpreter, pinned requirements, bytes of the wheel. It counts
only once `complete.json` is in it, which is written last, under a lock: an interrupted installation is thrown away.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.arms import Arm, Environment
from harness.child.outcome import first_line
from harness.errors import HarnessFault, UserError
from harness.provenance import content_hash, file_hash
from harness.settings import cache_root

ENVIRONMENT_VERSION = 1
"""Part of every key; raised when the way of installing changes."""

COMPLETE = "complete.json"

INSTALL_TIMEOUT_S = 900.0
"""Seconds for one pip call: the largest wheel is 60 MB, so this is room for a slow network, not for a build."""

KEY_LENGTH = 16
"""Hex digits of the key in folder names."""


@dataclass(frozen=True)
class ArmEnvironment:
    """What an arm runs in. `binary` is set for an arm without Python."""

    python: Path | None
    binary: Path | None
    key: str | None
    wheel: Path | None
    wheel_sha256: str | None

    def fill(self, command: list[str]) -> list[str]:
        """Fill `{python}` and `{binary}` in a command of an arm file.

        Raises:
            UserError: the command asks for what this environment does not have.
        """
        values = {"{python}": self.python, "{binary}": self.binary}
        filled = []
        for part in command:
            for mark, value in values.items():
                if mark in part:
                    if value is None:
                        msg = (
                            f"the command {' '.join(command)!r} asks for {mark}, which this kind of environment has not"
                        )
                        raise UserError(msg)
                    part = part.replace(mark, str(value))  # noqa: PLW2901
            filled.append(part)
        return filled


def prepare(
    arm: Arm, built: Mapping[str, Path], *, cache: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> ArmEnvironment:
    """The environment of `arm`, made if it is not in the cache yet.

    Args:
        arm: a complete arm (an A/A arm already bound to its original, with which it shares the environment).
        built: wheel or binary per build name, for arms whose source is `checkout`.
        cache: folder for environments; the default is below `cache_root()`.
        say: told in a few words what takes time.

    Raises:
        UserError: a wheel or interpreter that the arm file names is not there.
        HarnessFault: the environment cannot be made; quotes what pip said.
    """
    environment = arm.environment
    if environment is None:
        msg = f"arm `{arm.name}` has no environment"
        raise HarnessFault(msg)
    if environment.source == "interpreter":
        return _interpreter(arm, environment)
    wheel = _wheel(arm, environment, built)
    if wheel is not None and wheel.suffix != ".whl":
        return ArmEnvironment(python=None, binary=wheel, key=None, wheel=wheel, wheel_sha256=file_hash(wheel))
    digest = file_hash(wheel) if wheel else None
    key = environment_key(environment, digest)
    folder = (cache or cache_root() / "environments") / f"{environment.build or arm.name}-{key[:KEY_LENGTH]}"
    with _locked(folder):
        if not (folder / COMPLETE).is_file():
            say(f"{arm.name}: installing its environment")
            _install(arm, environment, wheel, folder)
    binary = folder / "bin" / "df-strategies-native"
    return ArmEnvironment(
        python=folder / "bin" / "python",
        binary=binary if binary.exists() else None,
        key=key,
        wheel=wheel,
        wheel_sha256=digest,
    )


def environment_key(environment: Environment, wheel_sha256: str | None) -> str:
    """Hash of everything that goes into an environment."""
    return content_hash(
        {
            "version": ENVIRONMENT_VERSION,
            "python": [platform.python_version(), sys.implementation.cache_tag, str(Path(sys.executable).resolve())],
            "machine": platform.machine(),
            "requirements": sorted(environment.requirements),
            "wheel": wheel_sha256,
        }
    )


def _interpreter(arm: Arm, environment: Environment) -> ArmEnvironment:
    python = Path(environment.python or "")
    if not (python.is_file() and os.access(python, os.X_OK)):
        msg = f"arm `{arm.name}`: the interpreter {python} is not there or cannot be run (key `environment.python`)"
        raise UserError(msg)
    return ArmEnvironment(python=python, binary=None, key=None, wheel=None, wheel_sha256=None)


def _wheel(arm: Arm, environment: Environment, built: Mapping[str, Path]) -> Path | None:
    if environment.source == "registry":
        return None
    if environment.source == "checkout":
        wheel = built.get(environment.build or "")
        if wheel is None:
            msg = f"arm `{arm.name}`: nothing was built under the name `{environment.build}`"
            raise HarnessFault(msg)
    else:
        wheel = Path(environment.wheel or "")
    if not wheel.is_file():
        msg = f"arm `{arm.name}`: the wheel {wheel} is not there. Build it, or correct `environment.wheel`."
        raise UserError(msg)
    return wheel


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One harness at a time makes an environment; a second one waits and finds it done."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stream = folder.with_name(folder.name + ".lock").open("a")
    except OSError as error:
        msg = (
            f"cannot write to the cache {folder.parent} ({error.strerror}). Set DF_STRATEGIES_CACHE to another folder."
        )
        raise UserError(msg) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _install(arm: Arm, environment: Environment, wheel: Path | None, folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        _run(arm, [sys.executable, "-m", "venv", str(folder)], "make a virtual environment")
        pip = [
            str(folder / "bin" / "python"),
            "-I",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "install",
            "-q",
        ]
        if environment.requirements:
            _run(arm, [*pip, "--only-binary", ":all:", *environment.requirements], "install its requirements")
        if wheel is not None:
            # `--no-deps`: what the wheel needs is pinned above, and a resolver must not replace it.
            _run(arm, [*pip, "--no-deps", str(wheel)], f"install {wheel.name}")
        marker = {"arm": arm.name, "requirements": environment.requirements, "wheel": wheel.name if wheel else None}
        (folder / COMPLETE).write_text(json.dumps(marker, indent=2), encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        space = " No space left there." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        msg = f"arm `{arm.name}`: cannot make its environment in {folder}: {error.strerror}.{space}"
        raise HarnessFault(msg) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(arm: Arm, command: list[str], what: str) -> None:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S, env=environment
        )
    except subprocess.TimeoutExpired as error:
        msg = f"arm `{arm.name}`: could not {what} within {INSTALL_TIMEOUT_S:g} s. Is the package registry reachable?"
        raise HarnessFault(msg) from error
    if done.returncode != 0:
        said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said[-3:]
        hint = " Install the package that provides it (Debian: python3-venv)." if "ensurepip" in done.stdout else ""
        msg = f"arm `{arm.name}`: could not {what}: {' / '.join(first_line(line) for line in errors[:3])}.{hint}"
        raise HarnessFault(msg)
