"""Allocations that fail in the evaluator: whose memory it was, and nothing kept by the exception."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.domain import Finding, Outcome
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.memory_limits import is_out_of_memory

HOARD_BYTES = 1 << 30  # beyond what was planned for a worker, that its process may hold without being blamed
HOARD_SHARE = 0.5  # of what was planned, likewise


@dataclass(frozen=True, slots=True)
class Hoarding:
    """What a worker's processes hold of the device, and what was planned for them."""

    held_bytes: int
    planned_bytes: int

    @property
    def is_excessive(self) -> bool:
        return self.held_bytes > self.planned_bytes * (1 + HOARD_SHARE) + HOARD_BYTES

    def __str__(self) -> str:
        return f"its process holds {self.held_bytes >> 20} MiB of the device; {self.planned_bytes >> 20} were planned"


class MemoryCharge:
    """Made before a candidate's worker is started. `planned_bytes` is what its process is expected to take;
    `shared_bytes` are allocated by the evaluator meanwhile, beside torch's own memory."""

    def __init__(self, device: Device, planned_bytes: int, shared_bytes: int) -> None:
        self._device = device
        self._planned_bytes = planned_bytes
        self._before_bytes = self._count_others() + shared_bytes

    def look(self) -> Hoarding:
        return Hoarding(max(self._count_others() - self._before_bytes, 0), self._planned_bytes)

    @contextmanager
    def charging(self) -> Iterator[None]:
        """Around all that is done while the worker lives. Raises CandidateFailure (out_of_memory) where an allocation
        of the evaluator failed while the worker held far more of the device than was planned for it; says what it held
        where its own failed."""
        try:
            yield
        except CandidateFailure as failure:
            if failure.outcome is not Outcome.OUT_OF_MEMORY or not self._device.is_cuda:
                raise
            message = f"{failure.message}; {self.look()}"
            raise CandidateFailure(failure.outcome, message, failure.findings) from failure
        except Exception as error:
            hoarding = self.look()
            if not is_out_of_memory(error) or not hoarding.is_excessive:
                raise
            message = f"an allocation of the evaluator failed: {hoarding}"
            finding = Finding(check="memory_hoarding", severity="fatal", message=message, evidence=str(error)[:2000])
            raise CandidateFailure(Outcome.OUT_OF_MEMORY, message, (finding,)) from error

    def _count_others(self) -> int:
        """What other processes have of the device, and this one outside of torch."""
        return self._device.count_used_bytes() - self._device.count_own_bytes()


def forget_frames(error: BaseException) -> None:
    """Clears the local variables of all functions that an exception came through, and what caused it: tensors among
    them would live as long as it does, which is until the next garbage collection where one of them names it."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        left += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
