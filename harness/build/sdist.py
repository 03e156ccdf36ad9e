"""The pinned source distribution of datafusion-python: fetched once, checked, read into memory.

A source tree is a mapping of POSIX path to bytes everywhere in this package, so that the overlay, the patch and the
tests work without touching a disk.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

from harness.errors import HarnessFault, UserError
from harness.settings import cache_root

VERSION = "55.0.0"
"""Release of datafusion-python that the strategies are built from and compared with."""

SDIST_NAME = f"datafusion-{VERSION}.tar.gz"

SDIST_SHA256 = "12ac1a7666cd61533f610d38173347aa42189b7a1a78c78bb166052b680ffb6d"
"""SHA-256 of the sdist as the package registry lists it."""

Tree = dict[str, bytes]

FETCH_TIMEOUT_S = 600


def sdist_path() -> Path:
    """Return where the sdist is cached."""
    return cache_root() / "sdist" / SDIST_NAME


def ensure_sdist() -> Path:
    """Return the cached sdist, fetching it from the package registry when it is missing or damaged.

    Raises:
        UserError: the registry cannot be reached or serves a file with another hash.
    """
    path = sdist_path()
    if path.is_file() and _sha256(path) == SDIST_SHA256:
        return path
    # Imported here: the toolchain module knows the build environment, which only a fetch needs.
    from harness.build.toolchain import build_environment, ensure_build_env

    python = ensure_build_env()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch-") as temporary:
        # The build environment supplies the backend that pip asks for the sdist's metadata.
        environment = build_environment()
        # The interpreter description that it names is written when Cargo is about to run: on a new machine, later than
        # this, and maturin fails on a name without a file.
        environment.pop("PYO3_CONFIG_FILE", None)
        command = [str(python), "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        command += ["--no-build-isolation", "--dest", temporary, f"datafusion=={VERSION}"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S
        )
        fetched = Path(temporary) / SDIST_NAME
        if done.returncode != 0 or not fetched.is_file():
            tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
            msg = (
                f"cannot fetch {SDIST_NAME} with `pip download`: is the package registry reachable? "
                f"A copy placed at {path} is used as well.\n{tail}"
            )
            raise UserError(msg)
        verify_sdist(fetched)
        fetched.replace(path)
    return path


def verify_sdist(path: Path) -> None:
    """Check the hash of a downloaded sdist.

    Raises:
        UserError: it is not the pinned one.
    """
    found = _sha256(path)
    if found != SDIST_SHA256:
        msg = f"{path.name} has SHA-256 {found}, expected {SDIST_SHA256}: not the pinned source, refusing to build it"
        raise UserError(msg)


def read_sdist(path: Path | None = None) -> Tree:
    """Return the files of the sdist by path below its top folder.

    Raises:
        UserError: the hash differs from the pinned one.
        HarnessFault: the archive holds something other than files below one folder.
    """
    path = path or ensure_sdist()
    verify_sdist(path)
    tree: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes()), mode="r:gz") as archive:
        for member in archive.getmembers():
            if not member.isfile():
                continue
            top, _, relative = member.name.partition("/")
            content = archive.extractfile(member)
            if top != f"datafusion-{VERSION}" or not relative or ".." in relative.split("/") or content is None:
                msg = f"{path.name}: unexpected member {member.name!r}"
                raise HarnessFault(msg)
            tree[relative] = content.read()
    return tree


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
