"""Evaluates one candidate.

`evaluate_candidate` runs the cases of a workload, the smallest first. For each case `evaluate_case` prepares the
reference, opens the candidate's worker and runs the steps below in order; the first failure ends the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from harness.domain import CandidateFailure, Outcome
from harness.evaluation.cases import list_runs, put_smallest_first
from harness.evaluation.emulated.findings import excuse_unsupported
from harness.evaluation.emulated.jit_compilation import compile_kernels
from harness.evaluation.emulated.other_sizes import evaluate_with_other_sizes
from harness.evaluation.emulated.sanitizer import explain
from harness.evaluation.model_construction import find_load_error
from harness.evaluation.results import StepResult
from harness.evaluation.steps import (
    CandidateTask,
    CaseContext,
    EvaluationTools,
    attribute_time,
    check_addresses,
    check_outputs,
    confirm_custom_kernels,
    open_case,
    probe_robustness,
    read_counters,
    wait_for_quiet,
)
from harness.evaluation.timing_steps import (
    compare_rival,
    measure_time,
    record_gpu_work,
    time_further_baselines,
    time_whole_calls,
)
from harness.languages import LANGUAGES
from harness.problems.loading import load_problem
from harness.problems.shrink import REDUCED, describe_sizes, has_own_sizes

Step = Callable[[CaseContext], StepResult]

# On a CPU the candidate's worker is timed beside the baseline's; probes come last, since one may crash it.
WITH_KEPT_WORKER: tuple[Step, ...] = (
    check_addresses,
    check_outputs,
    wait_for_quiet,
    attribute_time,
    measure_time,
    time_further_baselines,
    compare_rival,
    confirm_custom_kernels,
    probe_robustness,
)
# On a GPU the worker has no work left after the probes: what was recorded before is replayed after its end. On a CPU
# whose memory is too short for two workers, further ones follow.
WITH_FURTHER_WORKERS: tuple[Step, ...] = (
    check_addresses,
    check_outputs,
    time_whole_calls,
    record_gpu_work,
    probe_robustness,
    measure_time,
    time_further_baselines,
    attribute_time,
    compare_rival,
    confirm_custom_kernels,
    read_counters,
)
EXPLAINABLE = (Outcome.WRONG_VALUE, Outcome.RUNTIME_ERROR)  # the sanitizer may find the cause


def evaluate_candidate(tools: EvaluationTools, task: CandidateTask) -> None:
    """Raises CandidateFailure on any outcome but correct."""
    record, source, rules = task.record, task.candidate.source, LANGUAGES[task.subject.language]
    if task.candidate.not_run:
        raise CandidateFailure(Outcome.NOT_RUN, task.candidate.not_run)
    load_error = find_load_error(source)
    if load_error is not None:
        raise CandidateFailure(Outcome.LOAD_ERROR, load_error)
    if not rules.writes_kernels:
        task = replace(task, problem=replace(task.problem, requires_kernel=False))
    _require_device(tools, task)
    evaluate_with_other_sizes(
        record,
        task.problem,
        task.subject.workload,
        lambda attempt, problem: _evaluate_workload(tools, replace(task, record=attempt, problem=problem)),
        cost=rules.emulation_cost,
    )
    if tools.is_emulated and not has_own_sizes(task.problem, task.subject.workload):
        _check_launch_limits(tools, task)


def _require_device(tools: EvaluationTools, task: CandidateTask) -> None:
    """Raises CandidateFailure if the device cannot run the language, or if an extension is known to have failed."""
    record, rules = task.record, LANGUAGES[task.subject.language]
    missing = rules.find_missing(tools.is_emulated)
    if missing is not None:
        raise CandidateFailure(Outcome.NOT_RUN, missing)
    if tools.device is None:
        tools.load_only(record, task.problem, task.subject.workload, task.candidate)
        where = f"{' or '.join(rules.devices)}, and not on the chosen device"
        message = (
            f"{record.describe_builds()}, but language {task.subject.language} runs on {where} (--device, --language)"
        )
        if not record.builds and not task.kernels:
            message = (
                f"the program has no custom kernel, so it counts as language {task.subject.language}, which runs on "
                f"{where}: choose another --device, or evaluate plain PyTorch with --language torch"
            )
        raise CandidateFailure(Outcome.NOT_RUN, message)
    if tools.device.has_contexts and any(build.extension is None for build in task.ahead.builds.values()):
        tools.require_builds(task)


def _evaluate_workload(tools: EvaluationTools, task: CandidateTask) -> None:
    """Evaluate every case; run the sanitizer at the first case's sizes."""
    problem, workload, record = task.problem, task.subject.workload, task.record
    record.sizes = describe_sizes(problem, REDUCED) if workload == REDUCED else ""
    if tools.is_emulated:
        _compile_kernels(tools, task)
    runs = list_runs(problem, workload, record.seed)
    with record.in_order([run.name for _, run in runs]):
        for chosen, run in put_smallest_first(runs, workload):
            with record.at_case(run):
                evaluate_case(tools, replace(task, problem=chosen, run=run))
    if record.cases:
        record.combine_cases()
    _sanitize_kernels(tools, replace(task, problem=runs[0][0]), decides=tools.is_emulated)


