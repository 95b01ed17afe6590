"""`harness problems check`."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from harness.cli.options import JsonOption, Only, SuiteOption, complete_problem, print_records, print_rich
from harness.cli.progress import show_slow_steps
from harness.domain import Admission, Check, InputContract, Problem, ProblemError, ReferenceStopped, UsageError
from harness.domain.options import RunFolders
from harness.executors.settings import LocalSettings
from harness.hardware.host import list_gpus
from harness.pipeline.data_folders import find_named_problem, find_suite_folder
from harness.problems.discovery import list_files
from harness.problems.setting_names import describe_settings
from harness.problems.watched_process import list_running_steps, run_apart, set_reference_limit
from harness.report.terminal.tables import make_table, style_text

if TYPE_CHECKING:
    from harness.problems.inputs.traits import InputTraits
    from harness.problems.loading import LoadedProblem

REJECTED_EXIT_CODE = 1
STOPPED = "problem_error"
CHECK_SEED = 0
CALLED_WITH, OTHER_KINDS = "called with", "others that its operators permit"
NOT_REACHED = "not reached"  # cases of the reference
UNREACHED_S, MOST_CALLS = 1.0, 200
UNKNOWN = "unknown: not stated, and too large to draw without smaller sizes"
MOST_ELEMENTS = 1 << 26  # of inputs at their own sizes, for a description
SHAPES_ONLY = "shapes only: values not checked"
FULL_SHAPES_ONLY = "admitted; of full sizes only shapes"
SuitesFolder = Annotated[RunFolders, Only("problems_dir")]
ReferenceLimit = Annotated[LocalSettings, Only("reference_timeout")]


def check_problems(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROBLEM",
            help="Names, SUITE/NAME, or reference files. [default: all of the suite]",
            autocompletion=complete_problem,
            show_default=False,
        ),
    ] = None,
    *,
    suite: SuiteOption = "core",
    paths: SuitesFolder,
    device: Annotated[str, typer.Option(envvar="HARNESS_DEVICE", help="auto, cpu or cuda:N.")] = "cpu",
    limits: ReferenceLimit,
    as_json: JsonOption = False,
) -> None:
    """Check that problems can be scored.

    The reference must pass, and zeros, a constant, the identity, a stale buffer, a coarser number format and a 99 %
    partial answer must all fail, in every case. If there is a small workload, that is checked; the full one runs, and
    its values are checked if that takes a few seconds.

    Exit code 1 if a problem is rejected for any reason, 2 for wrong usage.

    Example: harness problems check softmax my_problem.py
    """
    problems_dir = paths.problems_dir
    wanted = names or [path.stem for path in list_files(find_suite_folder(suite, problems_dir))]
    set_reference_limit(limits.reference_timeout_s)
    with show_slow_steps("checking", list_running_steps):
        found = {name: _read_named(name, suite, problems_dir) for name in wanted}
        admissions = tuple(_admit_with_progress(found, _choose_device(device)))
        contracts = _describe_inputs(found, admissions)
    settings = {one.name: describe_settings(one) for one in found.values() if isinstance(one, Problem)}
    if as_json:
        print_records(_record_check(suite, admissions, settings, contracts))
    else:
        print_rich(_make_report("" if names else f"suite {suite}: ", admissions))
        _print_settings(settings)
        _print_contracts(contracts)
        _print_rejections(admissions)
    if not all(admission.admitted for admission in admissions):
        raise typer.Exit(REJECTED_EXIT_CODE)


def _read_named(name: str, suite: str, problems_dir: Path | None) -> Problem | ProblemError:
    try:
        return find_named_problem(name, suite, problems_dir)
    except ProblemError as error:
        return error


def _choose_device(name: str) -> str:
    count = len(list_gpus())
    if name == "auto":
        return "cuda:0" if count else "cpu"
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda") or not (index or "0").isdecimal():
        raise UsageError(f"no device {name!r}: expected auto, cpu or cuda:N")
    if kind == "cuda" and int(index or 0) >= count:
        raise UsageError(f"{name} was requested, but torch sees {count} CUDA devices; use --device cpu")
    return name


def _admit_with_progress(found: dict[str, Problem | ProblemError], device: str) -> Iterator[Admission]:
    console = Console(stderr=True)
    hidden = not console.is_terminal  # it would print an empty line
    for name in track(found, description="checking", console=console, transient=True, disable=hidden):
        yield from _admit(name, found[name], device)


def _admit(name: str, problem: Problem | ProblemError, device: str) -> Iterator[Admission]:
    try:
        if isinstance(problem, ProblemError):
            raise problem
        yield from run_apart(_list_admissions, problem, device)
    except ProblemError as error:
        check = Check(
            name=STOPPED if isinstance(error, ReferenceStopped) else "loads", passed=False, evidence=str(error)
        )
        yield Admission(problem=Path(name).name.removesuffix(".py"), workload="none", checks=(check,))


def _list_admissions(problem: Problem, device: str) -> list[Admission]:
    import torch

    from harness.evaluation.case_validation import admit_cases

    return list(admit_cases(problem, torch.device(device), CHECK_SEED))


def _describe_inputs(
    found: dict[str, Problem | ProblemError], admissions: tuple[Admission, ...]
) -> dict[str, dict[str, str]]:
    rejected = {admission.problem for admission in admissions if not admission.admitted}
    problems = [one for one in found.values() if isinstance(one, Problem)]
    return {one.name: describe_contracts(one) for one in problems if one.name not in rejected}


def _record_check(
    suite: str,
    admissions: tuple[Admission, ...],
    settings: dict[str, dict[str, str]],
    contracts: dict[str, dict[str, str]],
) -> dict[str, Any]:
    problems = [
        asdict(admission)
        | {
            "admitted": admission.admitted,
            "settings": settings.get(admission.problem, {}),
            "inputs": contracts.get(admission.problem, {}),
        }
        for admission in admissions
    ]
    return {"suite": suite, "admitted": all(admission.admitted for admission in admissions), "problems": problems}


def _make_report(title: str, admissions: tuple[Admission, ...]) -> Table:
    problems = {admission.problem for admission in admissions}
    rejected = {admission.problem for admission in admissions if not admission.admitted}
    admitted = f"{title}{len(problems - rejected)} of {len(problems)} problems admitted"
    table = make_table("problem", "workload, case", ">checks", "=verdict", title=admitted)
    for admission in admissions:
        made = len(admission.checks) - len(admission.skipped)
        workload = ", ".join(filter(None, (admission.workload, admission.case)))
        checks = f"{made - len(admission.failed)}/{made}"
        table.add_row(admission.problem, workload, checks, _describe_verdict(admission))
    return table


def _describe_verdict(admission: Admission) -> str:
    if not admission.admitted:
        return "rejected"
    if not admission.skipped:
        return "admitted"
    return SHAPES_ONLY if admission.workload == "full" else FULL_SHAPES_ONLY


def _print_settings(settings: dict[str, dict[str, str]]) -> None:
    for problem, in_force in settings.items():
        if in_force.keys() == {"TAGS"}:  # as of each captured problem
            continue
        stated = "; ".join(f"{name} {value}" for name, value in in_force.items())
        print_rich(style_text(f"settings of {problem}: {stated or 'none'}"))


def _print_contracts(contracts: dict[str, dict[str, str]]) -> None:
    for problem, words in contracts.items():
        inputs = (f"{name}: {text}" for name, text in words.items() if name != NOT_REACHED)
        print_rich(style_text(f"inputs of {problem}: {'; '.join(inputs)}"))
        if NOT_REACHED in words:
            print_rich(style_text(f"{problem}, {NOT_REACHED} {words[NOT_REACHED]}"))


def _print_rejections(admissions: tuple[Admission, ...]) -> None:
    for admission in admissions:
        for check in admission.failed:
            where = f", case {admission.case}" if admission.case else ""
            print_rich(style_text(f"{admission.problem}{where}: {check.name}: {check.evidence}"))


def describe_contracts(problem: Problem) -> dict[str, str]:
    """Return words by argument of `forward`, with bounds as the problem states them, and the kinds of inputs as
    `CALLED_WITH`. Runs the reference at small sizes, in another process.
    """
    stated = {one.argument: one.describe_source() for one in problem.inputs}
    try:
        found, kinds, unreached = run_apart(_infer_contracts, problem)
    except ReferenceStopped:
        raise
    except ProblemError:
        return stated or {"inputs": UNKNOWN}
    words: dict[str, list[str]] = {}
    for one in found:
        words.setdefault(one.argument, []).append(one.describe_source())
    inferred = {argument: "; ".join(dict.fromkeys(lines)) for argument, lines in words.items()}
    return inferred | stated | {CALLED_WITH: ", ".join(kinds)} | unreached


Inferred = tuple[tuple[InputContract, ...], tuple[str, ...], dict[str, str]]


def _infer_contracts(problem: Problem) -> Inferred:
    """Return the names of kinds of inputs, too, and which cases calls with these do not reach. Raises ProblemError."""
    from harness.problems.loading import load_problem
    from harness.problems.shrink import EMULATED_BUDGET, PATIENT_BUDGET, keep_sizes, reduce_problem

    last = problem.workloads[-1].name
    if last != "full":
        return _infer_from(load_problem(problem, last))
    reduced = reduce_problem(problem, EMULATED_BUDGET) or keep_sizes(problem, PATIENT_BUDGET)
    if reduced is not None:
        return _infer_from(load_problem(reduced, "reduced"))
    whole = load_problem(problem, "full")
    if sum(math.prod(shape) for _, shape in whole.describe_inputs()) > MOST_ELEMENTS:
        raise ProblemError(f"{problem.name}: {UNKNOWN}")
    return _infer_from(whole, runs=False)


def _infer_from(loaded: "LoadedProblem", *, runs: bool = True) -> Inferred:
    """Without a run of the reference, infer from draws alone."""
    import torch

    from harness.construction.weights import HOST
    from harness.evaluation.correctness.input_plan import infer_contracts, learn_traits, watch_reference
    from harness.evaluation.correctness.truth import copy_tensors, run_reference
    from harness.problems.inputs.kind import GIVEN
    from harness.problems.inputs.kinds import list_declared, list_derived
    from harness.problems.inputs.rare import Draws
    from harness.problems.operators import NO_USE

    declared = (GIVEN, *list_declared(loaded.problem))
    with torch.no_grad():
        inputs = loaded.make_inputs(0, HOST)
        use = None
        if runs:
            model = loaded.make_model(0, HOST)
            with suppress(ProblemError):
                outputs = run_reference(loaded, model, copy_tensors(inputs)).tensors
                traits = learn_traits(loaded, model, inputs, outputs, changing={}, device=HOST)
                if traits.is_known:
                    kinds = tuple(kind.name for kind in (*declared, *list_derived(traits, inputs)))
                    return traits.contracts, kinds, _find_unreached(loaded, traits, kinds)
            use = watch_reference(loaded, model, inputs, {}, HOST)
        contracts, _ = infer_contracts(loaded, inputs, use or NO_USE, Draws(), HOST)
    unknown = () if loaded.problem.only_as_given else (OTHER_KINDS,)
    return tuple(contracts), (*(kind.name for kind in declared), *unknown), {}


def _find_unreached(loaded: "LoadedProblem", traits: "InputTraits", kinds: Sequence[str]) -> dict[str, str]:
    """Call the reference with each kind in turn; state changes from call to call."""
    from harness.construction.weights import HOST
    from harness.evaluation.correctness.truth import run_reference
    from harness.problems.reference_cases import ReferenceCases

    model, until_s, calls = loaded.make_model(0, HOST), time.monotonic() + UNREACHED_S, 0
    watch = ReferenceCases(str(loaded.module.__file__))
    for seed in range(MOST_CALLS):
        is_complete = seed >= len(kinds) and not watch.describe_unreached()
        if is_complete or time.monotonic() > until_s:
            break
        with suppress(ProblemError):
            inputs = loaded.make_inputs(seed, HOST, kinds[seed % len(kinds)], traits=traits)
            with watch:
                run_reference(loaded, model, inputs)
            calls += 1
    unreached = watch.describe_unreached()
    return {NOT_REACHED: f"in {calls} calls: {'; '.join(unreached)}"} if unreached else {}
