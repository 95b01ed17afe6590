"""Renders suites and problems for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness.domain import Problem
from harness.pipeline.listings.catalogue import BaselineTime, CaseEntry, FoundProblem, Inputs, SuiteEntry
from harness.report.terminal.tables import format_time_us, make_table, style_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

LEAST_WIDTH = 16  # of a column
_CLOCKS = {"device": "device time", "call": "call time"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    problem: Problem
    settings: dict[str, str]
    unset_flags: Sequence[str]
    cases: Sequence[CaseEntry]
    contracts: dict[str, str]
    baseline_times: Sequence[BaselineTime]


def render_suites(entries: Sequence[SuiteEntry]) -> Table:
    table = make_table()
    for name, justify in (("suite", "left"), ("problems", "right"), ("content, folder", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for entry in entries:
        hidden = f"not used: {entry.hidden_by} has the same name" if entry.hidden_by else ""
        content = style_text("\n".join(filter(None, (entry.summary, hidden))))
        folder = style_text(("\n" if content else "") + entry.folder, "dim")
        table.add_row(style_text(entry.name), str(entry.problems), content.append_text(folder))
    return table


def render_found(found: Sequence[FoundProblem]) -> Table:
    table = make_table()
    table.add_column("problem", overflow="fold", min_width=LEAST_WIDTH)
    table.add_column("summary", overflow="fold", min_width=LEAST_WIDTH)
    for entry in found:
        table.add_row(style_text(entry.name), style_text(entry.summary))
    return table


def render_listing(suite: str, entries: list[dict[str, Any]]) -> Table:
    cells_by_column = zip(*map(_describe_row, entries), strict=True)
    first = "problem, tags" if any(entry.get("tags") for entry in entries) else "problem"
    columns = dict(zip((first, "inputs, full", "small", "cases"), cells_by_column, strict=True))
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = make_table(f"suite {suite}: {len(entries)} problems")
    table.show_lines = True
    for name, cells in shown.items():
        longest = max(len(line) for cell in cells for line in cell.splitlines())
        table.add_column(name, overflow="fold", min_width=min(longest, LEAST_WIDTH))
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    return table


def render_problem(facts: ProblemFacts) -> RenderableType:
    """The source is missing."""
    from rich.console import Group

    return Group(*_list_parts(facts))


def record_problem(facts: ProblemFacts) -> dict[str, Any]:
    problem = facts.problem
    return {
        "suite": problem.suite,
        "name": problem.name,
        "summary": problem.summary,
        "tags": problem.tags,
        "path": problem.path,
        "digest": problem.digest,
        "settings": facts.settings,
        "unset_flags": facts.unset_flags,
        "inputs": facts.contracts,
        "cases": [_record_case(case) for case in facts.cases],
        "baseline_times": [asdict(time) for time in facts.baseline_times],
        "source": problem.source,
    }


def _record_case(case: CaseEntry) -> dict[str, Any]:
    return asdict(case) | {"inputs": [{"dtype": dtype, "shape": list(shape)} for dtype, shape in case.inputs]}


def _list_parts(facts: ProblemFacts) -> Iterator[RenderableType]:
    problem = facts.problem
    yield style_text(f"{problem.suite}/{problem.name}", "bold").append_text(
        style_text(f": {problem.summary}" if problem.summary else "")
    )
    if problem.tags:
        yield style_text(f"tags: {', '.join(problem.tags)}")
    yield _head("Settings in force")
    yield _render_pairs(facts.settings)
    yield style_text(f"not set: {', '.join(facts.unset_flags)}", "dim")
    yield _head("Inputs")
    yield _render_pairs(facts.contracts)
    yield _head("Cases")
    yield _render_cases(facts.cases)
    yield _head("Baseline times")
    yield _render_times(facts.baseline_times) if facts.baseline_times else style_text("none stored", "dim")
    yield _head("Source").append_text(style_text(f": {problem.path}"))


def _head(title: str) -> Text:
    return style_text(f"\n{title}", "bold")


def _render_pairs(pairs: dict[str, str]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(style_text(name), style_text(value))
    return table


def _render_cases(cases: Sequence[CaseEntry]) -> Table:
    table = make_table()
    for name in ("workload, case", "sizes", "inputs"):
        table.add_column(name, overflow="fold", min_width=LEAST_WIDTH)
    for case in cases:
        changes = (
            case.sizes or "as in the file",
            f"tolerance {case.tolerance}" if case.tolerance else "",
            "" if case.timed else "not timed",
        )
        drawn = "drawn for each evaluation" if case.is_secret else ""
        inputs = case.error or drawn or _format_inputs(case.inputs, whole=True)
        name = ", ".join(filter(None, (case.workload, case.case)))
        table.add_row(style_text(name), style_text("\n".join(filter(None, changes))), style_text(inputs))
    return table


def _render_times(times: Iterable[BaselineTime]) -> Table:
    table = make_table()
    for name in ("workload, case", "baseline", "time", "hardware", "id"):
        table.add_column(name, overflow="fold", justify="right" if name in ("time", "id") else "left")
    for time in times:
        name = ", ".join(filter(None, (time.workload, time.case, time.dtype)))
        taken = f"{format_time_us(time.time_us)}\n{_CLOCKS.get(time.clock, time.clock)}"
        cells = (name, time.baseline, taken, time.hardware, str(time.evaluation))
        table.add_row(*map(style_text, cells))
    return table


def _describe_row(entry: dict[str, Any]) -> tuple[str, ...]:
    if "error" in entry:
        return entry["name"], f"not a problem: {entry['error']}", "", ""
    shapes = {
        workload["name"]: _format_inputs([(tensor["dtype"], tensor["shape"]) for tensor in workload["inputs"]])
        for workload in entry["workloads"]
    }
    named = "\n".join((entry["name"], *(f"  {tag}" for tag in entry["tags"])))
    return named, shapes["full"], shapes.get("small", ""), "\n".join(entry["cases"])


def _format_inputs(inputs: Inputs | Sequence[tuple[str, Sequence[int]]], *, whole: bool = False) -> str:
    lines = [_format_input(dtype, shape, whole=whole) for dtype, shape in inputs]
    return "\n".join(lines) or "unknown before execution"


def _format_input(dtype: str, shape: Sequence[int], *, whole: bool) -> str:
    """Omit float32 unless `whole`."""
    sizes = "x".join(map(str, shape)) or "scalar"
    return sizes if dtype == "float32" and not whole else f"{sizes} {dtype}"
