"""`harness problems`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.cli.options import (
    GroupedCommand,
    JsonOption,
    Only,
    SuiteOption,
    complete_problem,
    expand_panels,
    list_by_default,
    print_records,
    print_rich,
)
from harness.cli.problem_check import ReferenceLimit, SuitesFolder, check_problems, describe_contracts
from harness.cli.progress import show_slow_steps
from harness.cli.results import StoredPanel
from harness.domain import Language, Problem, ProblemError, StoreError, UsageError
from harness.domain.files import raising
from harness.languages import CPU_LANGUAGE
from harness.pipeline import listings
from harness.pipeline.data_folders import find_named_problem, find_suite_folder
from harness.pipeline.listings import BaselineTime, CaseEntry, FoundProblem, Inputs, SuiteEntry
from harness.problems.discovery import list_files, read_problem
from harness.problems.watched_process import describe_inputs, list_running_steps, set_reference_limit
from harness.report.terminal.tables import format_time_us, make_table, style_text
from harness.report.values import make_printable
from harness.shipped import find_shipped

NOTHING_FOUND_EXIT_CODE = 1
TEMPLATE, KERNEL = "scale_norm.py", "{}_right.py"  # of the shipped folder examples/

problems_app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@problems_app.callback(invoke_without_command=True)
def show_problems(context: typer.Context) -> None:
    """List the problems of a suite, or check that they can be scored.

    Example: harness problems check softmax layer_norm
    """
    list_by_default(context)


@problems_app.command("suites", cls=GroupedCommand)
@expand_panels
def list_suites(*, paths: SuitesFolder, as_json: JsonOption = False) -> None:
    """List suites: number of problems, content, folder.

    Example: harness problems suites
    """
    entries = listings.list_suites(paths.problems_dir)
    if as_json:
        print_records(*map(asdict, entries))
    else:
        print_rich(render_suites(entries))


@problems_app.command("list", cls=GroupedCommand)
@expand_panels
def list_problems(*, suite: SuiteOption = "core", paths: SuitesFolder, as_json: JsonOption = False) -> None:
    """List problems with their input shapes and tags.

    Example: harness problems list --suite core
    """
    suite_dir = find_suite_folder(suite, paths.problems_dir)
    entries = [_describe_file(path, suite) for path in list_files(suite_dir)]
    if as_json:
        print_records({"suite": suite, "problems": entries})
        return
    print_rich(render_listing(suite, entries))


@problems_app.command("find", cls=GroupedCommand)
@expand_panels
def find_problems(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that must all occur.")],
    *,
    paths: SuitesFolder,
    as_json: JsonOption = False,
) -> None:
    """Search names, tags and docstrings in all suites.

    Exit code 1 if nothing is found.

    Example: harness problems find attention paged
    """
    found = listings.search_problems(words, paths.problems_dir)
    if as_json:
        print_records(*map(asdict, found))
    elif found:
        print_rich(render_found(found))
    if not found:
        hint = listings.suggest_words(words, paths.problems_dir)
        typer.echo(f"no problem mentions {' and '.join(map(repr, words))}{hint and f'; {hint}'}", err=True)
        raise typer.Exit(NOTHING_FOUND_EXIT_CODE)


@problems_app.command("show", cls=GroupedCommand)
@expand_panels
def show_problem(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM", help="Name, SUITE/NAME, or a reference file.", autocompletion=complete_problem
        ),
    ],
    *,
    suite: SuiteOption = "core",
    paths: SuitesFolder,
    folders: Annotated[StoredPanel, Only("results_dir")],
    limits: ReferenceLimit,
    as_json: JsonOption = False,
) -> None:
    """Show settings, cases, inputs, baseline times, source.

    Example: harness problems show llm/paged_decode
    """
    problem = find_named_problem(name, suite, paths.problems_dir)
    set_reference_limit(limits.reference_timeout_s)
    with show_slow_steps("loading", list_running_steps):
        cases = listings.describe_cases(problem)
        contracts = describe_contracts(problem)
    facts = ProblemFacts(
        problem=problem,
        settings=listings.describe_settings_in_force(problem),
        unset_flags=listings.list_unset_flags(problem),
        cases=cases,
        contracts=contracts,
        baseline_times=listings.find_baseline_times(problem, folders.results_dir),
    )
    if as_json:
        print_records(record_problem(facts))
    else:
        print_rich(Group(*_list_parts(facts)))
        typer.echo(make_printable(problem.source), nl=False)  # lines are not wrapped


@problems_app.command("new", cls=GroupedCommand)
def create_problem(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or path of the file; .py is added.")],
    *,
    kernel: Annotated[
        Language | None, typer.Option(help="Also write a kernel for it: NAME_LANGUAGE.py.", metavar="LANGUAGE")
    ] = None,
) -> None:
    """Write a problem file with comments, to be edited, and a kernel to begin with.

    Both are correct as they are. Existing files are never overwritten.

    Example: harness problems new my_operator --kernel triton
    """
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if not path.stem.isidentifier() or path.stem.startswith("_"):
        raise UsageError(
            f"problem name {path.stem!r}: use letters, digits and _, beginning with a letter, such as my_operator"
        )
    files, examples = {path: TEMPLATE}, find_shipped("examples")
    if kernel is not None:
        files[path.with_stem(f"{path.stem}_{kernel}")] = example = KERNEL.format(kernel)
        if not (examples / example).exists():
            known = ", ".join(sorted(one.name.partition("_")[0] for one in examples.glob(KERNEL.format("*"))))
            raise UsageError(f"--kernel {kernel}: no kernel to begin with is written in it; choose among {known}")
    existing = next((one for one in files if one.exists()), None)
    if existing is not None:
        raise UsageError(f"{existing} exists and is not overwritten: choose another name, or move it away")
    with raising(StoreError, f"write {path}", "; choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        for one, example in files.items():
            one.write_text((examples / example).read_text(encoding="utf-8"), encoding="utf-8")
    *_, last = files
    typer.echo(f"wrote {' and '.join(map(str, files))}. Edit, then run")
    typer.echo(f"    harness problems check {path}")
    typer.echo(f"    harness evaluate {'KERNEL.py' if kernel is None else last} --problem {path}")
    if kernel == CPU_LANGUAGE:
        typer.echo("With --workload small: seconds, instead of minutes for its full sizes on a CPU.")


problems_app.command("check", cls=GroupedCommand)(expand_panels(check_problems))


def _describe_file(path: Path, suite: str) -> dict[str, Any]:
    """An invalid problem has an `error`."""
    try:
        problem = read_problem(path, suite)
        inputs = {workload.name: describe_inputs(problem, workload.name) for workload in problem.workloads}
    except ProblemError as error:
        return {"name": path.stem, "error": str(error)}
    return {
        "name": problem.name,
        "summary": problem.summary,
        "tags": list(problem.tags),
        "distributions": list(problem.distributions),
        "allow_tf32": problem.allow_tf32,
        "digest": problem.digest,
        "workloads": [{"name": name, "inputs": _record_inputs(one)} for name, one in inputs.items()],
        "cases": [case.name for case in problem.cases],
    }


def _record_inputs(inputs: Inputs) -> list[dict[str, Any]]:
    return [{"dtype": dtype, "shape": list(shape)} for dtype, shape in inputs]


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
    table = make_table("suite", ">problems", "content, folder")
    for entry in entries:
        hidden = f"not used: {entry.hidden_by} has the same name" if entry.hidden_by else ""
        content = style_text("\n".join(filter(None, (entry.summary, hidden))))
        folder = style_text(("\n" if content else "") + entry.folder, "dim")
        table.add_row(style_text(entry.name), str(entry.problems), content.append_text(folder))
    return table


def render_found(found: Sequence[FoundProblem]) -> Table:
    table = make_table("problem", "summary", least=LEAST_WIDTH)
    for entry in found:
        table.add_row(style_text(entry.name), style_text(entry.summary))
    return table


def render_listing(suite: str, entries: list[dict[str, Any]]) -> Table:
    cells_by_column = zip(*map(_describe_row, entries), strict=True)
    first = "problem, tags" if any(entry.get("tags") for entry in entries) else "problem"
    columns = dict(zip((first, "inputs, full", "small", "cases"), cells_by_column, strict=True))
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = make_table(title=f"suite {suite}: {len(entries)} problems")
    table.show_lines = True
    for name, cells in shown.items():
        longest = max(len(line) for cell in cells for line in cell.splitlines())
        table.add_column(name, overflow="fold", min_width=min(longest, LEAST_WIDTH))
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    return table


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
        "cases": [asdict(case) | {"inputs": _record_inputs(case.inputs)} for case in facts.cases],
        "baseline_times": [asdict(time) for time in facts.baseline_times],
        "source": problem.source,
    }


def _list_parts(facts: ProblemFacts) -> Iterator[RenderableType]:
    """Omit the source."""
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
    table = make_table("workload, case", "sizes", "inputs", least=LEAST_WIDTH)
    for case in facts.cases:
        changes = (
            case.sizes or "as in the file",
            f"tolerance {case.tolerance}" if case.tolerance else "",
            "" if case.timed else "not timed",
        )
        drawn = "drawn for each evaluation" if case.is_secret else ""
        inputs = case.error or drawn or _format_inputs(case.inputs, whole=True)
        name = ", ".join(filter(None, (case.workload, case.case)))
        table.add_row(style_text(name), style_text("\n".join(filter(None, changes))), style_text(inputs))
    yield table
    yield _head("Baseline times")
    yield _render_times(facts.baseline_times) if facts.baseline_times else style_text("none stored", "dim")
    yield _head("Source").append_text(style_text(f": {problem.path}"))


def _head(title: str) -> Text:
    return style_text(f"\n{title}", "bold")


def _render_pairs(pairs: dict[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(style_text(name), style_text(value))
    return table


def _render_times(times: Iterable[BaselineTime]) -> Table:
    table = make_table("workload, case", "baseline", ">time", "hardware", ">id")
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
