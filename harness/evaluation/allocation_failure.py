"""Attributes allocation failures in the evaluator."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.domain import Finding, Outcome
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.memory_limits import is_out_of_memory

HOARD_BYTES = 3 << 30  # allowed beyond the planned memory of a worker: others may have started since
HOARD_SHARE = 0.5  # of the planned memory, also allowed


@dataclass(frozen=True, slots=True)
class Hoarding:
    held_bytes: int
    planned_bytes: int

    @property
    def is_excessive(self) -> bool:
        return self.held_bytes > self.planned_bytes * (1 + HOARD_SHARE) + HOARD_BYTES

    def __str__(self) -> str:
        return f"its process holds {self.held_bytes >> 20} MiB of the device; {self.planned_bytes >> 20} were planned"


class MemoryCharge:
    """Create it before the worker starts. `planned_bytes` are expected for the worker; the evaluator meanwhile
    allocates `shared_bytes` outside torch.
    """

    def __init__(self, device: Device, planned_bytes: int, shared_bytes: int) -> None:
        self._device = device
        self._planned_bytes = planned_bytes
        self._before_bytes = self._count_others() + shared_bytes

    def measure(self) -> Hoarding:
        return Hoarding(max(self._count_others() - self._before_bytes, 0), self._planned_bytes)

    @contextmanager
    def attributing_failures(self) -> Iterator[None]:
        """Raises CandidateFailure (out_of_memory) if an evaluator's allocation fails while the worker holds far more
        than planned.
        """
        try:
            yield
        except CandidateFailure as failure:
            if failure.outcome is not Outcome.OUT_OF_MEMORY or not self._device.count_used_bytes():
                raise
            message = f"{failure.message}; {self.measure()}"
            raise CandidateFailure(failure.outcome, message, failure.findings) from failure
        except Exception as error:
            hoarding = self.measure()
            if not is_out_of_memory(error) or not hoarding.is_excessive:
                raise
            message = f"an allocation of the evaluator failed: {hoarding}"
            finding = Finding(check="memory_hoarding", severity="fatal", message=message, evidence=str(error)[:2000])
            raise CandidateFailure(Outcome.OUT_OF_MEMORY, message, (finding,)) from error

    def _count_others(self) -> int:
        return self._device.count_used_bytes() - self._device.count_own_bytes()


def forget_frames(error: BaseException) -> None:
    """Clear the locals of all frames of an exception and its causes, since they keep tensors alive."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        left += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
