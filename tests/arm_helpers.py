"""Arms for tests: TOML files for the modules in `fixture_arms`, and the start of a child process for one of them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

FIXTURE_ARMS = Path(__file__).parent / "fixture_arms"
FAKE_WORKER = FIXTURE_ARMS / "fake_worker.py"

WORKERS = """
[workers]
command = ["{python}", "-I", "FAKE_WORKER", "BEHAVIOUR"]
ready_timeout_s = TIMEOUT
"""

FINGERPRINT_EXCUSE = """
[[differences]]
key = "engine.fingerprint"
reason = "a stock session of a test holds no engine of ours"
"""


def arm_file(
    folder: Path,
    name: str,
    factory: str = "stock",
    *,
    env: Mapping[str, str] | None = None,
    behaviour: str | None = None,
    ready_timeout_s: float = 20.0,
    extra: str = "",
    kind: str = "external",
    excuse: bool = True,
) -> Path:
    """Write an arm file that runs `factory` in this interpreter; `behaviour` gives it fake workers."""
    module = factory.partition(":")[0]
    lines = ["schema = 1", f'name = "{name}"', f'title = "fixture {name}"', f'kind = "{kind}"']
    capabilities = ["sql", "dataframe", "explain", *(["distributed"] if behaviour else [])]
    lines += [f"capabilities = {json.dumps(capabilities)}"]
    lines += ["[environment]", 'source = "interpreter"', f'python = "{sys.executable}"', f'path = ["{FIXTURE_ARMS}"]']
    lines += ["[driver]", f'factory = "{factory}"']
    if module == "toy":
        lines += ['probe = "toy"']
    lines += ["[env]", *(f'{key} = "{value}"' for key, value in (env or {}).items())]
    text = "\n".join(lines) + "\n"
    if behaviour:
        text += (
            WORKERS.replace("FAKE_WORKER", str(FAKE_WORKER))
            .replace("BEHAVIOUR", behaviour)
            .replace("TIMEOUT", f"{ready_timeout_s:g}")
        )
    if excuse and module != "toy":
        text += FINGERPRINT_EXCUSE
    path = folder / f"{name}.toml"
    path.write_text(text + extra, encoding="utf-8")
    return path


def aa_file(folder: Path, name: str, original: str) -> Path:
    """Write the file of an A/A arm."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'schema = 1\nname = "{name}"\ntitle = "A/A"\nkind = "aa"\ncopies = ["{original}"]\n', encoding="utf-8"
    )
    return path


def processes_with(text: str) -> list[int]:
    """Running processes that have `text` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in environment and alive(int(folder.name)):
            found.append(int(folder.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether `condition` comes true within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
