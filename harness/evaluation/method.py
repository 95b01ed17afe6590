"""Evaluates one candidate.

`evaluate_candidate` runs the cases of a workload, the smallest first. `evaluate_case` prepares the reference, opens the
candidate's worker and runs the steps below until one fails. On the emulated device a failed evaluation is repeated at
larger sizes, which the candidate may be specialised for, or at smaller ones if it was too slow.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from harness.domain import CandidateFailure, HarnessError, Outcome, Problem
from harness.evaluation.cases import list_runs, put_smallest_first
from harness.evaluation.emulated.findings import TIME_LIMIT, excuse_unsupported, has_race_at_all_sizes
from harness.evaluation.emulated.jit_compilation import compile_kernels
from harness.evaluation.emulated.sanitizer import explain
from harness.evaluation.model_construction import find_load_error
from harness.evaluation.record import EvaluationRecord
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
    confirm_wrong_call,
    measure_time,
    record_gpu_work,
    time_further_baselines,
    time_whole_calls,
)
from harness.languages import LANGUAGES
from harness.problems.loading import load_problem
from harness.problems.shrink import (
    EMULATED_BUDGET,
    PATIENT_BUDGET,
    REDUCED,
    describe_sizes,
    has_own_sizes,
    list_milder_sizes,
    reduce_problem,
)

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
        # Compile kernels of a language with its own compiler.
        if tools.checker is not None and task.kernels:
            with task.record.phase("build"):
                compiled = compile_kernels(tools.checker.launches, task.problem, task.subject.workload, task.candidate)
            task.record.findings += compiled
        if LANGUAGES[task.subject.language].compiles_only:
            only = f"the emulated device only compiles kernels of language {task.subject.language}"
            raise CandidateFailure(Outcome.NOT_RUN, f"{only}: it needs a GPU")
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
                    record.add_result(confirm_wrong_call(case, step(case)))
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


def _check_launch_limits(tools: EvaluationTools, task: CandidateTask) -> None:
    """Check the problem's own sizes if smaller ones were evaluated."""
    if tools.checker is not None and any(request.needs_cuda for request in task.record.built):
        with task.record.phase("kernels"):
            task.record.findings += tools.checker.launches.check(task.problem, task.candidate)


Evaluate = Callable[[EvaluationRecord, Problem], None]

SIZES = "size_specialised"  # a check
SMALLER = 16  # times less work
MOST_S = 120.0  # no other sizes are begun later
FIRST_BLOCK = "block (0, 0, 0)"
DUE_TO_SIZES = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.RUNTIME_ERROR, Outcome.LOAD_ERROR)


def evaluate_with_other_sizes(
    record: EvaluationRecord, problem: Problem, workload: str, evaluate: Evaluate, *, cost: int
) -> None:
    """Evaluate a candidate that fails on the reduced workload at milder reductions; the first correct result counts,
    with a warning. If the kernels are too slow, use less work. A race decides. `cost`: `LanguageRules.emulation_cost`.
    """
    failure, idle = _evaluate(record, problem, evaluate), _leaves_kernels_unused(record)
    if workload == REDUCED and failure is not None and _has_slow_kernels(record, failure):
        smaller = reduce_problem(problem, EMULATED_BUDGET.divided_by(cost * SMALLER))
        failure = failure if smaller is None else _evaluate_smaller(record, smaller, evaluate, failure)
        if failure is not None:
            raise failure
        return
    if failure is not None and has_race_at_all_sizes((*record.findings, *failure.findings)):
        raise failure
    may_be_sizes = failure is not None and (failure.outcome in DUE_TO_SIZES or _is_of_launch(record, failure))
    if workload == REDUCED and (idle or may_be_sizes) and not problem.dynamic_shapes:
        what = "its kernels are not used" if failure is None or idle else f"{failure.outcome}: {failure.message[:300]}"
        again, worse = _find_correct(record, problem, evaluate, cost)
        if again is not None:
            again.warn(SIZES, f"wrong at {record.sizes} ({what}); right at {again.sizes}")
            record.take_over(again)
            return
        failure = failure or worse
    if failure is not None:
        raise failure


def _evaluate(record: EvaluationRecord, problem: Problem, evaluate: Evaluate) -> CandidateFailure | None:
    try:
        evaluate(record, problem)
    except CandidateFailure as failure:
        return failure
    return None


def _evaluate_again(
    record: EvaluationRecord, problem: Problem, evaluate: Evaluate
) -> tuple[EvaluationRecord, CandidateFailure | None] | None:
    again = EvaluationRecord(seed=record.seed)
    try:
        return again, _evaluate(again, problem, evaluate)
    except HarnessError as error:
        record.note(SIZES, f"could not be evaluated at {again.sizes}: {error}")
        return None


def _has_slow_kernels(record: EvaluationRecord, failure: CandidateFailure) -> bool:
    """Return False if the first block does not end, as in an endless loop."""
    limits = [finding for finding in failure.findings if finding.check == TIME_LIMIT]
    is_endless = any(FIRST_BLOCK in finding.evidence for finding in limits)
    return failure.outcome is Outcome.TIMEOUT and "correctness" in record.phases_s and not is_endless


def _evaluate_smaller(
    record: EvaluationRecord, smaller: Problem, evaluate: Evaluate, failure: CandidateFailure
) -> CandidateFailure | None:
    tried = _evaluate_again(record, smaller, evaluate)
    if tried is None:
        return failure
    again, found = tried
    if found is not None and found.outcome is Outcome.TIMEOUT:
        return failure
    again.note(TIME_LIMIT, f"its kernels are too slow for a CPU at {record.sizes}; evaluated at {again.sizes}")
    record.take_over(again)
    return found


def _is_of_launch(record: EvaluationRecord, failure: CandidateFailure) -> bool:
    """Kernels that are compiled for the sizes of their arguments may not compile."""
    return failure.outcome is Outcome.BUILD_ERROR and all(build.extension is not None for build in record.builds)


def _leaves_kernels_unused(record: EvaluationRecord) -> bool:
    return any(finding.check == "decoy_kernel" for finding in record.findings)


def _find_correct(
    record: EvaluationRecord, problem: Problem, evaluate: Evaluate, cost: int
) -> tuple[EvaluationRecord | None, CandidateFailure | None]:
    idle = _leaves_kernels_unused(record)
    failed: CandidateFailure | None = None
    wrong_at, is_own_wrong = [record.sizes], has_own_sizes(problem, REDUCED)
    deadline_s = time.monotonic() + MOST_S
    for other in list_milder_sizes(problem, EMULATED_BUDGET.divided_by(cost), PATIENT_BUDGET.divided_by(cost)):
        if time.monotonic() > deadline_s:
            break
        tried = _evaluate_again(record, other, evaluate)
        if tried is None:
            continue
        again, failure = tried
        if failure is None and not (idle and _leaves_kernels_unused(again)):
            return again, None
        if failure is not None and failure.outcome in DUE_TO_SIZES:
            at = f"at {again.sizes}: {failure.message}"
            failed = failed or CandidateFailure(failure.outcome, at, failure.findings)
        if failure is not None and failure.outcome is Outcome.TIMEOUT:
            continue
        wrong_at.append(again.sizes)
        is_own_wrong |= has_own_sizes(other, REDUCED)
    if not is_own_wrong and not idle:
        record.note(SIZES, f"wrong at {'; '.join(wrong_at)}; not evaluated at the problem's own sizes")
    return None, failed
