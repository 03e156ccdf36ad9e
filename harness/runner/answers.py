"""The oracles' answers, computed once per data set in a process of their own and kept in the cache of `tpch.oracles`.

In a process of its own because two engines that have just worked through SF10 hold memory and threads that the harness
must not hold while arms are timed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from harness.errors import EXIT_HARNESS_FAULT, HarnessFault, UserError
from harness.model import Frozen
from tpch.query_sets import Query

FINAL_LIMIT = re.compile(r"\s+limit\s+\d+\s*$", re.IGNORECASE)


class OracleAnswers(Frozen):
    """Arrow files with what each oracle answered. `boundaries` are the answers without LIMIT, for ties at the cut."""

    answers: dict[str, str]
    boundaries: dict[str, str]


def ensure_answers(
    sf: str, data_root: Path, query_set: str, queries: Iterable[str], tick: Callable[[str], None] = lambda _: None
) -> dict[str, OracleAnswers]:
    """The oracles' answers to each query, computed where the cache does not have them; `tick` is called per query.

    Raises:
        UserError: an oracle is not installed.
        HarnessFault: an oracle failed, or its process did.
    """
    request = {"sf": sf, "root": str(data_root), "query_set": query_set, "queries": list(queries)}
    command = [sys.executable, "-m", "harness.runner.oracle_process"]
    found: dict[str, OracleAnswers] = {}
    folder = Path(__file__).parents[2]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        stdin.write(json.dumps(request))
        stdin.close()
        for line in stdout:
            said = json.loads(line)
            if "error" in said:
                kind = HarnessFault if said["exit_code"] == EXIT_HARNESS_FAULT else UserError
                raise kind(said["error"])
            found[said["query"]] = OracleAnswers(answers=said["answers"], boundaries=said["boundaries"])
            tick(said["query"])
        code = process.wait()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["it said nothing"])[-1]
    if len(found) != len(request["queries"]):
        msg = f"the process that computes the expected answers ended with code {code}: {last}"
        raise HarnessFault(msg)
    return found


def without_limit(query: Query) -> Query | None:
    """The same query without its final LIMIT, or None if it has none."""
    if query.limit is None:
        return None
    text = FINAL_LIMIT.sub("", query.sql)
    statements = list(query.statements)
    statements[query.result_statement] = text
    return replace(query, statements=tuple(statements), limit=None) if text != query.sql else None
