"""Runs kernels in an instrumented build on the emulated device, with blocks and threads in several orders.

A smaller workload comes first, whose findings decide only if they hold at any size.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from harness.builder.builder import Builder
from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    BuildRequest,
    BuildResult,
    Candidate,
    CandidateFailure,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    ProblemError,
    WorkloadName,
)
from harness.domain.options import TimeLimits
from harness.evaluation.correctness.checks import compare_run
from harness.evaluation.correctness.reference import Reference, prepare_reference
from harness.evaluation.emulated.findings import (
    INTERPRETER,
    TIME_LIMIT,
    UNWRITTEN,
    KernelFinding,
    choose_outcome,
    excuse_compiled,
    merge_kernel_findings,
    parse_kernel_findings,
    put_causes_first,
    report_kernel_findings,
)
from harness.evaluation.emulated.jit_compilation import LaunchChecker, list_compiled
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.results import StepResult
from harness.problems.loading import load_problem
from harness.problems.shrink import REDUCED, Budget, reduce_problem
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.model_session import ModelSession, open_session
from harness.sandbox.worker_client import Program

ORDERS = ("ascending", "descending", "random")
CHECK_BUDGET = Budget(elements=60_000, flops=2_000_000)
WRONG = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE)


@dataclass(slots=True, kw_only=True)
class _SanitizerPass:
    """`wrong` tells how failing orders ended; `stopped` tells why the pass ended early."""

    found: list[KernelFinding] = field(default_factory=list)
    at_other_sizes: list[KernelFinding] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    unbuilt: BuildResult | None = None
    stopped: str = ""

    @property
    def holds_for_all_sizes(self) -> bool:
        if self.unbuilt is not None:
            return True
        unclear = self.stopped or ORDERS[0] in self.wrong
        return not unclear and not any(one.depends_on_sizes and one.decides for one in self.found)


class KernelChecker:
    def __init__(self, *, device: Device, builder: Builder, forkserver: Forkserver, limits: TimeLimits) -> None:
        self._device = device
        self._builder = builder
        self._forkserver = forkserver
        self._limits = limits
        self.launches = LaunchChecker(device=device, forkserver=forkserver, answer_build=builder.build, limits=limits)

    def build_ahead(self, request: BuildRequest) -> None:
        """Ignore failures, which recur in the check."""
        with suppress(HarnessError):
            self._builder.build(request)

    def check(self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]) -> StepResult:
        try:
            return _conclude(self._check_sizes(problem, workload, candidate, seeds))
        except HarnessError as error:
            return StepResult(findings=(_note(f"not checked: {error}"),))

    def _check_sizes(
        self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]
    ) -> _SanitizerPass:
        cut = reduce_problem(problem, CHECK_BUDGET, start=problem.workload(workload))
        smaller = _SanitizerPass()
        if cut is not None:
            with suppress(ProblemError):  # the smaller reference may give non-finite outputs
                smaller = self._check_at_size(cut, REDUCED, candidate, seeds)
                if smaller.holds_for_all_sizes:
                    return smaller
        sanitized = self._check_at_size(problem, workload, candidate, seeds)
        sanitized.at_other_sizes = smaller.found
        return sanitized

    def _check_at_size(
        self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]
    ) -> _SanitizerPass:
        sanitized = _SanitizerPass()
        reference = prepare_reference(load_problem(problem, workload), self._device, next(seeds), next(seeds))
        try:
            with self._open(candidate, reference, sanitized) as session:
                _run_orders(session, reference, seeds, sanitized)
        except CandidateFailure as failure:
            sanitized.stopped = f"{failure.outcome}: {failure.message}"
        return sanitized

    @contextmanager
    def _open(self, candidate: Candidate, reference: Reference, sanitized: _SanitizerPass) -> Iterator[ModelSession]:
        def answer(request: BuildRequest) -> BuildResult:
            result = self._builder.build(request)
            if result.extension is None:
                sanitized.unbuilt = result
            return result

        program = Program(
            source=candidate.source,
            answer_build=answer,
            limits=self._limits,
            allow_tf32=reference.loaded.problem.allow_tf32,
        )
        with open_session(self._forkserver.spawn, self._device, reference.footprint, program) as session:
            yield session


def _run_orders(session: ModelSession, reference: Reference, seeds: Iterator[int], sanitized: _SanitizerPass) -> None:
    construct_with_state(session, reference)
    inputs = reference.make_inputs(next(seeds))
    truth = reference.truth_of(inputs)
    for order in ORDERS:
        session.client.check_kernels(order=order, seed=next(seeds) % 2**31)
        session.reset_state()
        try:
            outcome, trial = compare_run(session.call(inputs, reference.device), truth, reference, order)
            if outcome is not None:
                sanitized.wrong[order] = f"{outcome}: {trial.message}"
        except CandidateFailure as failure:
            if not failure.is_exception:
                raise  # the worker is gone
            sanitized.wrong[order] = f"{failure.outcome}: {failure.message}"
        found = parse_kernel_findings(session.client.take_kernel_findings())
        sanitized.found += [one for one in found if one.check not in (TIME_LIMIT, INTERPRETER)]
        if any(one.check == TIME_LIMIT for one in found):
            sanitized.stopped = f"instrumented kernels exceed the time limit {order}"  # says nothing about a GPU
            return
        unwritten = any(one.check == UNWRITTEN for one in sanitized.found)  # another order may show the race behind it
        if any(one.decides and one.check != UNWRITTEN for one in sanitized.found):
            return
        if ORDERS[0] in sanitized.wrong and not unwritten:
            return


def _conclude(sanitized: _SanitizerPass) -> StepResult:
    found = put_causes_first(merge_kernel_findings(sanitized.found))
    at_other_sizes = [one for one in merge_kernel_findings([*found, *sanitized.at_other_sizes]) if one not in found]
    also = (*report_kernel_findings(at_other_sizes, "warning", "with other sizes"), *_explain_gap(sanitized))
    findings = (*report_kernel_findings(found, "fatal"), *also)
    decisive = [one for one in found if one.decides]
    if decisive:
        more = f" (and {len(decisive) - 1} more)" if len(decisive) > 1 else ""
        return StepResult(findings=findings, outcome=choose_outcome(decisive), message=decisive[0].describe() + more)
    if sanitized.wrong and ORDERS[0] not in sanitized.wrong:
        return _blame_order(sanitized.wrong, findings)
    return StepResult(findings=findings)


def _explain_gap(sanitized: _SanitizerPass) -> tuple[Finding, ...]:
    if sanitized.found:
        return ()
    if sanitized.unbuilt is not None:
        return (_note(f"not checked: {shorten_log(sanitized.unbuilt.log)}"),)
    why = sanitized.stopped or sanitized.wrong.get(ORDERS[0])
    return (_note(f"not fully checked: {why}"),) if why else ()


def _blame_order(wrong: dict[str, str], also: tuple[Finding, ...]) -> StepResult:
    order, how = next(iter(wrong.items()))
    message = f"the result depends on the order in which blocks and threads run: right in {ORDERS[0]}, not in {order}"
    finding = Finding(check="order", severity="fatal", message=message, evidence=how[:2000])
    return StepResult(findings=(finding, *also), outcome=Outcome.WRONG_VALUE, message=message)


@contextmanager
def explained_by_kernels(session: ModelSession, findings: list[Finding]) -> Iterator[None]:
    try:
        yield
    except CandidateFailure as failure:
        answers = failure.outcome in WRONG or failure.is_exception
        found = parse_kernel_findings(session.client.take_kernel_findings()) if answers else []
        found = excuse_compiled(found, list_compiled(findings))
        if not found:
            raise
        found = put_causes_first(merge_kernel_findings(found))
        findings += report_kernel_findings(found, "warning")
        outcome = choose_outcome(found)
        if failure.outcome is not Outcome.RUNTIME_ERROR or outcome not in (Outcome.TIMEOUT, Outcome.NOT_RUN):
            outcome = failure.outcome
        consequence = _drop_repetition(failure.message, found[0].message)
        raise CandidateFailure(outcome, f"{found[0].describe()}; {consequence}", failure.findings) from failure


def _drop_repetition(message: str, cause: str) -> str:
    rest, _, repeated = message.removesuffix(")").partition(" (")
    return rest if repeated and cause.startswith(repeated) else message


def explain(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(replace(one, severity="warning") for one in findings if one.severity != "note")


def _note(message: str) -> Finding:
    return Finding(check="kernels", severity="note", message=message[:600])
