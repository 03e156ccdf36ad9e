"""Arms are data: one TOML file says what is installed, how it is driven and where it may differ.

A file is checked as a whole when it is loaded; whatever is wrong becomes one `UserError` that names the file, the
key, what was found and what was expected. Relative paths in it are relative to the file.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from harness.errors import UserError
from harness.model import Frozen
from harness.settings import WORKER_READY_TIMEOUT_S

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python
    import tomli as tomllib

ARM_SCHEMA_VERSION = 1
"""Version of the arm file. History: 1 = first published form."""

ARM_FILES = Path(__file__).parent / "arm_files"

STOCK_FACTORY = "stock"
"""Reserved factory: the child makes a plain `datafusion.SessionContext` itself."""

FINGERPRINT_KEY = "engine.fingerprint"
"""Key of a declared difference that excuses an arm from carrying the engine's build fingerprint."""

NAME = r"^[a-z][a-z0-9_-]{0,31}$"
FACTORY = r"^(stock|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"
MODULE = r"^[A-Za-z_][\w.]*$"
PINNED = r"^[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==[^\s*]+(\s*;.*)?$"
WHAT = r"^(query:q\d\d|form:(sql|dataframe))$"

EXPECTED = {
    NAME: "a short lower-case name (letters, digits, - and _)",
    FACTORY: "`module:function`, or `stock`",
    MODULE: "a dotted module name",
    PINNED: "an exactly pinned requirement such as `pyarrow==26.0.1`",
    WHAT: "`query:q01` to `query:q22`, `form:sql` or `form:dataframe`",
}
"""What a value that does not match its pattern should have been, in words."""

Name = Annotated[str, StringConstraints(pattern=NAME)]
Factory = Annotated[str, StringConstraints(pattern=FACTORY)]
Module = Annotated[str, StringConstraints(pattern=MODULE)]
Reason = Annotated[str, StringConstraints(min_length=10)]
Pinned = Annotated[str, StringConstraints(pattern=PINNED)]
Capability = Literal["sql", "dataframe", "explain", "distributed"]


class Environment(Frozen):
    """Where an arm's Python comes from, and what is in it."""

    source: Literal["registry", "checkout", "wheel", "interpreter"]
    """`registry`: pinned packages only. `checkout`: what this repository builds under `build`, plus packages.
    `wheel`: an existing wheel file, plus packages. `interpreter`: a Python that is there already, left as it is."""
    requirements: list[Pinned] = Field(default_factory=list)
    build: Name | None = None
    """Name that the build step knows: a strategy, or `native`."""
    wheel: str | None = None
    python: str | None = None
    """Interpreter to use as it is; `{harness_python}` is the one that runs the harness."""
    path: list[str] = Field(default_factory=list)
    """Folders put in front of the import path of the arm process."""

    @model_validator(mode="after")
    def _complete(self) -> Environment:
        needed = {"checkout": "build", "wheel": "wheel", "interpreter": "python", "registry": "requirements"}[
            self.source
        ]
        if not getattr(self, needed):
            msg = f"source `{self.source}` needs the key `{needed}`"
            raise ValueError(msg)
        for key in ("build", "wheel", "python"):
            if key != needed and getattr(self, key) is not None:
                msg = f"key `{key}` has no meaning with source `{self.source}`"
                raise ValueError(msg)
        if self.source == "interpreter" and self.requirements:
            msg = "an existing interpreter is left as it is: `requirements` cannot be installed into it"
            raise ValueError(msg)
        return self


class Driver(Frozen):
    """How queries reach the arm: a Python session factory, or a program that speaks the child protocol itself."""

    factory: Factory | None = None
    """`make_context(config: dict[str, str], workers: list[str]) -> SessionContext`."""
    probe: Module | None = None
    """Module with `worker_status(urls)`, `plan_info(df)` and `build_info()`; without it there is no proof of reach."""
    namespace: Module = "datafusion"
    """Package whose `col`, `lit` and `functions` the DataFrame queries use."""
    command: list[str] | None = None
    """Program and arguments; `{binary}` and `{python}` are filled in."""

    @model_validator(mode="after")
    def _one_way(self) -> Driver:
        if (self.factory is None) == (self.command is None):
            msg = "give exactly one of `factory` (Python) and `command` (any program)"
            raise ValueError(msg)
        return self


