"""`df-strategies doctor`: is this machine fit to measure on?"""

from __future__ import annotations

import click

MARKS = {"ok": "ok  ", "warning": "warn", "bad": "BAD "}


@click.command(
    epilog="""\b
Examples:
  df-strategies doctor                  before a run at SF1
  df-strategies doctor --sf 10 --strict exit 1 on warnings too, for scripts
"""
)
@click.option("--sf", default="1", show_default=True, help="Scale factor that the run will use.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
def command(sf: str, strict: bool) -> int:
    """Look at the machine for two seconds and say what would spoil the numbers.

    Checks cores, load, other busy processes, stolen time, CPU governor, CPU quota, clock source, memory, swap, disk
    space and file descriptors. Changes nothing.
    """
    from harness.errors import EXIT_OK, EXIT_REGRESSION
    from harness.machine import look

    findings = look(sf)
    for finding in findings:
        click.echo(f"{MARKS[finding.level]}  {finding.name:<18} {finding.found}")
        if finding.level != "ok":
            click.echo(f"      {'':<18} {finding.advice}")
    bad = [finding for finding in findings if finding.level == "bad" or (strict and finding.level == "warning")]
    warnings = sum(finding.level == "warning" for finding in findings)
    if bad:
        click.echo(f"Numbers from this machine would be spoilt by: {', '.join(finding.name for finding in bad)}.")
    elif warnings:
        click.echo(f"Fit to measure on, with {warnings} warning{'s' if warnings > 1 else ''}.")
    else:
        click.echo("Fit to measure on.")
    return EXIT_REGRESSION if bad else EXIT_OK
