"""Keeps references of one problem's cases on a GPU for its next candidates with the same seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness.domain import Problem, ProblemTooLarge
from harness.evaluation.correctness.reference import Reference, prepare_reference
from harness.problems.loading import LoadedProblem
from harness.sandbox.devices import Device
from harness.sandbox.memory_plan import Thrift
from harness.sandbox.workers_ahead import WorkersAhead

KEPT_SHARE = 4  # a reference is kept while so many times its plan's memory are free


class PreparedReferences:
    """References are kept, and workers wait, only if memory is plentiful, so that no check is dropped for them."""

    def __init__(self, ahead: WorkersAhead) -> None:
        self._ahead = ahead
        self._kept: list[Reference] = []
        self._kept_for: tuple[str, int] | None = None  # problem, and the seed of an evaluation

    def begin(self, problem: Problem, seed: int) -> None:
        """Call before each evaluation: others of the same problem and seed have the same references."""
        if self._kept_for != (problem.digest, seed):
            self.close()
        self._kept_for = problem.digest, seed

    @contextmanager
    def borrow(
        self, loaded: LoadedProblem, device: Device, seeds: tuple[int, int], thrift: Thrift
    ) -> Iterator[Reference]:
        """Do not keep a reference after a failed allocation. For `seeds` and errors see `prepare_reference`."""
        reference = self._take(loaded, seeds, thrift) or self._prepare(loaded, device, seeds, thrift)
        try:
            yield reference
        finally:
            is_plentiful = device.keeps_references and thrift == "planned" and reference.has_full_plan
            if is_plentiful and reference.plan.device_bytes * KEPT_SHARE < device.measure_room().device_bytes:
                self._kept.append(reference)
            else:
                reference.close()

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    def _take(self, loaded: LoadedProblem, seeds: tuple[int, int], thrift: Thrift) -> Reference | None:
        if thrift != "planned":
            self._ahead.release()
            self.close()
        for kept in self._kept:
            if (kept.seed, kept.loaded.workload, kept.loaded.problem) == (seeds[0], loaded.workload, loaded.problem):
                self._kept.remove(kept)
                return kept
        return None

    def _prepare(self, loaded: LoadedProblem, device: Device, seeds: tuple[int, int], thrift: Thrift) -> Reference:
        if self._ahead.some_wait or self._kept:
            with suppress(ProblemTooLarge):
                reference = prepare_reference(loaded, device, *seeds, thrift=thrift)
                if reference.has_full_plan:
                    return reference
                del reference
            self._ahead.release()
            self.close()
        return prepare_reference(loaded, device, *seeds, thrift=thrift)
