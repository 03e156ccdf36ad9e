"""The command `df-strategies`: one module per command, found by its file name, imported when it is asked for.

A module here without a leading underscore defines `command` (a click command) and nothing that imports more than click
at module level: `--help` answers at once. Errors of ours end a command with one message and their exit code.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

EXIT_INTERRUPTED = 130
"""What a shell reports for a command that Ctrl-C ended."""

EPILOG = """\b
Exit codes: 0 ok, 1 regression or failed check, 2 usage, 3 not comparable, 4 fault of the harness, 130 interrupted.

\b
First steps:
  df-strategies doctor                  is this machine quiet enough to measure on?
  df-strategies data --sf 1             make the TPC-H tables (once)
  df-strategies run                     build, check and compare all three strategies
  df-strategies report latest           show the newest report
"""


class Commands(click.Group):
    """A group whose commands are the modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the modules, without those that start with an underscore."""
        del ctx
        return sorted(path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"harness.cli.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with near matches for a command that does not exist."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint} Commands: {', '.join(names)}.")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="datafusion-strategies", message="%(prog)s %(version)s")
def cli() -> None:
    """Three ways to run distributed DataFusion queries from Python, built on one engine and compared.

    An ARM is one thing under comparison: a strategy (inline, external, decorator), a baseline (local: stock datafusion
    on a single node; native: the same engine without Python) or the A/A arm, one strategy a second time, which
    shows what noise looks like on this machine. Every run writes a directory that is never changed afterwards.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; every error of ours is one message on stderr."""
    from harness.errors import EXIT_HARNESS_FAULT, UserError

    try:
        code = cli.main(args=list(argv) if argv is not None else None, prog_name="df-strategies", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UserError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as interrupt:
        # click turns a KeyboardInterrupt into its own Abort and keeps ours as the cause.
        path = getattr(interrupt, "path", None) or getattr(interrupt.__cause__, "path", None)
        hint = f" Go on with: df-strategies run --resume {path}" if path is not None else ""
        click.echo(f"\nStopped.{hint}", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; Python would complain once more while it closes stdout.
        sys.stderr.close()
        return 0
    except Exception:  # noqa: BLE001 - the last line of defence
        import traceback

        traceback.print_exc()
        click.echo("Error: this is a fault of the harness, not of what you typed; please report it.", err=True)
        return EXIT_HARNESS_FAULT
    return code if isinstance(code, int) else 0
