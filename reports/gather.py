"""Add to a finished run what its timing does not tell: public names, packaging, the calibration table, checks.

Runs behind the timed rounds, never inside them. Each part becomes a JSON file of the run directory, and
`collected.json` says when it was made or why it could not be: a part that fails is a blank with a reason, not the end
of a run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.arms import Arm, all_arms
from harness.child.keeper import Keeper
from harness.cluster import Cluster
from harness.environments import ArmEnvironment, prepare
from harness.errors import UserError
from harness.provenance import Manifest, source_record
from harness.rundir import RunDirectory, now_utc
from harness.runner.prepare import build
from harness.runner.progress import RunProgress
from harness.settings import cache_root
from reports.api_diff import STOCK_ARM, STOCK_PACKAGE
from reports.collect import ArmPython, collect_api_surface, collect_packages, packages_of, write_document
from reports.datafiles import read_json
from reports.inputs import RECORD

STANDARD = ("api_surface", "packaging", "calibration")
"""Parts that every report has: about two minutes for four arms, most of it starting interpreters."""

CHECKS = ("conformance", "generated_queries")
"""Parts that run queries: some minutes each."""

PARTS = (*STANDARD, *CHECKS)

GENERATED = 200
"""Generated queries per strategy behind a comparison: about a minute each. `df-strategies fuzz` runs more."""

SCRIPT_WORKERS = 2
"""Workers for a shortest script: the smallest number at which rows cross a process boundary."""

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass
class _Site:
    """The arms of a run, with what is needed to start their interpreters again."""

    run: RunDirectory
    manifest: Manifest
    wheels: Path | None
    progress: RunProgress
    keeper: Keeper
    arms: dict[str, Arm] = field(default_factory=dict)
    environments: dict[str, ArmEnvironment] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """The environments of all arms that have a Python session, and of stock, which they are compared with."""
        if self.arms:
            return
        known = all_arms([Path(path) for path in self.manifest.settings.arm_files])
        names = dict.fromkeys([STOCK_ARM, *self.manifest.arms])
        wanted = [known[name] for name in names if name in known and known[name].kind != "aa"]
        chosen = {arm.name: arm for arm in wanted if arm.driver is not None and arm.driver.factory is not None}
        for name, arm in chosen.items():
            try:
                self.environments[name] = self._environment(arm)
            except UserError as error:
                self.failed[name] = _first_line(error)
        gone = [name for name in self.manifest.arms if name not in known]
        self.failed.update(dict.fromkeys(gone, "its arm file is no longer there"))
        self.arms = chosen

    def _environment(self, arm: Arm) -> ArmEnvironment:
        found = prepare(arm, build([arm], str(self.wheels) if self.wheels else None), say=self.progress.say)
        record = self.manifest.arms.get(arm.name)
        if record is not None and record.wheel_sha256 != found.wheel_sha256:
            then, now = ((digest or "none")[:12] for digest in (record.wheel_sha256, found.wheel_sha256))
            msg = f"the wheel of `{arm.name}` is no longer the one that ran ({then} then, {now} now)"
            raise UserError(msg)
        return found

    def pythons(self, *, wheels: bool) -> dict[str, ArmPython]:
        """What the collectors start: interpreter and packages of every arm that could be prepared."""
        found = {}
        for name, environment in self.environments.items():
            if environment.python is None:
                continue
            arm = self.arms[name]
            namespace = arm.driver.namespace if arm.driver else STOCK_PACKAGE
            wheel = environment.wheel
            if wheels and wheel is None:
                wheel = stock_wheel(arm, environment.python, cache_root() / "registry")
            found[name] = ArmPython(environment.python, packages_of(name, namespace), wheel)
        return found

    @contextlib.contextmanager
    def workers(self, name: str) -> Iterator[Sequence[str]]:
        """Workers of one arm for as long as its script runs; none for a single-node arm.

        Raises:
            WorkerFailed: they do not start.
        """
        arm, environment = self.arms[name], self.environments[name]
        if arm.workers is None:
            yield ()
            return
        logs = self.run.log(name, "worker.log").parent / "script"
        logs.mkdir(parents=True, exist_ok=True)
        cluster = Cluster(
            self.keeper, name, environment.fill(arm.workers.command), SCRIPT_WORKERS, logs=logs, cwd=logs, env=arm.env,
            ready_timeout_s=arm.workers.ready_timeout_s,
        )  # fmt: skip
        with cluster:
            yield cluster.urls


def gather(
    run: RunDirectory, parts: Sequence[str] = STANDARD, *, wheels: Path | None = None, quiet: bool = False
) -> dict[str, str | None]:
    """Collect `parts` for a run that is no longer being timed, and write them into its directory.

    Returns None per part, or why it is missing. `wheels` is the folder of prebuilt wheels of the run, if it had one.

    Raises:
        UserError: the run directory cannot be read.
        HarnessFault: nothing can be written to it.
    """
    manifest = run.manifest()
    given = wheels or (Path(manifest.settings.wheels) if manifest.settings.wheels else None)
    record = dict(read_json(run.path / RECORD) or {"schema_version": 1, "parts": {}})
    outcome: dict[str, str | None] = {}
    with RunProgress(quiet=quiet) as progress, Keeper() as keeper:
        site = _Site(run, manifest, given, progress, keeper)
        for part in parts:
            try:
                outcome[part] = _COLLECTORS[part](site)
            except UserError as error:
                outcome[part] = _first_line(error)
            except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not cost a finished run its report
                outcome[part] = f"{type(error).__name__}: {_first_line(error)}"
            if outcome[part] is not None:
                progress.say(f"{part}: not collected, {outcome[part]}")
            record["parts"] = {
                **record["parts"],
                part: {"at": now_utc(), "source": source_record().model_dump(), "reason": outcome[part]},
            }
            write_document(run.path, "collected", record)
    return outcome


def _names(site: _Site) -> str | None:
    site.prepare()
    pythons = site.pythons(wheels=False)
    site.progress.stage("public names and shortest scripts", 2 * len(pythons))
    lineitem, why = _lineitem(site.manifest)
    document = collect_api_surface(
        pythons, failed=site.failed, lineitem=lineitem, workers=site.workers, step=site.progress.step
    )
    write_document(site.run.path, "api_surface", document)
    if why is not None:
        site.progress.say(f"shortest scripts: not run, {why}")
    return None


def _lineitem(manifest: Manifest) -> tuple[Path | None, str | None]:
    """The table that the shortest scripts read: that of the run, if it is still there."""
    from tpch.dataset import load_data

    try:
        data = load_data(manifest.settings.scale_factor)
    except UserError as error:
        return None, _first_line(error)
    if data.fingerprint != manifest.data.fingerprint:
        return None, "the data is no longer that of the run"
    return data.tables["lineitem"], None


def _packaging(site: _Site) -> str | None:
    site.prepare()
    pythons = site.pythons(wheels=True)
    site.progress.stage("packages", len(pythons))
    document = collect_packages(pythons, failed=site.failed, checkout=CHECKOUT, step=site.progress.step)
    write_document(site.run.path, "packaging", document)
    return None


def _calibration(site: _Site) -> str | None:
    from harness.calibration import calibrate

    site.progress.stage("calibration of the statistics", 1)
    write_document(site.run.path, "calibration", calibrate().model_dump(mode="json"))
    site.progress.step("calibration")
    return None


def _conformance(site: _Site) -> str | None:
    from harness.conformance import load_registry
    from harness.conformance.session import check_arms

    site.prepare()
    checks = [check for check in load_registry() if check.fast]
    names = list(site.environments)
    site.progress.stage("checks", len(checks) * len(names))
    check_arms(
        checks, names, arm_files=[Path(path) for path in site.manifest.settings.arm_files], wheels=site.wheels,
        out=site.run.path, selection={"fast": True}, say=site.progress.step,
    )  # fmt: skip
    return None


def _generated(site: _Site) -> str | None:
    from harness.fuzz.command import Request, fuzz

    site.prepare()
    names = tuple(
        name for name, arm in site.arms.items() if arm.kind in ("strategy", "external") and name not in site.failed
    )
    if not names:
        return "no strategy was in this run"
    site.progress.stage("generated queries", 1)
    request = Request(
        arms=names,
        arm_files=tuple(Path(path) for path in site.manifest.settings.arm_files),
        wheels=site.wheels,
        given={"queries": GENERATED},
    )
    result = fuzz(request, say=site.progress.say, found=lambda finding: site.progress.say(finding.signature))
    write_document(site.run.path, "generated_queries", result.model_dump(mode="json"))
    return None


_COLLECTORS: Mapping[str, Callable[[_Site], str | None]] = {
    "api_surface": _names,
    "packaging": _packaging,
    "calibration": _calibration,
    "conformance": _conformance,
    "generated_queries": _generated,
}


def stock_wheel(arm: Arm, python: Path, folder: Path) -> Path | None:
    """The wheel file of an arm that comes from the registry, as pip fetches it; None when that does not work."""
    import subprocess

    pinned = next(
        (
            entry
            for entry in (arm.environment.requirements if arm.environment else [])
            if entry.startswith(f"{STOCK_PACKAGE}==")
        ),
        None,
    )
    if pinned is None:
        return None
    command = [str(python), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "-q"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), pinned]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=300)
    return next(iter(sorted(folder.glob(f"{STOCK_PACKAGE}-*.whl"))), None)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
