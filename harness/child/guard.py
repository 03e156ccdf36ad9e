"""Two small programs that keep processes of a run from outliving the harness, however it ends.

Started as a plain file (`python -I -S guard.py ...`), standard library only:

- `guard.py launch PARENT COMMAND...` asks the kernel to kill this process when PARENT dies, then becomes COMMAND. The
  request survives the exec. It covers the process itself, from its first instant, on Linux.
- `guard.py watch` reads `+PGID` and `-PGID` lines and, at the end of its input (the harness is gone, even by
  `kill -9`), kills every group still on its list. It covers what those processes started themselves, on any Unix.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def launch(parent: int, command: list[str]) -> None:
    """Tie this process to `parent` and become `command`."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # The harness died between the fork and the line above: nobody is left to be told.
            os._exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - to become the command is the point
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        os._exit(127)


def watch() -> None:
    """Kill the listed process groups when the input ends."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        if line[0] == "+":
            groups.add(number)
        else:
            groups.discard(number)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        launch(int(sys.argv[2]), sys.argv[3:])
    else:
        watch()
