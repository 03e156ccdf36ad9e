"""What some checks need besides an arm: certificates, an S3-compatible server. Made once per run, on first use."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.child.keeper import Keeper

S3_SERVER = Path(__file__).with_name("s3_server.py")

SERVER_START_S = 60.0
"""Seconds until the S3-compatible server answers: a fresh interpreter on a cold disk, generously."""


class Missing(Exception):
    """A prerequisite cannot be had; the message says how to get it."""


class Prerequisites:
    """Things that checks ask for by name, as JSON-able dictionaries."""

    def __init__(self, keeper: Keeper, folder: Path) -> None:
        self._keeper = keeper
        self._folder = folder
        self._made: dict[str, dict[str, Any] | Missing] = {}
        self._makers: dict[str, Callable[[], dict[str, Any]]] = {
            "tls": self._tls, "s3": self._s3, "stock": self._stock, "stock_site": self._stock_site,
        }  # fmt: skip

    def get(self, name: str) -> dict[str, Any]:
        """The prerequisite of that name.

        Raises:
            Missing: it cannot be had here.
        """
        if name not in self._made:
            try:
                self._made[name] = self._makers[name]()
            except Missing as missing:
                self._made[name] = missing
        found = self._made[name]
        if isinstance(found, Missing):
            raise found
        return found

    def _stock(self) -> dict[str, Any]:
        """The public surface of the stock package beside the harness: name to signature."""
        script = Path(__file__).parent / "scripts" / "surface.py"
        done = subprocess.run(
            [sys.executable, "-I", str(script), "datafusion"], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            msg = f"the stock package beside the harness cannot be read: {done.stderr.strip()[-200:]}"
            raise Missing(msg)
        return dict(json.loads(done.stdout))

    def _stock_site(self) -> dict[str, Any]:
        """A folder to import the stock package from: the harness's own site-packages."""
        spec = importlib.util.find_spec("datafusion")
        if spec is None or spec.origin is None:
            msg = "the stock package `datafusion` is not installed beside the harness"
            raise Missing(msg)
        return {"path": str(Path(spec.origin).parent.parent)}

    def _tls(self) -> dict[str, Any]:
        """A certificate authority, a certificate for loopback, one for clients, and a foreign authority."""
        _require("trustme")
        import trustme  # type: ignore[import-not-found, unused-ignore]

        folder = self._folder / "tls"
        folder.mkdir(parents=True, exist_ok=True)
        ca, other = trustme.CA(), trustme.CA()
        server, client = ca.issue_cert("127.0.0.1", "localhost"), ca.issue_cert("client@example.org")
        files = {"ca": ca.cert_pem, "other_ca": other.cert_pem}
        for name, cert in (("server", server), ("client", client)):
            cert.private_key_pem.write_to_path(str(folder / f"{name}.key"))
            (folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        for name, blob in files.items():
            blob.write_to_path(str(folder / f"{name}.pem"))
        names = ("ca.pem", "other_ca.pem", "server.pem", "server.key", "client.pem", "client.key")
        return {name.replace(".pem", "").replace(".", "_"): str(folder / name) for name in names}

    def _s3(self) -> dict[str, Any]:
        """A small S3-compatible server on loopback that looks at access keys."""
        self._folder.mkdir(parents=True, exist_ok=True)
        log, out = self._folder / "s3-server.log", self._folder / "s3-server.out"
        with log.open("ab") as stderr, out.open("wb") as stdout:
            process = self._keeper.spawn(
                [sys.executable, "-I", "-u", str(S3_SERVER)],
                cwd=self._folder,
                env=dict(os.environ),
                stdout=stdout,
                stderr=stderr,
            )
        deadline = time.monotonic() + SERVER_START_S
        while time.monotonic() < deadline and process.returncode() is None:
            line = out.read_text(encoding="ascii").strip()
            if line:
                return {"endpoint": f"http://127.0.0.1:{line}", "region": "us-east-1"}
            time.sleep(0.05)
        msg = f"the S3-compatible server did not start, see {log}"
        raise Missing(msg)


def _require(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        msg = f"the package `{module}` is not installed beside the harness: pip install 'datafusion-strategies[test]'"
        raise Missing(msg)
