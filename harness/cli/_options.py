"""Options that several commands share, each with one name, one text and one meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _folder_of_runs(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path:
    """The folder that was named, or the one that is used when none is."""
    del ctx, param
    from harness.settings import runs_root

    return value.resolve() if value else runs_root()


def folder_of_runs(flag: str) -> Callable[[Command], Command]:
    """A decorator: the folder of run directories under `flag`, as an argument `runs_folder` that is always a path."""
    return click.option(
        flag,
        "runs_folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        callback=_folder_of_runs,
        help="Folder of run directories.  [default: runs]",
    )


ARM_FILES = click.option(
    "--arm-file",
    "arm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file of one more arm; may be repeated. Arms in it take part without being named.",
)

WHEELS = click.option(
    "--wheels",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Use prebuilt wheels from DIR instead of compiling.",
)
