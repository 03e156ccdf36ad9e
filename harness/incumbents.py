"""Result files of the tools that people have used so far, so that old numbers can be laid beside new ones.

Two forms are read:

- `dfbench` of apache/datafusion (`dfbench tpch -o result.json`): one JSON document with `context` and `queries`, each
  with `iterations` of `elapsed` (milliseconds) and `row_count`, and, in newer versions, `success`.
- datafusion-distributed's benchmarks: a folder with one `<query>.json` per query (`id`, `dataset`, `iterations` of
  `elapsed`, `row_count` or `rowCount`, `n_tasks`, `error`), as its local and its remote runner write them.

These files say little: the answers were compared with nothing, iterations of two files were not interleaved, and the
machine is a number of cores at best. So they give factors of medians and coverage, never an interval or a verdict.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.errors import EXIT_NOT_COMPARABLE, EXIT_OK, EXIT_REGRESSION, NotComparable, UserError
from harness.model import Frozen, Phase, Reach, Sample, Status
from harness.provenance import Manifest
from harness.stats import Cell, Coverage, collect, coverage

NUMBER = re.compile(r"(\d+)")

OPTIONS_OF_DATA = ("--path", "-p", "--data-path")
"""Options of `dfbench` that name the data."""


class Results(Frozen):
    """One set of times, from whatever tool. `facts` is what it says of their making; null: it does not say."""

    label: str
    tool: str
    facts: dict[str, str | None]
    rounds: int = Field(ge=0, description="Most iterations of any query")
    samples: tuple[Sample, ...]

    @property
    def queries(self) -> list[str]:
        """All queries that it knows, sorted."""
        return sorted({sample.query for sample in self.samples})

    def rows(self, query: str) -> set[int]:
        """Row counts that a query gave."""
        return {sample.rows for sample in self.samples if sample.query == query and sample.rows is not None}


def is_results(path: Path) -> bool:
    """Whether a path is a result file or folder of another tool rather than a run directory."""
    if path.is_file():
        return path.suffix == ".json"
    return path.is_dir() and not (path / "manifest.json").exists() and any(path.glob("*.json"))


def read_results(path: Path) -> Results:
    """Read a result file or folder.

    Raises:
        UserError: it is none, or damaged; says what was expected.
    """
    if path.is_dir():
        return _engine(path, sorted(path.glob("*.json"), key=lambda file: (_number(file.stem), file.stem)))
    data = _json(path)
    if isinstance(data, dict) and isinstance(data.get("queries"), list) and isinstance(data.get("context"), dict):
        return _dfbench(path, data)
    if isinstance(data, dict) and "iterations" in data and "id" in data:
        return _engine(path, [path])
    msg = (
        f"{path} is no result file that can be read: expected what `dfbench ... -o FILE` writes (`context` and "
        "`queries`), or a file or folder of datafusion-distributed's benchmarks (`id`, `dataset`, `iterations`)"
    )
    raise UserError(msg)


def from_run(label: str, arm: str, manifest: Manifest, samples: Sequence[Sample], rounds: int) -> Results:
    """An arm of a stored run, with no more in it than the other tools know."""
    settings = manifest.settings
    return Results(
        label=label,
        tool="df-strategies",
        facts={
            "benchmark": "tpch",
            "data": f"tpch_sf{settings.scale_factor}",
            "cores": str(manifest.host.cores),
            "workers": str(settings.workers) if manifest.arms[arm].distributed else None,
            "threads": None,
        },
        rounds=rounds,
        samples=tuple(sample for sample in samples if sample.arm == arm and sample.phase is Phase.TIMED),
    )


class Laid(Frozen):
    """Two sets of times beside each other."""

    base: Results
    new: Results
    cells: dict[str, tuple[Cell, Cell]]
    cover: Coverage
    cautions: tuple[str, ...]
    geomean: float | None = Field(description="Of the ratios of medians, over the queries of the total")

    @property
    def exit_code(self) -> int:
        """1 if something newly fails, 3 if there is nothing in common, 0 otherwise: times alone judge nothing here."""
        if self.cover.newly_failing:
            return EXIT_REGRESSION
        return EXIT_OK if self.cover.common else EXIT_NOT_COMPARABLE


def lay_beside(base: Results, new: Results, *, force: bool) -> Laid:
    """Lay two sets of times beside each other.

    Raises:
        NotComparable: they come from other data, another number of cores or workers, or do not say, and `force` is not
            given.
    """
    differing = list(_differences(base, new))
    if differing and not force:
        msg = (
            f"{base.label} and {new.label} cannot be shown to be alike: {'; '.join(differing)}. Bring results that "
            "were made alike, or add --force."
        )
        raise NotComparable(msg)
    queries = sorted({*base.queries, *new.queries})
    left, right = (_collect(side, queries) for side in (base, new))
    cover = coverage(left, right)
    ratios = [_ratio(left[query], right[query]) for query in cover.common] if cover.total.factor is not None else []
    cautions = [f"FORCED although {'; '.join(differing)}"] if differing else []
    cautions += [
        "iterations were not interleaved and answers not compared: factors of medians, no intervals, no verdicts",
        f"iterations: {base.rounds} and {new.rounds}, the first of them in a fresh process unless the tool warmed up",
    ]
    geomean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios)) if ratios else None
    cells = {query: (left[query], right[query]) for query in queries}
    return Laid(base=base, new=new, cells=cells, cover=cover, cautions=tuple(cautions), geomean=geomean)


def _differences(base: Results, new: Results) -> Iterator[str]:
    for fact in dict.fromkeys([*base.facts, *new.facts]):
        one, two = base.facts.get(fact), new.facts.get(fact)
        if one != two:
            yield f"{fact}: {one or 'not told'} / {two or 'not told'}"
    rows = {
        query: (base.rows(query), new.rows(query)) for query in base.queries if base.rows(query) and new.rows(query)
    }
    other = [
        f"{query} {'/'.join(map(str, sorted(one)))} or {'/'.join(map(str, sorted(two)))}"
        for query, (one, two) in rows.items()
        if one != two
    ]
    if other:
        yield f"rows: {', '.join(other[:5])}{' ...' if len(other) > 5 else ''}"


def _collect(results: Results, queries: Sequence[str]) -> dict[str, Cell]:
    arm = results.samples[0].arm if results.samples else results.label
    return collect(
        results.samples, arm=arm, queries=queries, rounds=results.rounds, require_validated=False, require_reach=False
    )


def _ratio(base: Cell, new: Cell) -> float:
    return (new.median_ms or math.nan) / (base.median_ms or math.nan)


def _dfbench(path: Path, data: Mapping[str, Any]) -> Results:
    context = data["context"]
    words = [str(word) for word in context.get("arguments") or []]
    named = [words[place + 1] for place, word in enumerate(words[:-1]) if word in OPTIONS_OF_DATA]
    named += [word.split("=", 1)[1] for word in words if word.split("=", 1)[0] in OPTIONS_OF_DATA and "=" in word]
    facts = {
        "benchmark": next((word for word in words if not word.startswith("-")), None),
        "data": Path(named[0]).name if named else None,
        "cores": _text(context.get("num_cpus")),
        "workers": _text(context.get("workers")),
        "threads": _text(context.get("threads")),
    }
    entries = [
        (_entry(path, case, "query"), case.get("iterations"), case.get("success", True))
        for case in data["queries"]
        if isinstance(case, dict)
    ]
    label = f"{path.name} (datafusion {context.get('datafusion_version', 'of unknown version')})"
    return _results(path, label, "dfbench", facts, entries)


def _engine(path: Path, files: Sequence[Path]) -> Results:
    """One file per query; `previous.json`, which describes a whole run, may lie beside them."""
    entries, datasets, engines = [], set(), set()
    for file in files:
        data = _json(file)
        if isinstance(data, dict) and "iterations" not in data and "results" in data:
            continue
        if not isinstance(data, dict) or not isinstance(data.get("iterations"), list):
            msg = f"{file} is no result of a query: expected `id`, `dataset` and a list `iterations`"
            raise UserError(msg)
        datasets.add(str(data.get("dataset")))
        engines.add(str(data.get("engine", path.name if path.is_dir() else path.parent.name)))
        entries.append((_entry(file, data, "id"), data["iterations"], True))
    if not entries:
        msg = f"{path} holds no result of a query: expected files such as q1.json with `id`, `dataset`, `iterations`"
        raise UserError(msg)
    if len(datasets) > 1:
        msg = f"{path} mixes results of several data sets ({', '.join(sorted(datasets))}); keep one per folder"
        raise NotComparable(msg)
    dataset = datasets.pop()
    facts = {"benchmark": dataset.split("_")[0], "data": dataset, "cores": None, "workers": None, "threads": None}
    return _results(path, f"{'/'.join(sorted(engines))} of {path}", "datafusion-distributed", facts, entries)


def _results(
    path: Path, label: str, tool: str, facts: dict[str, str | None], entries: Sequence[tuple[str, Any, Any]]
) -> Results:
    samples: list[Sample] = []
    most = 0
    for query, iterations, success in entries:
        if any(sample.query == query for sample in samples):
            msg = f"{path} holds {query} twice"
            raise UserError(msg)
        given = iterations if isinstance(iterations, list) else []
        made = [_sample(path, label, query, place, entry) for place, entry in enumerate(given)]
        if success is not True or not made:
            # A failure without iterations must not look like a query that nobody asked for.
            reason = "the tool marked it as failed" if made or success is not True else "no iterations"
            made = [_failure(label, query, reason)]
        samples += made
        most = max(most, len(given))
    return Results(label=label, tool=tool, facts=facts, rounds=max(most, 1), samples=_reached(samples))


def _sample(path: Path, label: str, query: str, place: int, entry: Any) -> Sample:
    if not isinstance(entry, dict):
        msg = f"{path}: an iteration of {query} is {entry!r}, expected `elapsed` and a row count"
        raise UserError(msg)
    if entry.get("error"):
        return _failure(label, query, str(entry["error"]).splitlines()[0], place)
    elapsed, rows = entry.get("elapsed"), entry.get("row_count", entry.get("rowCount"))
    if isinstance(elapsed, bool) or not isinstance(elapsed, (int, float)) or not math.isfinite(elapsed) or elapsed <= 0:
        msg = f"{path}: an iteration of {query} took {elapsed!r}, expected milliseconds above 0"
        raise UserError(msg)
    tasks = entry.get("n_tasks")
    return Sample(
        round=place, sequence=place, arm=label, query=query, phase=Phase.TIMED, status=Status.OK,
        elapsed_ms=float(elapsed), rows=rows if isinstance(rows, int) else None,
        planned_tasks=tasks if isinstance(tasks, int) else None,
    )  # fmt: skip


def _reached(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Say where executions ran, as far as their tasks tell.

    A plan without a task cannot have left the coordinator. Where no query has one, it is a single-node result; where
    others have, this one must not stand in a distributed total.
    """
    none = Reach.NOT_DISTRIBUTED if any(sample.planned_tasks for sample in samples) else Reach.SINGLE_NODE
    return tuple(
        sample.model_copy(update={"reach": none}) if sample.planned_tasks == 0 else sample for sample in samples
    )


def _failure(label: str, query: str, reason: str, place: int = 0) -> Sample:
    return Sample(
        round=place, sequence=place, arm=label, query=query, phase=Phase.TIMED, status=Status.ERROR, reason=reason
    )


def _entry(path: Path, data: Mapping[str, Any], key: str) -> str:
    """The query's id in this project's spelling: `Query 1`, `q1` and `1` are `q01`."""
    given = data.get(key)
    found = NUMBER.search(str(given)) if isinstance(given, (str, int)) else None
    if found is None:
        msg = f"{path}: a query is called {given!r} (key `{key}`), expected a name with a number such as `q1`"
        raise UserError(msg)
    return f"q{int(found.group()):02d}"


def _number(name: str) -> int:
    found = NUMBER.search(name)
    return int(found.group()) if found else -1


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} cannot be read as JSON: {error}"
        raise UserError(msg) from error
