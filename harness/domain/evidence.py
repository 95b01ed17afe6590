"""What was seen beside the verdict: the state of the machine while time was taken, how near to the device's limits a
candidate came, and whose code did its work. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WithoutOwn = Literal["changed", "unchanged", "failed", "not_tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The machine while a timing was taken. `disturbed` says why the timing is not to be relied on; "" if it is calm.

    `foreign_load` is processor time that other processes took, in cores (1.0: one core the whole time).
    """

    foreign_load: float | None = None
    clock_low_mhz: float | None = None
    clock_high_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    disturbed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausibility:
    """How near a call comes to what the device can do at all.

    `moved_bytes` are inputs, weights and outputs, each once; `flops` is what torch's counter counts for the reference
    (None: nothing it knows). `bound_us` is the time that moving the bytes takes at the device's measured bandwidth: no
    program can be faster. `operations_us` is what the reference's operations take at the measured matrix rate; a
    better algorithm may need fewer. `peak_fraction` is the larger of both, as a share of the candidate's time.
    """

    moved_bytes: int
    flops: int | None
    bandwidth_gb_s: float
    tflops: float
    bound_us: float
    operations_us: float | None
    peak_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Whose code a call's time was spent in, as shares of it that add up to 1. The worker's claim: reported, never a
    verdict on speed.

    `own` is the candidate's compiled code, `torch` torch's own operators, `library` vendor libraries (cuBLAS, cuDNN,
    oneDNN, ...), `other` the rest (Python, launches). `without_own` says what became of the outputs when the
    candidate's extension functions were replaced by ones that do nothing.
    """

    own: float
    torch: float
    library: float
    other: float
    own_kernels: tuple[str, ...] = ()
    without_own: WithoutOwn = "not_tried"
