"""The process in which an arm runs generated queries: `arm_child.py` with less around each query.

Thousands of tiny queries cost what stands around them, and nothing here is timed: no collection of garbage before each
one, and the counters of workers are read once per query instead of twice. Started as a plain file like `arm_child.py`,
standard library only.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.child import arm_child
else:
    _place = pathlib.Path(__file__).parents[1] / "child" / "arm_child.py"
    _spec = importlib.util.spec_from_file_location("arm_child", _place)
    arm_child = importlib.util.module_from_spec(_spec)
    sys.modules["arm_child"] = arm_child
    _spec.loader.exec_module(arm_child)


class Session(arm_child.Session):
    """A session whose `query` answers with what a comparison needs."""

    known: list[dict[str, int]] | None = None
    """Counters after the last query, if no worker was at work any more then: what the next query begins with."""

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the session; other workers have other counters."""
        self.known = None
        return super().open(request)

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one query and say how many tasks workers ran for it."""
        counts = request.get("count", True)
        before, self.known = self.known, None
        if counts and before is None:
            before = self.counters()
        df, batches, *_ = self.timed_statements(arm_child.split(request))
        after = self.settled(before) if counts else None
        if after is not None and not arm_child.total(after, "tasks_running"):
            self.known = after
        if request.get("result"):
            arm_child.write_result(request["result"], df, batches)
        return {"remote_tasks": arm_child.remote_tasks(before, after)}


if __name__ == "__main__":
    arm_child.Session = Session  # type: ignore[misc]
    code = arm_child.main()
    sys.stderr.flush()
    os._exit(code)
