"""Keeps references of the last problems' cases on a GPU for their next candidates with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.domain import Problem, ProblemTooLarge
from harness.evaluation.correctness.reference import Reference, prepare_reference
from harness.problems.loading import LoadedProblem
from harness.sandbox.devices import Device
from harness.sandbox.memory_plan import Thrift
from harness.sandbox.workers_ahead import WorkersAhead

KEPT_SHARE = 4  # a reference is kept while so many times its plan's memory are free
KEPT_PROBLEMS = 4  # builds end in any order, so candidates of a few problems alternate
Key = tuple[str, int]  # problem, and the seed of an evaluation


class PreparedReferences:
    """References are kept, and workers wait, only if memory is plentiful, so that no check is dropped for them."""

    def __init__(self, ahead: WorkersAhead) -> None:
        self._ahead = ahead
        self._kept: list[tuple[Key, Reference]] = []
        self._last: list[Key] = []  # the newest at the end

    def begin(self, problem: Problem, seed: int) -> None:
        """Call before each evaluation: others of the same problem and seed have the same references."""
        key = problem.digest, seed
        others = [one for one in self._last if one[0] != problem.digest]
        self._last = [*others[1 - KEPT_PROBLEMS :], key]
        self._drop(lambda one: one not in self._last)

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
                self._kept.append((self._last[-1], reference))
            else:
                reference.close()

    def close(self) -> None:
        self._drop(lambda _: True)

    def _drop(self, is_dropped: Callable[[Key], bool]) -> None:
        dropped = [reference for key, reference in self._kept if is_dropped(key)]
        self._kept = [one for one in self._kept if not is_dropped(one[0])]
        for reference in dropped:
            reference.close()

    def _take(self, loaded: LoadedProblem, seeds: tuple[int, int], thrift: Thrift) -> Reference | None:
        if thrift != "planned":
            self._ahead.release()
            self.close()
        wanted = seeds[0], loaded.workload, loaded.problem
        for at, (_, kept) in enumerate(self._kept):
            if (kept.seed, kept.loaded.workload, kept.loaded.problem) == wanted:
                return self._kept.pop(at)[1]
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
