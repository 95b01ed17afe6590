"""The dtype that was chosen for a problem: where it cannot be had, nothing is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harness.domain import Outcome, Problem, ProblemError, ProblemTooLarge, ReferenceStopped
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure

TF32_CAPABILITY = (8, 0)


@contextmanager
def require_dtype(problem: Problem, device: Device | None) -> Iterator[None]:
    """Raises CandidateFailure (not_run) for a device without the dtype, and instead of a ProblemError inside."""
    if not problem.precision:
        yield
        return
    if problem.precision == "tf32" and device is not None and not _has_tf32(device):
        raise CandidateFailure(Outcome.NOT_RUN, f"{device.name} has no TF32 units: --dtype tf32 needs an Ampere GPU")
    try:
        yield
    except (ProblemTooLarge, ReferenceStopped):
        raise
    except ProblemError as error:
        raise CandidateFailure(Outcome.NOT_RUN, f"not evaluated in {problem.precision}: {error}") from error


def _has_tf32(device: Device) -> bool:
    return device.is_cuda and torch.cuda.get_device_capability(device.torch_device) >= TF32_CAPABILITY
