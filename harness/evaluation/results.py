"""What a step of an evaluation found."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.domain import (
    BaselineResult,
    Correctness,
    CounterReport,
    Finding,
    Outcome,
    RooflineBounds,
    Timing,
    WithoutCustom,
    Work,
)

Owner = Literal["custom", "torch", "library", "other"]


class WrongCall(NamedTuple):
    """A timed call. `seed` is that of its inputs if its outputs have wrong values."""

    reason: str
    seed: int | None = None

    @property
    def message(self) -> str:
        return self.reason if self.seed is None else f"a timed call was wrong, untimed ones were correct: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """`outcome` is None if passed. Other facts replace those of the record unless None."""

    findings: tuple[Finding, ...] = ()
    outcome: Outcome | None = None
    message: str = ""
    correctness: Correctness | None = None
    timing: Timing | None = None
    roofline: RooflineBounds | None = None
    work: Work | None = None
    counters: CounterReport | None = None
    further: tuple[BaselineResult, ...] = ()
    wrong_call: WrongCall | None = None

    def __post_init__(self) -> None:
        if self.outcome is None and any(finding.severity == "fatal" for finding in self.findings):
            raise ValueError("a step with a fatal finding needs an outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedKernels:
    """Names of kernels, whose they are, and their device time in us in the call, where that of several is the others';
    what a replay without the candidate's own ones gives, and how long it takes (`others_us`). The call took
    `measured_us` when it was timed, without events around its `operations`. Of the outputs that the candidate's kernels
    write, they have `computed` this share, and copied the rest. `doubts` are reasons why their share may be smaller.
    """

    rows: tuple[tuple[str, Owner, float], ...]
    without_custom: WithoutCustom
    others_us: float | None = None
    measured_us: float | None = None
    operations: int = 0
    computed: float = 1.0
    is_general: bool = True  # otherwise replays are right only for the inputs of the recording
    unverified: tuple[str, ...] = ()  # of the candidate's: those whose origin only names tell
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingResult(StepResult):
    timing: Timing
