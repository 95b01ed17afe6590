from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from harness.domain import Fidelity
from harness.domain.options import option
from harness.evaluation.timing.plan import TimingPlan
from harness.sandbox.worker_process import TimeLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """Without `attribute_work`, a suite's requirement of a custom kernel is not checked. Without `measure_noise`, the
    device type's noise floor is used. `plan` is that of fidelity `full`.
    """

    title: ClassVar[str] = "Evaluation"

    fidelity: Fidelity = option("full", "correctness: no timing; quick: fewer timed pairs, wider interval.")
    time: bool = option(True, "--no-time: as --fidelity correctness.")
    profile: bool | None = option(
        None, "Read hardware counters of correct GPU programs with ncu. [default: in timed searches]"
    )
    energy: bool = option(False, "Measure the energy of a call on a GPU, by replays in a row.", "--energy")
    asan: bool = option(
        False, "Also call C++ candidates on a CPU under AddressSanitizer, which names invalid accesses.", "--asan"
    )
    plan: TimingPlan = field(default_factory=TimingPlan)
    limits: TimeLimits = field(default_factory=TimeLimits)
    attribute_work: bool = True
    measure_noise: bool = True

    def __post_init__(self) -> None:
        if not self.time:
            object.__setattr__(self, "fidelity", "correctness")

    @property
    def measure_time(self) -> bool:
        return self.fidelity != "correctness"

    @property
    def timed_plan(self) -> TimingPlan:
        """`quick` has fewer pairs, hence a wider interval. The checks of timed calls and the noise floor stay."""
        if self.fidelity != "quick":
            return self.plan
        return replace(
            self.plan,
            budget_s=self.plan.budget_s / 4,
            min_blocks=min(self.plan.min_blocks, 10),
            max_blocks=min(self.plan.max_blocks, 40),
            wanted_half_width=max(self.plan.wanted_half_width, 0.03),
            attempts=min(self.plan.attempts, 2),
        )
