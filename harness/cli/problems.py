"""`harness problems`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import problem_tables as tables
from harness.cli.completion import complete_problem
from harness.cli.grouped_help import GroupedCommand
from harness.cli.options import JsonOption, ProblemsDirOption, ReferenceTimeoutOption, SuiteOption
from harness.cli.output import print_records, print_rich
from harness.cli.problem_check import check_problems
from harness.cli.progress import show_slow_steps
from harness.domain import Problem, ProblemError, StoreError, UsageError, WorkloadName
from harness.domain.files import explain_failure
from harness.pipeline.data_folders import find_named_problem, find_suite_folder
from harness.pipeline.listings import catalogue
from harness.problems.apart import describe_inputs, list_running_steps
from harness.problems.discovery import list_files, read_problem
from harness.problems.steps import DEFAULT_LIMIT_S, set_reference_limit
from harness.report.values import make_printable
from harness.shipped import find_shipped

NOTHING_FOUND_EXIT_CODE = 1
TEMPLATE = "scale_norm.py"  # of the shipped folder examples/

problems_app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@problems_app.callback(invoke_without_command=True)
def show_problems(context: typer.Context) -> None:
    """List the problems of a suite, or check that they can be scored.

    Example: harness problems check softmax layer_norm
    """
    if context.invoked_subcommand is None:
        listing = context.command.commands["list"]  # type: ignore[attr-defined]
        with listing.make_context("list", [], parent=context) as inner:
            listing.invoke(inner)


@problems_app.command("suites", cls=GroupedCommand)
def list_suites(problems_dir: ProblemsDirOption = None, as_json: JsonOption = False) -> None:
    """List suites: number of problems, content, folder.

    Example: harness problems suites
    """
    entries = catalogue.list_suites(problems_dir)
    if as_json:
        print_records(*map(asdict, entries))
    else:
        print_rich(tables.render_suites(entries))


@problems_app.command("list", cls=GroupedCommand)
def list_problems(
    suite: SuiteOption = "core",
    problems_dir: ProblemsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """List problems with their input shapes and tags.

    Example: harness problems list --suite core
    """
    suite_dir = find_suite_folder(suite, problems_dir)
    entries = [_describe_file(path, suite) for path in list_files(suite_dir)]
    if as_json:
        typer.echo(json.dumps({"suite": suite, "problems": entries}))
        return
    print_rich(tables.render_listing(suite, entries))


@problems_app.command("find", cls=GroupedCommand)
def find_problems(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that must all occur.")],
    problems_dir: ProblemsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search names, tags and docstrings in all suites.

    Exit code 1 if nothing is found.

    Example: harness problems find attention paged
    """
    found = catalogue.search_problems(words, problems_dir)
    if as_json:
        print_records(*map(asdict, found))
    elif found:
        print_rich(tables.render_found(found))
    if not found:
        hint = catalogue.suggest_words(words, problems_dir)
        typer.echo(f"no problem mentions {' and '.join(map(repr, words))}{hint and f'; {hint}'}", err=True)
        raise typer.Exit(NOTHING_FOUND_EXIT_CODE)


@problems_app.command("show", cls=GroupedCommand)
def show_problem(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM", help="Name, SUITE/NAME, or a reference file.", autocompletion=complete_problem
        ),
    ],
    *,
    suite: SuiteOption = "core",
    problems_dir: ProblemsDirOption = None,
    results_dir: Annotated[
        Path, typer.Option(envvar="HARNESS_RESULTS_DIR", help="Folder with results, for baseline times.")
    ] = Path("results"),
    reference_timeout: ReferenceTimeoutOption = DEFAULT_LIMIT_S,
    as_json: JsonOption = False,
) -> None:
    """Show settings, cases, inputs, baseline times, source.

    Example: harness problems show llm/paged_decode
    """
    from harness.evaluation.correctness.input_descriptions import describe_contracts

    problem = find_named_problem(name, suite, problems_dir)
    set_reference_limit(reference_timeout)
    with show_slow_steps("loading", list_running_steps):
        cases = catalogue.describe_cases(problem)
        contracts = describe_contracts(problem)
    facts = tables.ProblemFacts(
        problem=problem,
        settings=catalogue.describe_settings_in_force(problem),
        unset_flags=catalogue.list_unset_flags(problem),
        cases=cases,
        contracts=contracts,
        baseline_times=catalogue.find_baseline_times(problem, results_dir),
    )
    if as_json:
        print_records(tables.record_problem(facts))
    else:
        print_rich(tables.render_problem(facts))
        typer.echo(make_printable(problem.source), nl=False)  # lines are not wrapped


@problems_app.command("new", cls=GroupedCommand)
def create_problem(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or path of the file; .py is added.")],
) -> None:
    """Write a problem file with comments, to be edited.

    It passes `harness problems check` as it is. An existing file is never overwritten.

    Example: harness problems new my_operator
    """
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if not path.stem.isidentifier() or path.stem.startswith("_"):
        raise UsageError(
            f"problem name {path.stem!r}: use letters, digits and _, beginning with a letter, such as my_operator"
        )
    text = (find_shipped("examples") / TEMPLATE).read_text(encoding="utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} exists and is not overwritten: choose another name, or move it away") from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {explain_failure(error)}; choose another folder") from error
    typer.echo(f"wrote {path}. Edit it, then run\n    harness problems check {path}")


problems_app.command("check", cls=GroupedCommand)(check_problems)


def _describe_file(path: Path, suite: str) -> dict[str, Any]:
    """An invalid problem has an `error`."""
    try:
        problem = read_problem(path, suite)
        workloads = [_describe_workload(problem, workload.name) for workload in problem.workloads]
    except ProblemError as error:
        return {"name": path.stem, "error": str(error)}
    return {
        "name": problem.name,
        "summary": problem.summary,
        "tags": list(problem.tags),
        "distributions": list(problem.distributions),
        "allow_tf32": problem.allow_tf32,
        "digest": problem.digest,
        "workloads": workloads,
        "cases": [case.name for case in problem.cases],
    }


def _describe_workload(problem: Problem, workload: WorkloadName) -> dict[str, Any]:
    inputs = describe_inputs(problem, workload)
    return {"name": workload, "inputs": [{"dtype": dtype, "shape": list(shape)} for dtype, shape in inputs]}
