"""Evidence beside the verdict: system conditions, roofline position, time attribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WithoutOwn = Literal["changed", "unchanged", "failed", "not_tried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """System state during timing. `disturbed`: why the timing is unreliable, or "".

    `foreign_load`: CPU time of other processes, in cores.
    """

    foreign_load: float | None = None
    clock_low_mhz: float | None = None
    clock_high_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    disturbed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausibility:
    """Roofline of a call.

    - `moved_bytes`: inputs, weights and outputs, each once
    - `flops`: torch's count for the reference; None if unknown
    - `bound_us`: time to move the bytes at measured bandwidth; a lower bound for any program
    - `operations_us`: time for the flops at the measured rate; better algorithms may need fewer
    - `peak_fraction`: the larger bound / the candidate's time
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
    """Time attribution: shares of a call. Reported by the worker, so no verdict on speed.

    - `own`: candidate code
    - `torch`: torch operators
    - `library`: cuBLAS, cuDNN, oneDNN, ...
    - `other`: Python, launches
    - `without_own`: effect on the outputs when extension functions do nothing
    """

    own: float
    torch: float
    library: float
    other: float
    own_kernels: tuple[str, ...] = ()
    without_own: WithoutOwn = "not_tried"
