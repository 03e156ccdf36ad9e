"""Physical plans as the arms told them before the timed rounds: arms with one plan together, stages as a picture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pydantic import Field

from harness.model import Frozen

LINE_LENGTH = 160
"""Characters of a plan line that are kept: file lists and long projections would fill the page. plans.json has all."""

MAX_LINES = 120
"""Lines of a plan that are kept."""

_HEAD = re.compile(r"┌─+ (?:DistributedExec|Stage (\d+))(.*)$")
_READS = re.compile(r"\[Stage (\d+)\] => (\w+)")
_COUNT = re.compile(r"(tasks|partitions)=(\d+)")
_PATH = re.compile(r"[\w.+-]*/[\w./+-]+")
_PORT = re.compile(r"\b(?:localhost|127\.0\.0\.1|\[::1\]):\d+")


class Stage(Frozen):
    """One stage of a distributed plan; number 0 is the coordinator."""

    number: int
    tasks: int | None = None
    partitions: int | None = None
    reads: list[int] = Field(default_factory=list, description="Stages that it reads from")
    exchanges: list[str] = Field(default_factory=list, description="How, one per stage read")
    operators: list[str] = Field(default_factory=list, description="Operators in it, outermost first, each once")


class PlanGroup(Frozen):
    """Arms that told the same plan for one query."""

    arms: list[str]
    stages: list[Stage]
    tasks: int | None = None
    text: str = Field(description="Paths shortened, ports left out, long lines cut")


class QueryPlans(Frozen):
    """The plans of one query."""

    query: str
    groups: list[PlanGroup]


def query_plans(document: Mapping[str, Any], queries: Sequence[str], arms: Sequence[str]) -> list[QueryPlans]:
    """Plans by query, from `plans.json` (arm, query, plan). Queries that no arm planned are left out."""
    found = []
    for query in queries:
        groups: dict[str, list[str]] = {}
        tasks: dict[str, int | None] = {}
        for arm in arms:
            plan = document.get(arm, {}).get(query)
            if plan and plan.get("text"):
                text = tidy(plan["text"])
                groups.setdefault(text, []).append(arm)
                tasks[text] = plan.get("tasks")
        if groups:
            made = [
                PlanGroup(arms=names, stages=parse_stages(text), tasks=tasks[text], text=cut(text))
                for text, names in groups.items()
            ]
            found.append(QueryPlans(query=query, groups=made))
    return found


def tidy(text: str) -> str:
    """A plan without what differs from machine to machine and from run to run: folders and ports."""
    return _PORT.sub("worker", _PATH.sub(_last_two, text)).strip("\n")


def _last_two(path: re.Match[str]) -> str:
    """A path by its folder and file; a division or a `//` is left as it is."""
    parts = [part for part in path[0].split("/") if part]
    return "/".join(parts[-2:]) if "." in path[0].rsplit("/", 1)[1] and len(parts) > 1 else path[0]


def cut(text: str) -> str:
    """A plan short enough for a page."""
    lines = [line if len(line) <= LINE_LENGTH else line[: LINE_LENGTH - 1] + "…" for line in text.splitlines()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"… {len(lines) - MAX_LINES} more lines"]
    return "\n".join(lines)


def parse_stages(text: str) -> list[Stage]:
    """Stages of a plan as the engine displays it; none for a plan that is not distributed."""
    stages: list[dict[str, Any]] = []
    for line in text.splitlines():
        head = _HEAD.search(line)
        if head:
            counts = {name: int(number) for name, number in _COUNT.findall(head[2])}
            stages.append({"number": int(head[1] or 0), "reads": [], "exchanges": [], "operators": [], **counts})
        elif stages:
            _read_line(line.lstrip(" │"), stages[-1])
    return [Stage.model_validate(stage) for stage in stages]


def _read_line(line: str, stage: dict[str, Any]) -> None:
    reads = _READS.search(line)
    if reads:
        stage["reads"].append(int(reads[1]))
        stage["exchanges"].append(reads[2].removeprefix("Network").removesuffix("Exec").lower())
        return
    operator = re.match(r"(?:t\d+: )?(\w+Exec)\b", line)
    if operator and operator[1] not in stage["operators"]:
        stage["operators"].append(operator[1])


BOX, GAP, ROW = 116, 54, 62
"""Width of a stage's box, distance to the next column, height of a row, in px."""


