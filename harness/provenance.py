"""Where figures come from: the manifest of a run, and what the machine can be asked about itself.

`Manifest` is the shape of `manifest.json`. Every field that a reader needs in order to trust or repeat a figure is
required: a run that cannot fill one in is refused rather than written with a hole.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.model import SCHEMA_VERSION, Frozen
from harness.settings import RunSettings

HARNESS_PACKAGES = ("pydantic", "click", "rich", "pyarrow", "duckdb", "datafusion", "numpy", "tpchgen-cli")
"""Packages of the harness itself whose version can change what it measures or accepts."""


class SourceRecord(Frozen):
    """The checkout that the harness ran from."""

    git_sha: str | None = Field(description="Null outside a git checkout")
    dirty: bool | None
    harness_version: str


class HostRecord(Frozen):
    """The machine, as far as it tells."""

    cpu_model: str
    cores: int
    governor: str | None
    temperature_c: float | None
    load_1m: float
    memory_bytes: int
    swap_bytes: int
    kernel: str
    system: str
    libc: str
    host_id: str = Field(description="Hash of the machine id: tells whether two runs share a machine, names nobody")


class DataRecord(Frozen):
    """The tables that every arm read."""

    scale_factor: str
    fingerprint: str
    rows: dict[str, int]
    files: dict[str, int] = Field(description="Files per table")
    bytes: int


class ConfigDifference(Frozen):
    """One setting in which the arms differ; a run with an undeclared one is refused."""

    key: str
    values: dict[str, str | None] = Field(description="Per arm; null where the arm does not know the key")
    reasons: dict[str, str] = Field(description="Per arm that declared the difference")


class ArmRecord(Frozen):
    """One arm as it was when the run started."""

    name: str
    title: str
    kind: Literal["strategy", "baseline", "aa", "external"]
    copies: str | None = Field(default=None, description="Arm that an A/A arm repeats")
    distributed: bool
    definition: dict[str, Any] = Field(description="The arm file, defaults filled in")
    python: str | None
    versions: dict[str, str]
    build: dict[str, Any] = Field(description="Engine fingerprint and what it is made of; empty for a stock wheel")
    worker_build: list[dict[str, Any]] = Field(default_factory=list, description="The same, as each worker told it")
    wheel: str | None = Field(default=None, description="File name of the wheel or binary under test")
    wheel_sha256: str | None = None
    environment_key: str | None = None
    config: dict[str, str] = Field(description="Effective configuration, as the session itself tells it")


class Manifest(Frozen):
    """What a run directory says about itself. Rewritten atomically while `status` is `running`, never after."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    status: Literal["running", "interrupted", "complete"]
    created_at: str = Field(description="UTC, ISO 8601")
    finished_at: str | None = None
    stopped_because: str | None = None
    command_line: list[str]
    settings: RunSettings
    arms: dict[str, ArmRecord]
    source: SourceRecord
    host: HostRecord
    python: str
    packages: dict[str, str]
    rustc: str | None = Field(description="From the engine's fingerprint; null if no arm of the run has one")
    data: DataRecord
    query_set_hash: str
    queries: dict[str, list[str]] = Field(description="Statements of every query as they were run")
    schedule_hash: str
    config_differences: list[ConfigDifference]
    resumed_at: list[str] = Field(default_factory=list)


def source_record(root: Path | None = None) -> SourceRecord:
    """Commit and cleanliness of the checkout that holds this package."""
    folder = root or Path(__file__).resolve().parents[1]
    sha = _output(["git", "-C", str(folder), "rev-parse", "HEAD"])
    changes = _output(["git", "-C", str(folder), "status", "--porcelain"])
    return SourceRecord(
        git_sha=sha or None, dirty=None if changes is None else bool(changes), harness_version=own_version()
    )


def own_version() -> str:
    """Version of this distribution, or `source` when it runs uninstalled."""
    try:
        return metadata.version("datafusion-strategies")
    except metadata.PackageNotFoundError:
        return "source"


def host_record() -> HostRecord:
    """What Linux tells about the machine; absent files give null, never a guess."""
    cpuinfo = _read("/proc/cpuinfo") or ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = meminfo()
    machine = _read("/etc/machine-id") or platform.node()
    temperature = _read("/sys/class/thermal/thermal_zone0/temp")
    return HostRecord(
        cpu_model=model.group(1).strip() if model else platform.processor() or platform.machine(),
        cores=available_cores(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        temperature_c=int(temperature) / 1000 if temperature and temperature.lstrip("-").isdigit() else None,
        load_1m=os.getloadavg()[0],
        memory_bytes=memory.get("MemTotal", 0),
        swap_bytes=memory.get("SwapTotal", 0),
        kernel=platform.release(),
        system=f"{platform.system()} {platform.machine()}",
        libc=" ".join(platform.libc_ver()).strip(),
        host_id=hashlib.sha256(machine.encode()).hexdigest()[:12],
    )


def available_cores() -> int:
    """Cores that this process may use: an affinity mask counts, where the system has one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meminfo() -> dict[str, int]:
    """`/proc/meminfo` in bytes; empty where there is none."""
    text = _read("/proc/meminfo") or ""
    found = re.findall(r"^(\w+(?:\(\w+\))?):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(value) * 1024 for name, value in found}


def harness_packages() -> dict[str, str]:
    """Versions of the packages that the harness itself relies on; a missing one is left out."""
    found = {}
    for name in HARNESS_PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def content_hash(value: Any) -> str:
    """SHA-256 (hex) over the canonical JSON form of `value`."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _output(command: list[str]) -> str | None:
    """Standard output of a command, or None if it cannot run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
