"""Compiles for a real GPU, in workers without one, what a program compiles in its first calls.

The evaluation's workers get the files, so that their first calls need not compile. See `jit_compilation`.
"""

from __future__ import annotations

from contextlib import suppress

from harness.domain import Candidate, HarnessError, Problem, WorkloadName
from harness.evaluation.cases import list_runs
from harness.evaluation.emulated.jit_compilation import REPORT_S
from harness.evaluation.emulated.launch_limits import LaunchChecker, call_host_code, construct, make_meta_inputs
from harness.problems.loading import LoadedProblem, load_problem
from harness.sandbox.arena_layout import measure_bytes
from harness.sandbox.build_requests import AnswerBuild
from harness.sandbox.failure import CandidateFailure

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
