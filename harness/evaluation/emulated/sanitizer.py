"""The second look at a candidate's kernels: built so that every access and every synchronisation is checked, and run on
the emulated device with blocks and threads in several orders.

Checking is slow, so it has a workload of its own, cut to a size at which it takes seconds. A candidate may be made for
the sizes that it was asked for: what it does with others decides only where that is wrong whatever the sizes are; the
rest is looked at again at its own. Whatever is noticed is said by the worker, in favour of
nobody: what a candidate hides there its values must still stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from harness.builder import Builder
from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    BuildRequest,
    BuildResult,
    Candidate,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    ProblemError,
    WorkloadName,
)
from harness.evaluation.correctness.checks import compare_call
from harness.evaluation.correctness.reference import Reference, prepare_reference, usable_threads
from harness.evaluation.emulated.findings import (
    TIME_LIMIT,
    KernelFinding,
    choose_outcome,
    merge_kernel_findings,
    parse_kernel_findings,
    report_kernel_findings,
)
from harness.evaluation.emulated.launch_limits import LaunchChecker
from harness.evaluation.load_check import CANDIDATE_ENTRY
from harness.problems.loading import load_problem
from harness.problems.shrink import REDUCED, Budget, reduce_problem
from harness.sandbox.devices import JudgeDevice
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.memory_limits import limit_worker
from harness.sandbox.model_session import ModelSession, TimeLimits
from harness.sandbox.opening import open_session

ORDERS = ("ascending", "descending", "random")
CHECK_BUDGET = Budget(elements=60_000, flops=2_000_000)
WRONG = (Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedKernels:
    """What was noticed. `outcome` is set where a candidate that seemed right is not."""

    findings: tuple[Finding, ...]
    outcome: Outcome | None = None
    message: str = ""


@dataclass(slots=True, kw_only=True)
class _Look:
    """One look, at one size: what was noticed, and how each order ended that was not right. `elsewhere` was noticed at
    another size only; `stopped` says why there was no more to see."""

    noticed: list[KernelFinding] = field(default_factory=list)
    elsewhere: list[KernelFinding] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    unbuilt: BuildResult | None = None
    stopped: str = ""

    @property
    def holds_for_all_sizes(self) -> bool:
        if self.unbuilt is not None:
            return True
        unclear = self.stopped or ORDERS[0] in self.wrong
        return not unclear and not any(one.depends_on_sizes and one.decides for one in self.noticed)


class KernelChecker:
    """Checks kernels on an emulated device, with a builder whose libraries check."""

    def __init__(self, *, device: JudgeDevice, builder: Builder, forkserver: Forkserver, limits: TimeLimits) -> None:
        self._device = device
        self._builder = builder
        self._forkserver = forkserver
        self._limits = limits
        self.launches = LaunchChecker(device=device, forkserver=forkserver, answer_build=builder.build, limits=limits)

    def build_ahead(self, request: BuildRequest) -> None:
        """So that it is in the cache when it is needed; how it ended is met again then."""
        self._builder.build(request)

    def check(
        self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]
    ) -> CheckedKernels:
        """Looks at a candidate that runs `workload`. Where that cannot be done there is a note."""
        try:
            return _conclude(self._look_at_sizes(problem, workload, candidate, seeds))
        except HarnessError as error:
            return CheckedKernels(findings=(_note(f"not checked: {error}"),))

    def _look_at_sizes(
        self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]
    ) -> _Look:
        """At a size smaller than the workload, if problem and candidate take one, and if need be at its own."""
        cut = reduce_problem(problem, CHECK_BUDGET, start=problem.workload(workload))
        smaller = _Look()
        if cut is not None:
            with suppress(ProblemError):  # the smaller reference gives no finite outputs, or the like
                smaller = self._look(cut, REDUCED, candidate, seeds)
                if smaller.holds_for_all_sizes:
                    return smaller
        look = self._look(problem, workload, candidate, seeds)
        look.elsewhere = smaller.noticed
        return look

    def _look(self, problem: Problem, workload: WorkloadName, candidate: Candidate, seeds: Iterator[int]) -> _Look:
        look = _Look()
        reference = prepare_reference(load_problem(problem, workload), self._device, next(seeds), next(seeds))
        try:
            with self._open(candidate, reference, look) as session:
                _run_orders(session, reference, seeds, look)
        except CandidateFailure as failure:
            look.stopped = f"{failure.outcome}: {failure.message}"
        return look

    @contextmanager
    def _open(self, candidate: Candidate, reference: Reference, look: _Look) -> Iterator[ModelSession]:
        def answer(request: BuildRequest) -> BuildResult:
            result = self._builder.build(request)
            if result.extension is None:
                look.unbuilt = result
            return result

        with open_session(
            forkserver=self._forkserver,
            device=self._device,
            footprint=reference.footprint,
            source=candidate.source,
            entry=CANDIDATE_ENTRY,
            answer_build=answer,
            worker_limits=limit_worker(self._device.torch_device, reference.footprint.arena_bytes),
            limits=self._limits,
            threads=usable_threads(),
            allow_tf32=reference.loaded.problem.allow_tf32,
        ) as session:
            yield session


def _run_orders(session: ModelSession, reference: Reference, seeds: Iterator[int], look: _Look) -> None:
    session.construct(reference.seed, reference.loaded.init_inputs, training=reference.loaded.problem.training)
    session.match_weights(reference.state)
    session.hold_state(reference.changing)
    inputs = reference.make_inputs(next(seeds))
    truth = reference.truth_of(inputs)
    for order in ORDERS:
        session.check_kernels(order=order, seed=next(seeds) % 2**31)
        session.reset_state()
        try:
            outcome, trial, _ = compare_call(session, reference, inputs, truth, order)
            if outcome is not None:
                look.wrong[order] = f"{outcome}: {trial.message}"
        except CandidateFailure as failure:
            if not any(finding.check == "exception" for finding in failure.findings):
                raise  # it is not there any more
            look.wrong[order] = f"{failure.outcome}: {failure.message}"
        noticed = parse_kernel_findings(session.take_kernel_findings())
        look.noticed += [one for one in noticed if one.check != TIME_LIMIT]
        if len(look.noticed) < len(noticed):
            look.stopped = f"checked, its kernels take too long {order}"  # which says nothing about a GPU
            return
        if any(one.decides for one in look.noticed) or ORDERS[0] in look.wrong:
            return


def _conclude(look: _Look) -> CheckedKernels:
    noticed = sorted(merge_kernel_findings(look.noticed), key=lambda one: not one.decides)
    known = {(one.check, one.place) for one in noticed}
    elsewhere = [one for one in merge_kernel_findings(look.elsewhere) if (one.check, one.place) not in known]
    also = (*report_kernel_findings(elsewhere, "warning", "with other sizes"), *_explain_gap(look))
    findings = (*report_kernel_findings(noticed, "fatal"), *also)
    decisive = [one for one in noticed if one.decides]
    if decisive:
        more = f" (and {len(decisive) - 1} more)" if len(decisive) > 1 else ""
        return CheckedKernels(
            findings=findings, outcome=choose_outcome(decisive), message=decisive[0].describe() + more
        )
    if look.wrong and ORDERS[0] not in look.wrong:
        return _blame_order(look.wrong, findings)
    return CheckedKernels(findings=findings)


def _explain_gap(look: _Look) -> tuple[Finding, ...]:
    """A note where nothing could be noticed."""
    if look.noticed:
        return ()
    if look.unbuilt is not None:
        return (_note(f"not checked: {shorten_log(look.unbuilt.log)}"),)
    why = look.stopped or look.wrong.get(ORDERS[0])
    return (_note(f"not checked to the end: {why}"),) if why else ()


def _blame_order(wrong: dict[str, str], also: tuple[Finding, ...]) -> CheckedKernels:
    order, how = next(iter(wrong.items()))
    message = f"the result depends on the order in which blocks and threads run: right in {ORDERS[0]}, not in {order}"
    finding = Finding(check="order", severity="fatal", message=message, evidence=how[:2000])
    return CheckedKernels(findings=(finding, *also), outcome=Outcome.WRONG_VALUE, message=message)


@contextmanager
def explained_by_kernels(session: ModelSession, findings: list[Finding]) -> Iterator[None]:
    """Where a candidate fails on an emulated device: what was noticed in its kernels meanwhile."""
    try:
        yield
    except CandidateFailure as failure:
        answers = failure.outcome in WRONG or any(finding.check == "exception" for finding in failure.findings)
        noticed = parse_kernel_findings(session.take_kernel_findings()) if answers else []
        if not noticed:
            raise
        findings += report_kernel_findings(noticed, "warning")
        outcome = choose_outcome(noticed)
        if failure.outcome is not Outcome.RUNTIME_ERROR or outcome not in (Outcome.TIMEOUT, Outcome.NOT_RUN):
            outcome = failure.outcome
        raise CandidateFailure(outcome, f"{noticed[0].describe()}; {failure.message}", failure.findings) from failure


def explain(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same findings where they do not decide; what could not be checked explains nothing."""
    return tuple(replace(one, severity="warning") for one in findings if one.severity != "note")


def _note(message: str) -> Finding:
    return Finding(check="kernels", severity="note", message=message[:600])
