"""Checks launches at a problem's own sizes, which take too long to compute on a CPU.

Host code runs on zero inputs and no kernel runs; launches are compared with the target's limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.domain import Candidate, CandidateFailure, Finding, HarnessError, Outcome, Problem
from harness.evaluation.correctness.reference import usable_threads
from harness.evaluation.emulated.findings import KernelFinding, parse_kernel_findings, report_kernel_findings
from harness.evaluation.model_construction import CANDIDATE_ENTRY, describe_construction
from harness.problems.loading import LoadedProblem, load_problem
from harness.problems.shrink import REDUCED, Budget, keep_sizes
from harness.sandbox.arena_layout import LEAST_BYTES, measure_bytes
from harness.sandbox.devices import Device
from harness.sandbox.exchange import AnswerBuild
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.worker_client import Mode, Program, WorkerClient, open_client
from harness.sandbox.worker_process import TimeLimits

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
            entry=CANDIDATE_ENTRY,
            answer_build=answer_build or self.answer_build,
            limits=replace(self.limits, call_s=call_s, first_call_s=call_s),
            threads=usable_threads(),
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
    client.arm(client.lay_out(make_meta_inputs(loaded)))
    client.tell_go()
    client.await_called()


def make_meta_inputs(loaded: LoadedProblem) -> tuple[Any, ...]:
    return tuple(loaded.make_inputs(0, torch.device("meta")))


def _note(why: str) -> Finding:
    return Finding(check="launches", severity="note", message=f"launches {WHEN} were not checked: {why}"[:500])
