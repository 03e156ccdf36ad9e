"""`df-strategies worker`: start one worker of an arm by hand."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli._options import WHEELS


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  df-strategies worker decorator                              the arm's own command: a free port on loopback
  df-strategies worker native -- --listen 127.0.0.1:50051     everything behind -- goes to the worker
  df-strategies worker inline -- --help                       what this arm's worker can be told

\b
The first line on stdout is JSON with the url; SIGTERM drains the worker and ends it.
""",
)
@click.argument("arm")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--arm-file",
    "arm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file of one more arm.",
)
@WHEELS
def command(arm: str, arguments: tuple[str, ...], arm_files: tuple[Path, ...], wheels: Path | None) -> None:
    """Start a worker of ARM in its own environment and become it (the process is replaced)."""
    import os

    from harness.arms import all_arms, select_arms
    from harness.child.keeper import clean_environment
    from harness.environments import prepare
    from harness.errors import UserError
    from harness.runner.prepare import build

    chosen = select_arms([arm], all_arms(list(arm_files)))[0]
    if chosen.workers is None:
        msg = f"arm `{arm}` runs in one process and has no workers"
        raise UserError(msg)
    environment = prepare(
        chosen, build([chosen], str(wheels) if wheels else None), say=lambda text: click.echo(text, err=True)
    )
    words = [word.replace("{index}", "0") for word in environment.fill(chosen.workers.command)]
    if arguments:
        # The arm's own arguments stand behind the word `worker`; the user's take their place.
        words = [*(words[: words.index("worker") + 1] if "worker" in words else words), *arguments]
    os.execvpe(words[0], words, clean_environment(chosen.env))  # noqa: S606 - signals must reach the worker