class Workers(Frozen):
    """How one worker process is started. Its first line on stdout is JSON with `url`, `pid` and `fingerprint`."""

    command: Annotated[list[str], Field(min_length=1)]
    """`{python}`, `{binary}` and `{index}` (0, 1, ...) are filled in."""
    ready_timeout_s: float = Field(default=WORKER_READY_TIMEOUT_S, gt=0)
    status: list[str] | None = None
    """Prints as JSON what one worker counts, for a driver that does not tell per query; `{url}` is filled in."""


class Difference(Frozen):
    """A setting in which the arm may differ from the others, and why that is fair or unavoidable."""

    key: str
    """Exact key, or a pattern with `*`, of the effective configuration; or `engine.fingerprint`."""
    reason: Reason


class Unsupported(Frozen):
    """Something the arm cannot do by design: recorded as `unsupported` with the reason, never run."""

    what: Annotated[str, StringConstraints(pattern=WHAT)]
    reason: Reason


class Arm(Frozen):
    """One thing under comparison. See the files in `harness/arm_files` for complete examples."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    title: str
    kind: Literal["strategy", "baseline", "aa", "external"]
    copies: list[Name] = Field(default_factory=list)
    """For `aa` only: the arm is the first of these that takes part in the run, a second time."""
    environment: Environment | None = None
    driver: Driver | None = None
    workers: Workers | None = None
    """Absent for an arm that runs in one process."""
    capabilities: list[Capability] = Field(default=["sql"])
    config: dict[str, str] = Field(default_factory=dict)
    """Session options that only this arm gets."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the arm's processes."""
    differences: list[Difference] = Field(default_factory=list)
    unsupported: list[Unsupported] = Field(default_factory=list)

    @model_validator(mode="after")
    def _complete(self) -> Arm:
        if self.kind == "aa":
            if not self.copies or self.environment or self.driver:
                msg = "kind `aa` needs `copies` and takes everything else from the arm that it copies"
                raise ValueError(msg)
            return self
        if self.copies:
            msg = "`copies` is for kind `aa` only"
            raise ValueError(msg)
        for key in ("environment", "driver"):
            if getattr(self, key) is None:
                msg = f"the section `[{key}]` is missing"
                raise ValueError(msg)
        if (self.workers is not None) != ("distributed" in self.capabilities):
            msg = "the section `[workers]` and the capability `distributed` belong together"
            raise ValueError(msg)
        return self

    @property
    def distributed(self) -> bool:
        """Whether the arm runs against worker processes."""
        return self.workers is not None

    def unsupported_reason(self, query: str, form: str) -> str | None:
        """Declared reason why this arm does not run `query` in `form`, or None."""
        for entry in self.unsupported:
            if entry.what in (f"query:{query}", f"form:{form}"):
                return entry.reason
        if form not in self.capabilities:
            return f"the arm declares no `{form}` capability"
        return None


def load_arm(path: Path) -> Arm:
    """Read and check one arm file.

    Raises:
        UserError: the file is missing, is not TOML, or does not describe an arm.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"arm file {path}: cannot be read ({error.strerror or error}). Give the path of a TOML file."
        raise UserError(msg) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"arm file {path}: not valid TOML: {error}"
        raise UserError(msg) from error
    version = data.get("schema")
    if version != ARM_SCHEMA_VERSION:
        msg = f"arm file {path}: key `schema` is {version!r}, expected {ARM_SCHEMA_VERSION}"
        raise UserError(msg)
    try:
        return Arm.model_validate(_resolve_paths(data, path.resolve().parent))
    except ValidationError as error:
        msg = f"arm file {path}: " + "; ".join(_describe(entry) for entry in error.errors())
        raise UserError(msg) from error


def _resolve_paths(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the paths of an arm file absolute, and fill in `{arm_dir}` and `{harness_python}` everywhere."""

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{arm_dir}", str(folder)).replace("{harness_python}", sys.executable)
        if isinstance(value, list):
            return [fill(item) for item in value]
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return value

    filled: dict[str, Any] = fill(data)
    environment = filled.get("environment")
    if isinstance(environment, dict):
        for key in ("wheel", "python"):
            if isinstance(environment.get(key), str):
                # Not `resolve()`: the python of a virtual environment is a link that must not be followed.
                environment[key] = str(folder / environment[key])
        if isinstance(environment.get("path"), list):
            environment["path"] = [str(folder / item) for item in environment["path"] if isinstance(item, str)]
    return filled


