"""The dtype that was chosen for a problem: where it cannot be had, nothing is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.domain import Outcome, Problem, ProblemError, ProblemTooLarge, ReferenceStopped
from harness.sandbox.devices import Device
from harness.sandbox.failure import CandidateFailure


@contextmanager
def require_dtype(problem: Problem, device: Device | None) -> Iterator[None]:
    """Raises CandidateFailure (not_run) for a device without the dtype, and instead of a ProblemError inside."""
    if not problem.precision:
        yield
        return
    if problem.precision == "tf32" and device is not None and not device.has_tf32:
        raise CandidateFailure(Outcome.NOT_RUN, f"{device.name} has no TF32 units: --dtype tf32 needs an Ampere GPU")
    try:
        yield
    except (ProblemTooLarge, ReferenceStopped):
        raise
    except ProblemError as error:
        raise CandidateFailure(Outcome.NOT_RUN, f"not evaluated in {problem.precision}: {error}") from error
