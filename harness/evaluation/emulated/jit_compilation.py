"""Compiles the kernels of a JIT language for the emulated GPU, as launched at the problem's own sizes.

Host code runs on zero inputs in a separate, untrusted worker, which compiles each launch and runs no kernel. Its
answers can only make a verdict worse. For a real GPU the evaluation's workers get the compiled files, so that their
first calls need not compile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from harness.domain import (
    BuildRequest,
    BuildResult,
    Candidate,
    CandidateFailure,
    Finding,
    HarnessError,
    Outcome,
    Problem,
    WorkloadName,
)
from harness.evaluation.cases import list_runs
from harness.evaluation.emulated.findings import KernelFinding, parse_kernel_findings, report_kernel_findings
from harness.evaluation.emulated.launch_limits import BUDGET, LaunchChecker, call_host_code, construct, make_meta_inputs
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.shrink import REDUCED, keep_sizes
from harness.sandbox.arena_layout import measure_bytes
from harness.sandbox.exchange import AnswerBuild
from harness.sandbox.worker_client import WorkerClient

COMPILED, COMPILE_ERROR = "compiled", "compile_error"
REPORT_S = 120.0


@dataclass(slots=True, kw_only=True)
class _Compilation:
    found: list[KernelFinding] = field(default_factory=list)
    failure: CandidateFailure | None = None

    @property
    def compiled(self) -> list[str]:
        return sorted({one.kernel for one in self.found if one.check == COMPILED})

    @property
    def refused(self) -> list[KernelFinding]:
        return [one for one in self.found if one.decides]

    @property
    def is_conclusive(self) -> bool:
        return self.failure is None or bool(self.refused)


def list_compiled(findings: Iterable[Finding]) -> frozenset[str]:
    """Return kernels that the compiler accepted, according to a check's findings."""
    return frozenset(name for one in findings if one.check == "compile" for name in one.evidence.split(", "))


def compile_kernels(
    launches: LaunchChecker, problem: Problem, workload: WorkloadName, candidate: Candidate
) -> tuple[Finding, ...]:
    """Raises CandidateFailure if the program cannot be loaded, a kernel is refused, or findings are forged."""
    compilation = _Compilation()
    for loaded in _list_sizes(problem, workload):
        compilation = _compile(launches, loaded, candidate)
        if compilation.is_conclusive:
            break
    return _conclude(compilation)


def _compile(launches: LaunchChecker, loaded: LoadedProblem, candidate: Candidate) -> _Compilation:
    compilation, unbuilt = _Compilation(), []

    def answer(request: BuildRequest) -> BuildResult:
        result = launches.answer_build(request)
        unbuilt.extend([result] if result.extension is None else [])
        return result

    try:
        call_s = launches.limits.first_call_s
        with launches.open(loaded, candidate, call_s=call_s, mode="compile", answer_build=answer) as client:
            compilation.failure = _run_host_code(client, loaded)
            compilation.found = parse_kernel_findings(client.take_kernel_findings(timeout_s=REPORT_S))
    except CandidateFailure as failure:
        if failure.outcome is Outcome.SUSPECT or (failure.outcome is Outcome.LOAD_ERROR and not unbuilt):
            raise
        compilation.failure = failure
    except HarnessError as error:
        compilation.failure = CandidateFailure(Outcome.NOT_RUN, str(error))
    return compilation


def _list_sizes(problem: Problem, workload: WorkloadName) -> Iterator[LoadedProblem]:
    whole = keep_sizes(problem, BUDGET)
    if whole is not None:
        yield load_problem(whole, REDUCED)
    yield load_problem(problem, workload)


def _run_host_code(client: WorkerClient, loaded: LoadedProblem) -> CandidateFailure | None:
    """Raises CandidateFailure if the worker has ended."""
    try:
        construct(client, loaded)
        call_host_code(client, loaded)
    except CandidateFailure as failure:
        if not any(finding.check == "exception" for finding in failure.findings):
            raise
        return failure
    return None


def _conclude(compilation: _Compilation) -> tuple[Finding, ...]:
    refused, failure = compilation.refused, compilation.failure
    if refused and (failure is not None or not compilation.compiled):
        first = refused[0]
        outcome = Outcome.BUILD_ERROR if first.check == COMPILE_ERROR else Outcome.RUNTIME_ERROR
        raise CandidateFailure(outcome, first.describe(), report_kernel_findings(refused, "fatal"))
    others = [one for one in compilation.found if one.check != COMPILED]
    findings = list(report_kernel_findings(others, "warning"))
    if compilation.compiled:
        names = ", ".join(compilation.compiled)
        message = f"compiled for the emulated GPU: {names}"
        findings.append(Finding(check="compile", severity="note", message=message[:500], evidence=names))
    if failure is not None:
        message = f"its kernels may not all have been compiled: {failure.message}"
        timed_out = failure.outcome is Outcome.TIMEOUT
        findings.append(Finding(check="compile", severity="warning" if timed_out else "note", message=message[:500]))
    return tuple(findings)


MOST_INPUT_BYTES = 2 << 30  # since several programs are compiled at a time
CALL_S = 120.0


class CompilationAhead:
    def __init__(self, launches: LaunchChecker) -> None:
        self._launches = launches

    def compile(self, problem: Problem, workload: WorkloadName, candidate: Candidate) -> dict[str, str]:
        """Return the files for all cases with known sizes. Failures occur again in the evaluation."""
        files: dict[str, str] = {}
        with suppress(CandidateFailure, HarnessError):
            for chosen, run in list_runs(problem, workload, seed=0):
                if not run.is_secret:
                    files = self._call(load_problem(chosen, workload), candidate, files) or files
        return files

    def build(self, problem: Problem, workload: WorkloadName, candidate: Candidate, answer: AnswerBuild) -> None:
        """Build what the first call requests. Failures occur again in the evaluation."""
        with suppress(CandidateFailure, HarnessError):
            first, _ = list_runs(problem, workload, seed=0)[0]
            self._call(load_problem(first, workload), candidate, {}, answer)

    def _call(
        self, loaded: LoadedProblem, candidate: Candidate, files: dict[str, str], answer: AnswerBuild | None = None
    ) -> dict[str, str]:
        if measure_bytes(make_meta_inputs(loaded)) > MOST_INPUT_BYTES:
            return {}
        call_s = min(CALL_S, self._launches.limits.first_call_s)
        opened = self._launches.open(
            loaded, candidate, call_s=call_s, mode="compile_all", compiled=files, answer_build=answer
        )
        with opened as client:
            with suppress(CandidateFailure):  # of host code that needs values; some kernels may be compiled
                construct(client, loaded)
                call_host_code(client, loaded)
            return client.read_compiled(timeout_s=REPORT_S)
