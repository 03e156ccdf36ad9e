"""Finding generated data: where it lives, and the record that the rest of the project uses to refer to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from tpch.manifest import Manifest, check_files, read_manifest
from tpch.scale import TABLES, ScaleFactor, check_scale_factor

DATA_ENV = "DF_STRATEGIES_DATA"
"""Environment variable that moves the data root."""


@dataclass(frozen=True)
class DataSet:
    """One generated scale factor.

    `tables` maps each table to its folder of Parquet files, `rows` to its number of rows. `fingerprint` is a SHA-256
    (hex) that is equal exactly when all files are equal byte by byte.
    """

    sf: ScaleFactor
    root: Path
    tables: dict[str, Path]
    rows: dict[str, int]
    fingerprint: str
    bytes: int
    generator: str

    @property
    def folder(self) -> Path:
        """Folder that holds the table folders and the manifest."""
        return sf_folder(self.root, self.sf)


def data_root(root: Path | None = None) -> Path:
    """Absolute data root: `root` if given, else `DF_STRATEGIES_DATA`, else `data` in the checkout or current folder."""
    if root is not None:
        return root.expanduser().resolve()
    given = os.environ.get(DATA_ENV)
    if given:
        return Path(given).expanduser().resolve()
    checkout = Path(__file__).resolve().parent.parent
    base = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return base / "data"


def sf_folder(root: Path, sf: str) -> Path:
    """Folder of one scale factor below the data root."""
    return root / "tpch" / f"sf{sf}"


def load_data(sf: str, root: Path | None = None, *, verify: bool = False) -> DataSet:
    """Return data generated before, after comparing sizes and footers with the manifest (all bytes with `verify`).

    Raises:
        UserError: unknown scale factor, no data for it, or files that differ from the manifest.
    """
    known = check_scale_factor(sf)
    base = data_root(root)
    folder = sf_folder(base, known)
    if not folder.exists():
        msg = f"no data for SF{known} in {folder}: run `df-strategies data --sf {known}`"
        raise UserError(msg)
    manifest = read_manifest(folder)
    if manifest.sf != known:
        msg = f"{folder} holds SF{manifest.sf}, expected SF{known}: rename or remove it"
        raise UserError(msg)
    check_files(folder, manifest, full=verify)
    return describe(base, manifest)


def describe(root: Path, manifest: Manifest) -> DataSet:
    """Return the `DataSet` of a manifest whose files were checked."""
    sf = check_scale_factor(manifest.sf)
    return DataSet(
        sf=sf,
        root=root,
        tables={table: sf_folder(root, sf) / table for table in TABLES},
        rows=manifest.rows(),
        fingerprint=manifest.fingerprint,
        bytes=manifest.total_bytes(),
        generator=manifest.generator,
    )
