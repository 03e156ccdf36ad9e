"""The shortest distributed script of each strategy, and what it costs to get there from the local one.

The scripts under `reports/scripts/` are data: they run as they are, and the counts come from `difflib` over the very
files that ran.
"""

from __future__ import annotations

import difflib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pydantic import Field

from harness.errors import HarnessFault
from harness.model import Frozen

SCRIPTS = Path(__file__).parent / "scripts"
LOCAL_SCRIPT = "local"
SCRIPT_TIMEOUT_S = 120.0
"""Seconds for one script: an import, a session and one small aggregation; SF10's lineitem takes a few seconds."""


class ScriptDiff(Frozen):
    """One script against the local one. Lines are code lines: blank lines and the docstring do not count."""

    arm: str
    text: str
    lines: int
    added: int
    removed: int
    imports_added: list[str] = Field(default_factory=list)
    imports_removed: list[str] = Field(default_factory=list)
    diff: str = Field(description="Unified diff from the local script")
    ran: bool = Field(default=False, description="Whether it was executed for this report")
    same_answer: bool | None = Field(default=None, description="Printed what the local script printed; null: not run")
    output: str | None = None
    error: str | None = None
    seconds: float | None = Field(default=None, description="Wall time of the process, start-up included")


def script_names() -> list[str]:
    """Arms that have a script, the local one first."""
    names = sorted(path.stem for path in SCRIPTS.glob("*.py"))
    return [LOCAL_SCRIPT, *(name for name in names if name != LOCAL_SCRIPT)]


def code_lines(text: str) -> list[str]:
    """Lines of a script without its docstring and blank lines."""
    body = text
    if body.startswith('"""'):
        body = body.split('"""', 2)[2]
    return [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def diff_script(arm: str, local: str, text: str) -> ScriptDiff:
    """Count what changes between two scripts, by `difflib` on code lines."""
    before, after = code_lines(local), code_lines(text)
    lines = list(difflib.unified_diff(before, after, "local.py", f"{arm}.py", lineterm="", n=len(before)))
    body = lines[2:]
    added = [line[1:] for line in body if line.startswith("+")]
    removed = [line[1:] for line in body if line.startswith("-")]
    return ScriptDiff(
        arm=arm,
        text="\n".join(after),
        lines=len(after),
        added=len(added),
        removed=len(removed),
        imports_added=[line for line in added if _is_import(line)],
        imports_removed=[line for line in removed if _is_import(line)],
        diff="\n".join(lines),
    )


def _is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def static_diffs(arms: Sequence[str]) -> dict[str, ScriptDiff]:
    """The diffs of all arms that have a script, without running anything."""
    local = (SCRIPTS / f"{LOCAL_SCRIPT}.py").read_text(encoding="utf-8")
    known = set(script_names())
    return {
        arm: diff_script(arm, local, (SCRIPTS / f"{arm}.py").read_text(encoding="utf-8"))
        for arm in arms
        if arm in known
    }


def run_script(arm: str, python: Path, parquet: Path, workers: Sequence[str]) -> tuple[str | None, str | None, float]:
    """Run one script in an arm's interpreter: (output, error, seconds). Failure is a result, so nothing is raised."""
    command = [str(python), "-I", str(SCRIPTS / f"{arm}.py"), str(parquet), *workers]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{type(error).__name__}: {error}", time.monotonic() - started
    seconds = time.monotonic() - started
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return None, f"exit {done.returncode}: {last}", seconds
    return done.stdout, None, seconds


WorkersOf = Callable[[str], AbstractContextManager[Sequence[str]]]
"""Gives an arm's script the URLs of workers, which live until the context ends."""


def no_workers(arm: str) -> AbstractContextManager[Sequence[str]]:
    """Workers of an arm that has none."""
    del arm
    return nullcontext(())


def run_scripts(
    pythons: Mapping[str, Path],
    workers: WorkersOf,
    parquet: Path,
    *,
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, ScriptDiff]:
    """Run every script whose arm has an interpreter, and compare its output with the local script's.

    `pythons` maps arm names to interpreters; `parquet` is a TPC-H lineitem file or folder. Workers that do not start
    are the script's error: without them it cannot run.
    """
    diffs = static_diffs(list(pythons))
    expected = run_script(LOCAL_SCRIPT, pythons[LOCAL_SCRIPT], parquet, ())[0] if LOCAL_SCRIPT in pythons else None
    result = {}
    for arm, diff in diffs.items():
        try:
            with workers(arm) as urls:
                output, error, seconds = run_script(arm, pythons[arm], parquet, urls)
        except HarnessFault as fault:
            output, error, seconds = None, f"its workers did not start: {str(fault).splitlines()[0]}", 0.0
        same = None if expected is None else output == expected
        update = {"ran": True, "output": output, "error": error, "seconds": seconds, "same_answer": same}
        result[arm] = diff.model_copy(update=update)
        step(f"shortest script of {arm}")
    return result
