"""One build at a time, also when the holder of the lock dies."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from build_helpers import REPOSITORY
from harness.build.lock import build_lock

HOLDER = """
import sys, time
from pathlib import Path
from harness.build.lock import build_lock
with build_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_waiter_is_told_who_holds_the_lock_and_gets_it_when_the_holder_dies(tmp_path: Path) -> None:
    path = tmp_path / "build.lock"
    holder = hold(path)
    told: list[str] = []
    entered = threading.Event()

    def wait() -> None:
        with build_lock(path, told.append):
            entered.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not entered.wait(1.2)
    assert len(told) == 1
    assert str(holder.pid) in told[0]
    holder.kill()
    holder.wait()
    assert entered.wait(10)
    waiter.join()


def test_lock_is_free_after_use_and_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "build.lock"
    try:
        with build_lock(path):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    told: list[str] = []
    with build_lock(path, told.append):
        assert path.read_text()
    assert told == []
