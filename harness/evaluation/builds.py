"""Answers the build requests of candidates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from threading import Thread

from harness.builder.builder import Builder
from harness.domain import EMULATED, BuildRequest, BuildResult, BuiltAhead, Candidate, Finding, HarnessError, Outcome
from harness.evaluation.emulated.sanitizer import KernelChecker
from harness.evaluation.record import EvaluationRecord
from harness.languages import LANGUAGES, compiles_in_worker
from harness.sandbox.exchange import AnswerBuild
from harness.sandbox.worker_process import TimeLimits

SECOND_LOAD_SHARE = 1 / 8  # of the time limits


class CandidateBuilds:
    """Thread-safe. `builds_beside` also builds for `checker`, which needs an untimed device."""

    def __init__(
        self, builder: Builder, checker: KernelChecker | None, nvcc: NvccCheck | None, *, builds_beside: bool = False
    ) -> None:
        self.builder = builder
        self._checker = checker
        self._builds_beside = builds_beside
        self.nvcc = nvcc
        self._built_ahead: dict[str, BuildResult] = {}
        self._hung_ahead: set[str] = set()  # digests of candidates

    def add_ahead(self, ahead: BuiltAhead, candidate: Candidate | None) -> None:
        self._built_ahead |= ahead.builds
        if ahead.hung and candidate is not None:
            self._hung_ahead.add(candidate.digest)

    def reduce_limits(self, limits: TimeLimits, candidate: Candidate) -> TimeLimits:
        """Return the limits for a candidate: only one that compiles in its worker has longer for its first call."""
        share = SECOND_LOAD_SHARE if candidate.digest in self._hung_ahead else 1.0
        first_call_s = limits.first_call_s if compiles_in_worker(candidate.source) else limits.call_s
        return replace(limits, load_s=limits.load_s * share, first_call_s=first_call_s)

    def answer_for(self, record: EvaluationRecord, candidate: Candidate, *, ahead: bool = False) -> AnswerBuild:
        """Return a function that builds and records requests; `ahead` also builds for the sanitizer."""

        def answer(request: BuildRequest) -> BuildResult:
            refusal = LANGUAGES[candidate.language].refuses(request)
            result = self._refuse(request, refusal) if refusal else self._build(request, ahead=ahead)
            record.add_build(request, result)
            return result

        return answer

    def _build(self, request: BuildRequest, *, ahead: bool) -> BuildResult:
        if self._builds_beside and not ahead and self._checker is not None and request.needs_cuda:
            Thread(target=self._checker.build_ahead, args=(request,), daemon=True).start()
        result = self.builder.build(request)
        if self.nvcc is not None:
            result = self.nvcc.correct(result)
        if ahead and self._checker is not None and request.needs_cuda and result.extension is not None:
            self._checker.build_ahead(request)
        if result.status == "cached":
            # The record shows the prebuild with its duration, once.
            result = self._built_ahead.pop(result.key, result)
        return result

    def _refuse(self, request: BuildRequest, reason: str) -> BuildResult:
        key, log = self.builder.key(request), f"error: {reason}"
        return BuildResult(key=key, status="refused", extension=None, log=log, duration_s=0.0)


class NvccCheck:
    def __init__(self, compiler: Builder) -> None:
        self._compiler = compiler
        self._corrected: dict[str, BuildResult] = {}  # by key of the emulated build

    def correct(self, result: BuildResult) -> BuildResult:
        return self._corrected.get(result.key, result)

    def find_disagreement(self, record: EvaluationRecord) -> bool:
        """Return True if a result changed, so the candidate must run again."""
        differs = False
        with record.phase("nvcc"):
            for request, result in zip(record.requests, record.builds, strict=True):
                if not request.needs_cuda or result.strategy != EMULATED or result.key in self._corrected:
                    continue
                try:
                    corrected = reconcile_builds(result, self._compiler.build(request))
                except HarnessError as error:
                    message = f"not compiled with nvcc: {error}"
                    record.findings.append(Finding(check="nvcc", severity="note", message=message))
                    continue
                if corrected is not result:
                    self._corrected[result.key] = corrected
                    differs = True
        return differs


def may_change_verdict(builds: Iterable[BuildResult], outcome: Outcome) -> bool:
    """nvcc may refuse a correct program, or build one that the emulator does not. It excuses no failure at run time."""
    return outcome in (Outcome.CORRECT, Outcome.NOT_RUN) or any(build.extension is None for build in builds)


def reconcile_builds(emulated: BuildResult, compiled: BuildResult) -> BuildResult:
    """A failure of nvcc counts; one of the emulator alone is a gap in its coverage."""
    if compiled.status in ("failed", "refused"):
        return compiled
    if compiled.extension is not None and emulated.status == "failed":
        log = f"nvcc builds it, the emulated device does not:\n{emulated.log}"
        return replace(emulated, status="uncovered", log=log)
    return emulated
