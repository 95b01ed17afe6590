"""Compiles a JIT language's kernels for the emulated GPU, as launched at the problem's own sizes, and compares launches
with its limits.

Host code runs on zero inputs in an untrusted worker, and no kernel; its answers can only make a verdict worse.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from harness.domain import (
    AnswerBuild,
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
from harness.domain.options import TimeLimits
from harness.evaluation.cases import list_runs
from harness.evaluation.emulated.findings import KernelFinding, parse_kernel_findings, report_kernel_findings
from harness.evaluation.model_construction import describe_construction
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.shrink import REDUCED, Budget, keep_sizes
from harness.protocol.channel import Mode
from harness.sandbox.arena_layout import LEAST_BYTES, measure_bytes
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.worker_client import Program, WorkerClient, open_client

# The work of torch operators in host code that a CPU does in seconds.
BUDGET = Budget(elements=250_000_000, flops=40_000_000_000)
CALL_S = 30.0
WHEN = "at the problem's own sizes"
OF_A_LAUNCH = ("launch", "too_many", "too_much")
# Launches may depend on values computed by kernels.
READS_VALUES = re.compile(
    r"\.item\b|\.cpu\(|kCPU|DeviceToHost|MemcpyDefault|local_scalar|\.tolist|\.numpy|nonzero|unique|masked_select"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchChecker:
    device: Device
    forkserver: Forkserver
    answer_build: AnswerBuild
    limits: TimeLimits

    def check(self, problem: Problem, candidate: Candidate) -> tuple[Finding, ...]:
        """Return warnings. Raises CandidateFailure (runtime_error) if a launch fails by its sizes alone."""
        whole = keep_sizes(problem, BUDGET)
        if whole is None:
            return (_note("they take too long on a CPU, or their cost is unknown"),)
        loaded = load_problem(whole, REDUCED)
        try:
            with self.open(loaded, candidate) as client:
                found = _launch(client, loaded)
        except (CandidateFailure, HarnessError) as failure:
            return (_note(str(failure)),)
        refused = [one for one in found if one.decides and any(word in one.check for word in OF_A_LAUNCH)]
        if not refused:
            return ()
        if READS_VALUES.search(candidate.source):
            return report_kernel_findings(refused, "warning", WHEN)
        findings = report_kernel_findings(refused, "fatal", WHEN)
        raise CandidateFailure(Outcome.RUNTIME_ERROR, f"{WHEN}: {refused[0].describe()}", findings)

    @contextmanager
    def open(
        self,
        loaded: LoadedProblem,
        candidate: Candidate,
        *,
        call_s: float = CALL_S,
        mode: Mode = "plain",
        answer_build: AnswerBuild | None = None,
        compiled: Mapping[str, str] | None = None,
    ) -> Iterator[WorkerClient]:
        arena_bytes = max(measure_bytes(loaded.init_inputs), measure_bytes(make_meta_inputs(loaded)), LEAST_BYTES)
        program = Program(
            source=candidate.source,
            answer_build=answer_build or self.answer_build,
            limits=replace(self.limits, call_s=call_s, first_call_s=call_s),
            allow_tf32=loaded.problem.allow_tf32,
            mode=mode,
            compiled=compiled or {},
        )
        with open_client(self.forkserver.spawn, self.device, arena_bytes, program) as (client, _):
            yield client


def _launch(client: WorkerClient, loaded: LoadedProblem) -> list[KernelFinding]:
    client.check_kernels(launches_only=1, own_inputs=False)
    construct(client, loaded)
    try:
        call_host_code(client, loaded)
    except CandidateFailure as failure:
        if failure.outcome is not Outcome.RUNTIME_ERROR:
            raise
    return parse_kernel_findings(client.take_kernel_findings())


def construct(client: WorkerClient, loaded: LoadedProblem) -> None:
    client.construct(0, loaded.init_inputs, **describe_construction(loaded))


def call_host_code(client: WorkerClient, loaded: LoadedProblem) -> None:
    """Inputs are never written."""
    placed = client.lay_out(make_meta_inputs(loaded))
    client.arm(placed)
    client.tell_go(placed)
    client.await_called()


def make_meta_inputs(loaded: LoadedProblem) -> tuple[Any, ...]:
    return tuple(loaded.make_inputs(0, torch.device("meta")))


def _note(why: str) -> Finding:
    return Finding(check="launches", severity="note", message=f"launches {WHEN} were not checked: {why}"[:500])


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
        if compilation.failure is None or compilation.refused:
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
        if not failure.is_exception:
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