def _describe(entry: Any) -> str:
    """One pydantic complaint in words: key, found, expected."""
    key = ".".join(str(part) for part in entry["loc"]) or "file"
    kind = entry["type"]
    if kind == "missing":
        return f"key `{key}` is missing"
    if kind == "extra_forbidden":
        return f"key `{key}` is not known (misspelt?)"
    if kind == "value_error":
        return f"`{key}`: {str(entry['msg']).removeprefix('Value error, ')}"
    expected = str(entry["msg"])
    if kind == "string_pattern_mismatch":
        expected = EXPECTED.get(entry["ctx"]["pattern"], expected)
    elif kind == "string_too_short":
        expected = f"a sentence of at least {entry['ctx']['min_length']} characters that says why"
    return f"key `{key}` is {entry.get('input')!r}, expected {expected}"


def shipped_arms() -> dict[str, Arm]:
    """The arms that come with the project, by name."""
    return {arm.name: arm for arm in map(load_arm, sorted(ARM_FILES.glob("*.toml")))}


def all_arms(arm_files: list[Path]) -> dict[str, Arm]:
    """Shipped arms plus those of `--arm-file`.

    Raises:
        UserError: a file is wrong, or its name is taken.
    """
    arms = shipped_arms()
    for path in arm_files:
        arm = load_arm(path)
        if arm.name in arms:
            msg = f"arm file {path}: the name `{arm.name}` is taken by another arm. Choose another `name`."
            raise UserError(msg)
        arms[arm.name] = arm
    return arms


def select_arms(names: list[str], known: dict[str, Arm]) -> list[Arm]:
    """The named arms in the order given, an A/A arm bound to its original (`copies` then holds exactly that name).

    Raises:
        UserError: a name is unknown (near matches are shown), given twice, or an A/A arm has no original in the run.
    """
    if not names:
        msg = f"no arm given; expected one or more of: {', '.join(sorted(known))}"
        raise UserError(msg)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(f'`{item}`' for item in near)}?" if near else ""
            msg = f"unknown arm `{name}`.{hint} Known arms: {', '.join(sorted(known))}. Add one with --arm-file FILE."
            raise UserError(msg)
        if names.count(name) > 1:
            msg = f"arm `{name}` is given {names.count(name)} times; name it once (`aa` runs one arm a second time)"
            raise UserError(msg)
    return [_bind_copy(known[name], names, known) for name in names]


def _bind_copy(arm: Arm, names: list[str], known: dict[str, Arm]) -> Arm:
    if arm.kind != "aa":
        return arm
    original = next((name for name in arm.copies if name in names), None)
    if original is None:
        msg = (
            f"arm `{arm.name}` runs one of {', '.join(arm.copies)} a second time, but none of them is in this run "
            f"({', '.join(names)}). Add one, or leave `{arm.name}` out."
        )
        raise UserError(msg)
    taken = known[original].model_dump(by_alias=True, exclude={"name", "title", "kind", "copies"})
    # `model_construct` skips the check that an `aa` file itself carries nothing but `copies`.
    bound = Arm.model_validate({**taken, "name": arm.name, "title": arm.title, "kind": "baseline"})
    return bound.model_copy(update={"kind": "aa", "copies": [original], "title": f"{arm.title} ({original})"})


def parse_names(text: str) -> list[str]:
    """Split a comma-separated option value, dropping blanks."""
    return [part for part in re.split(r"[,\s]+", text.strip()) if part]
