"""Compiles sources of the emulated device with nvcc, if installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.builder import Builder
from harness.domain import EMULATED, BuildResult, Finding, HarnessError, Outcome
from harness.evaluation.record import EvaluationRecord


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