def evaluate_case(tools: EvaluationTools, task: CandidateTask) -> None:
    record, device = task.record, tools.require_device()
    loaded = load_problem(task.problem, task.subject.workload, device.torch_device)
    tools.prepare_device(task)
    seeds = record.draw_seeds(task.run.name)
    try:
        with ExitStack() as stack:
            with record.phase("reference"):
                borrowed = tools.prepared.borrow(
                    loaded, tools.require_device(), (next(seeds), next(seeds)), record.thrift
                )
                reference = stack.enter_context(borrowed)
            with record.blaming_builds():
                case = stack.enter_context(open_case(tools, task, reference, seeds))
                for step in WITH_KEPT_WORKER if case.keeps_worker else WITH_FURTHER_WORKERS:
                    record.add_result(step(case))
    except CandidateFailure as failure:
        if failure.outcome in EXPLAINABLE:
            _sanitize_kernels(tools, task, decides=False)
        if tools.is_emulated:
            excuse_unsupported(task.candidate.source, failure, LANGUAGES[task.subject.language].modules)
        raise


def _sanitize_kernels(tools: EvaluationTools, task: CandidateTask, *, decides: bool) -> None:
    """Without `decides` only add warnings."""
    record = task.record
    builds_cuda = any(request.needs_cuda for request in record.built)
    runs_host_code = tools.is_emulated and bool(record.built)
    if tools.checker is None or not (builds_cuda or runs_host_code or task.kernels):
        return
    with record.phase("kernels"):
        checked = tools.checker.check(task.problem, task.subject.workload, task.candidate, record.draw_seeds())
    record.findings += checked.findings if decides else explain(checked.findings)
    if decides and builds_cuda and tools.builds.nvcc is None:
        message = "not compiled with nvcc (not found, or disabled), which may reject what the emulator accepts"
        record.note("nvcc", message)
    if decides and checked.outcome is not None:
        raise CandidateFailure(checked.outcome, checked.message)


def _compile_kernels(tools: EvaluationTools, task: CandidateTask) -> None:
    """Compile kernels of a language with its own compiler. Raises CandidateFailure if they can only be compiled."""
    if tools.checker is not None and task.kernels:
        with task.record.phase("build"):
            compiled = compile_kernels(tools.checker.launches, task.problem, task.subject.workload, task.candidate)
        task.record.findings += compiled
    if LANGUAGES[task.subject.language].compiles_only:
        only = f"the emulated device only compiles kernels of language {task.subject.language}"
        raise CandidateFailure(Outcome.NOT_RUN, f"{only}: it needs a GPU")


def _check_launch_limits(tools: EvaluationTools, task: CandidateTask) -> None:
    """Check the problem's own sizes if smaller ones were evaluated."""
    if tools.checker is not None and any(request.needs_cuda for request in task.record.built):
        with task.record.phase("kernels"):
            task.record.findings += tools.checker.launches.check(task.problem, task.candidate)
