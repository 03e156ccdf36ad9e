"""Where things are: the checkout, the cache folder, and the names of what can be built."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import UserError
from harness.settings import cache_root

STRATEGIES = ("inline", "external", "decorator")
"""The strategies, each a wheel, in the order in which the project tells its story."""

NATIVE = "native"
"""The Rust driver and worker without Python: a plain binary."""

TARGETS = (*STRATEGIES, NATIVE)
"""Everything that can be built by name."""

CRATES = {
    "inline": "datafusion-python-distributed",
    "external": "df-strategies-external",
    "decorator": "df-strategies-decorator",
    "native": "df-strategies-native",
}
"""Cargo package behind each target."""

DISTRIBUTIONS = {
    "inline": "datafusion",
    "external": "datafusion_external",
    "decorator": "datafusion_decorator",
}
"""Distribution name of each wheel, in the form that starts its file name."""

OWN_PACKAGES = {
    "inline": "datafusion/distributed",
    "external": "datafusion_external",
    "decorator": "datafusion_decorator",
}
"""Folder inside each wheel that holds this project's own Python files and the build record."""

NATIVE_BINARY = "df-strategies-native.exe" if os.name == "nt" else "df-strategies-native"

CHECKOUT_VARIABLE = "DF_STRATEGIES_CHECKOUT"


def checkout() -> Path:
    """Return the root of the source checkout.

    The harness may run from the checkout or from a wheel in a tox environment, so the working directory and its
    parents count too.

    Raises:
        UserError: no checkout is found.
    """
    named = os.environ.get(CHECKOUT_VARIABLE)
    if named:
        root = Path(named).resolve()
        if not _is_checkout(root):
            msg = f"{CHECKOUT_VARIABLE}={named} is not a checkout of this project (no Cargo.toml with strategies/)"
            raise UserError(msg)
        return root
    here = Path(__file__).resolve()
    cwd = Path.cwd().resolve()
    for candidate in (*here.parents, cwd, *cwd.parents):
        if _is_checkout(candidate):
            return candidate
    msg = (
        "the strategies are built from a source checkout, and none was found here; "
        f"run from inside one, set {CHECKOUT_VARIABLE}, or give prebuilt wheels with --wheels DIR"
    )
    raise UserError(msg)


def _is_checkout(root: Path) -> bool:
    return (root / "Cargo.toml").is_file() and (root / "strategies" / "inline").is_dir()


def target_dir() -> Path:
    """Return Cargo's target folder: one for all arms, because each copy would cost half an hour of compiling."""
    named = os.environ.get("CARGO_TARGET_DIR")
    return Path(named).resolve() if named else cache_root() / "target"


def strategy_dir(root: Path, name: str) -> Path:
    """Return the committed folder of a target."""
    return root / "shared_rust" / "native" if name == NATIVE else root / "strategies" / name


def generated_dir(root: Path, name: str) -> Path:
    """Return the git-ignored folder with the sources of one wheel."""
    return root / "strategies" / name / "generated"


def shared_python(root: Path) -> Path:
    """Return the folder of the Python files that each package gets a copy of."""
    return root / "shared_rust" / "bindings" / "python"


def check_names(names: list[str] | tuple[str, ...]) -> list[str]:
    """Return the target names without repeats, in a fixed order.

    Raises:
        UserError: a name is not one of `TARGETS`.
    """
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        msg = f"cannot build {', '.join(unknown)}: the targets are {', '.join(TARGETS)}"
        raise UserError(msg)
    return [name for name in TARGETS if name in names]
