"""Reads hardware counters in a separate worker under ncu, which runs inside the isolation."""

from __future__ import annotations

import threading

from harness.domain import Candidate, CounterReport, HarnessError
from harness.evaluation.builds import CandidateBuilds
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.counters.ncu import (
    explain_missing,
    explain_obstacle,
    find_ncu,
    make_plain,
    make_profiler,
    parse_counters,
)
from harness.evaluation.integrity.attribution import CustomKernels, classify_kernel, name_kernel
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.model_workers import ModelWorkers
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.memory_limits import is_out_of_memory
from harness.sandbox.worker_process import TimeLimits
from harness.sandbox.workers_ahead import WorkersAhead

LIMIT_S = 18.0  # from the start of the worker to the end of the output
NO_ISOLATION = "ncu was not started: a program that it profiles needs bubblewrap or namespaces around it"
NO_KERNEL = "ncu saw no launch of a custom kernel"


class CounterReader:
    def __init__(self, forkserver: Forkserver, builds: CandidateBuilds, limit_s: float = LIMIT_S) -> None:
        self._forkserver = forkserver
        self._builds = builds
        self._limit_s = limit_s

    def read(self, candidate: Candidate, reference: Reference, seed: int, custom: CustomKernels) -> CounterReport:
        """Read the counters of one call, after a first one. A failure is a note and does not change the verdict."""
        obstacle = explain_obstacle() or ("" if self._forkserver.can_profile else NO_ISOLATION)
        if obstacle or not custom.names:
            return CounterReport(note=obstacle or "the candidate has no custom kernel")
        profiled = self._forkserver.profile_with(make_profiler(find_ncu() or "ncu", custom.names))
        watchdog = threading.Timer(self._limit_s, profiled.abort)
        watchdog.start()
        try:
            failure = self._call(profiled, candidate, reference, seed)
        finally:
            printed = profiled.finish(self._limit_s)
            late = not watchdog.is_alive()
            watchdog.cancel()
        return make_report(printed, custom, f"ncu was ended after {self._limit_s:g} s" if late else failure)

    def _call(self, profiled: Forkserver, candidate: Candidate, reference: Reference, seed: int) -> str:
        try:
            workers = ModelWorkers(WorkersAhead(profiled, None), self._builds, TimeLimits())
            with workers.open_candidate(candidate, reference, mode="count") as session:
                construct_with_state(session, reference)
                session.profile(reference.make_inputs(seed))
        except (CandidateFailure, HarnessError, OSError) as error:  # OSError: of /proc, once its processes are killed
            return f"the candidate failed under ncu: {make_plain(str(error))}"
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return f"there was not enough memory: {make_plain(str(error))}"
        return ""


def make_report(printed: str, custom: CustomKernels, failure: str = "") -> CounterReport:
    def is_custom(kernel: str) -> bool:
        return custom.holds(name_kernel(kernel)) and classify_kernel("", kernel, custom) == "custom"

    try:
        kernels = parse_counters(printed, is_custom)
    except ValueError as error:
        return CounterReport(note=str(error))
    note = explain_missing(printed) or failure
    return CounterReport(kernels=kernels, note=note or ("" if kernels else NO_KERNEL))
