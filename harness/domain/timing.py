"""Times of a candidate against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.domain.evidence import Conditions

TimingVerdict = Literal["faster", "tie", "slower", "unreliable", "unconfirmed"]
Baseline = Literal["eager", "eager-tf32", "compile", "compile-max-autotune", "library"]
LIBRARY_CLASS = "Library"  # a problem's best library call: a subclass of its Model


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedBaseline:
    """`name` is a `Baseline`; for a user's module with `source`, the file's stem and the source's digest. `entry` is
    the class in that source or the problem's file.
    """

    name: str = "eager"
    entry: str = "Model"
    source: str = ""


EAGER = (TimedBaseline(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One timed block: equally many calls of baseline and candidate, each on fresh inputs. Times in µs per call.

    - `*_reported_us`: reported by the worker; on a GPU measured by the evaluator, until it has the outputs
    - `*_evaluator_us`: measured by the evaluator, message exchange included; on a GPU with the writing of inputs
    - `baseline_loading_us`: reported for copying the state before the call (CPU), not in the reported time
    - `*_copy_us`: until the evaluator had the outputs (CPU, some blocks)
    """

    calls: int
    baseline_reported_us: float
    candidate_reported_us: float
    baseline_evaluator_us: float
    candidate_evaluator_us: float
    baseline_loading_us: float = 0.0
    baseline_copy_us: float | None = None
    candidate_copy_us: float | None = None


Clock = Literal["call", "device", "bound", "mixed"]
INEXACT = ("bound", "mixed")  # clocks whose speedups are no ratios of equal times


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Paired timing against a named baseline, in µs per call. For several cases, times and speedups are geometric
    means.

    The interval covers the scatter of the blocks, the noise floor, and time that the evaluator's clock cannot exclude.
    `attempts` counts measurements, since disturbed ones are repeated. `clock` is "device" for replays of recorded GPU
    work and "call" for whole calls. "bound" compares the candidate's whole calls with replays of the baseline, so the
    speedup is a lower bound. "mixed" means that cases differ. `*_bytes` of device memory hold weights, outputs and
    workspace of a replayed call, and `*_mj` is its energy; of several cases, the largest memory.
    `*_call_us` are whole calls on a GPU by the evaluator's clock, whatever `clock` decides.
    """

    baseline: str
    baseline_us: float
    candidate_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    verdict: TimingVerdict
    blocks: tuple[Block, ...]
    overhead_us: float
    noise_floor: float | None = None
    resolution_us: float | None = None
    conditions: Conditions | None = None
    attempts: int = 1
    clock: Clock = "call"
    baseline_bytes: int | None = None
    candidate_bytes: int | None = None
    baseline_mj: float | None = None
    candidate_mj: float | None = None
    baseline_call_us: float | None = None
    candidate_call_us: float | None = None

    def __post_init__(self) -> None:
        if not self.baseline:
            raise ValueError("a timing must name its baseline")
        if min(self.baseline_us, self.candidate_us, self.speedup) <= 0:
            raise ValueError("times and speedups are positive")
        if not self.speedup_low <= self.speedup <= self.speedup_high:
            raise ValueError(
                f"speedup {self.speedup} lies outside its interval [{self.speedup_low}, {self.speedup_high}]"
            )

    @property
    def call_speedup(self) -> float | None:
        """Of whole calls, without an interval: it decides nothing."""
        if self.baseline_call_us is None or self.candidate_call_us is None:
            return None
        return self.baseline_call_us / self.candidate_call_us

    @property
    def ranked_speedup(self) -> float | None:
        """None without a confirmed time; 1 for a tie."""
        if self.verdict == "tie":
            return 1.0
        return None if self.verdict in ("unreliable", "unconfirmed") else self.speedup


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """Timing against a further baseline, without blocks. `reason` says why there is none."""

    name: str
    timing: Timing | None = None
    reason: str = ""
