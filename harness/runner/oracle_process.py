"""The process that computes what the oracles answer: one JSON request on stdin, one JSON line per query on stdout.

`python -m harness.runner.oracle_process`; a line with `error` and `exit_code` ends the work.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from harness.errors import EXIT_HARNESS_FAULT, UserError
from harness.runner.answers import without_limit
from tpch.dataset import load_data
from tpch.oracles import cached_answer_path, datafusion_answer, duckdb_answer
from tpch.query_sets import load_query


def main() -> int:
    """Process entry."""
    request = json.load(sys.stdin)
    try:
        for query_id in request["queries"]:
            _say(_answers(request, query_id))
    except UserError as error:
        _say({"error": str(error), "exit_code": error.exit_code})
    except Exception as error:  # noqa: BLE001 - whatever an oracle raises must reach the user as one message
        text = f"an oracle failed on {query_id}: {type(error).__name__}: {error}"
        _say({"error": text, "exit_code": EXIT_HARNESS_FAULT})
    return 0


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _answers(request: dict[str, Any], query_id: str) -> dict[str, Any]:
    dataset = load_data(request["sf"], Path(request["root"]))
    query = load_query(request["query_set"], query_id, request["sf"])
    whole = without_limit(query)
    answers: dict[str, str] = {}
    boundaries: dict[str, str] = {}
    for engine, compute in (("duckdb", duckdb_answer), ("datafusion", datafusion_answer)):
        for wanted, paths in ((query, answers), (whole, boundaries)):
            if wanted is None:
                continue
            path = cached_answer_path(engine, dataset, wanted)
            if not path.is_file():
                compute(dataset, wanted)
            paths[engine] = str(path)
    return {"query": query_id, "answers": answers, "boundaries": boundaries}


if __name__ == "__main__":
    sys.exit(main())