def stages_svg(plan: PlanGroup, name: str) -> str:
    """The stages as boxes, the coordinator on the left, arrows along the way of the rows; empty without stages."""
    stages = {stage.number: stage for stage in plan.stages}
    if not stages or 0 not in stages:
        return ""
    places = _layout(stages)
    columns = max(column for column, _ in places.values()) + 1
    rows = max(row for _, row in places.values()) + 1
    width, height = columns * (BOX + GAP) - GAP + 4, rows * ROW + 4
    parts = [_arrow(places, stage.number, child, how) for stage in stages.values() for child, how in _children(stage)]
    parts += [_box(stages[number], *place) for number, place in places.items()]
    label = escape(f"Stages of {name} on {', '.join(plan.arms)}: {words(plan)}", quote=True)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'class="stages">{"".join(part for part in parts if part)}</svg>'
    )


def words(plan: PlanGroup) -> str:
    """The stages in one sentence, for whoever does not see the picture."""
    if not plan.stages:
        return "not distributed, one process"
    workers = [stage for stage in plan.stages if stage.number]
    each = ", ".join(f"stage {stage.number} with {_tasks(stage.tasks or 1)}" for stage in workers)
    return f"{len(workers)} stages on workers ({each}), read by the coordinator"


def short_words(plan: PlanGroup) -> str:
    """The same in figures only."""
    workers = [stage for stage in plan.stages if stage.number]
    if not plan.stages:
        return words(plan)
    return f"{len(workers)} stages with {_tasks(sum(stage.tasks or 1 for stage in workers))} on workers"


def _tasks(count: int) -> str:
    return f"{count} task{'s' if count != 1 else ''}"


def _children(stage: Stage) -> list[tuple[int, str]]:
    return list(zip(stage.reads, stage.exchanges, strict=True))


def _layout(stages: Mapping[int, Stage]) -> dict[int, tuple[int, int]]:
    """Column and row of every stage that the coordinator reaches: children one column on, siblings below each other."""
    places: dict[int, tuple[int, int]] = {}
    free: dict[int, int] = {}

    def place(number: int, column: int, row: int) -> None:
        if number in places or number not in stages:
            return
        row = max(row, free.get(column, 0))
        places[number] = (column, row)
        free[column] = row + 1
        for offset, child in enumerate(stages[number].reads):
            place(child, column + 1, row + offset)

    place(0, 0, 0)
    return places


def _box(stage: Stage, column: int, row: int) -> str:
    x, y = column * (BOX + GAP) + 2, row * ROW + 2
    title = f"stage {stage.number}" if stage.number else "coordinator"
    tasks = _tasks(stage.tasks) if stage.tasks is not None else "1 process"
    inside = ", ".join(entry.removesuffix("Exec") for entry in stage.operators[:6])
    parts = "" if stage.partitions is None else f", {stage.partitions} part."
    return (
        f"<g><title>{escape(inside)}</title>"
        f'<rect x="{x}" y="{y}" width="{BOX}" height="{ROW - 18}" rx="4" fill="var(--panel)" stroke="var(--muted)"/>'
        f'<text x="{x + 8}" y="{y + 18}" font-size="13" font-weight="600" fill="var(--fg)">{title}</text>'
        f'<text x="{x + 8}" y="{y + 35}" font-size="11" fill="var(--muted)">{tasks}{parts}</text></g>'
    )


def _arrow(places: Mapping[int, tuple[int, int]], reader: int, source: int, how: str) -> str:
    if reader not in places or source not in places:
        return ""
    (to_column, to_row), (from_column, from_row) = places[reader], places[source]
    x1, y1 = from_column * (BOX + GAP) + 2, from_row * ROW + 2 + (ROW - 18) / 2
    x2, y2 = to_column * (BOX + GAP) + 2 + BOX, to_row * ROW + 2 + (ROW - 18) / 2
    middle = (x1 + x2) / 2
    return (
        f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2 + 5} {y2}" fill="none" stroke="var(--accent)" '
        f'stroke-width="1.5"/><path d="M{x2} {y2} l8 -4 v8 z" fill="var(--accent)"/>'
        f'<text x="{x1 - 4}" y="{y1 - 5}" font-size="9" text-anchor="end" fill="var(--muted)">{escape(how)}</text>'
    )
