"""`df-strategies data`: make or check the TPC-H tables."""

from __future__ import annotations

import click


@click.command(
    epilog="""\b
Examples:
  df-strategies data                    scale factor 1, about 350 MB
  df-strategies data --sf 10 --verify   make SF10, or check every byte of it
  DF_STRATEGIES_DATA=/big/disk df-strategies data --sf 10
"""
)
@click.option("--sf", default="1", show_default=True, metavar="SF", help="Scale factor: 0.01, 0.1, 1 or 10.")
@click.option("--verify", is_flag=True, help="Hash every byte instead of comparing sizes and footers.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def command(sf: str, verify: bool, quiet: bool) -> None:
    """Make the TPC-H tables of one scale factor, or check those that are there.

    Tables are folders of several Parquet files, so that their scans can be split over tasks. An interrupted generation
    leaves nothing behind; data that differs from its manifest is reported, never used and never overwritten.
    """
    from tpch.generate import ensure_data

    data = ensure_data(sf, progress=not quiet, verify=verify)
    click.echo(f"SF{data.sf} in {data.folder}: {data.bytes / 1e6:,.0f} MB, fingerprint {data.fingerprint[:12]}")
    for table, rows in data.rows.items():
        click.echo(f"  {table:<10} {rows:>12,} rows")
