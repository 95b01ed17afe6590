from dataclasses import dataclass, field, replace
from typing import ClassVar

from harness.domain import Fidelity
from harness.domain.options import TimeLimits, option

PATIENCE = 10.0  # times the budget: then fewer pairs are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    compared_calls: int = 3
    screened_share: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPlan:
    """A candidate cannot lower the minimum number of blocks, except by being slower in every one."""

    title: ClassVar[str] = "Evaluation"

    warmup_calls: int = 3
    min_blocks: int = 20
    min_blocks_when_slow: int = 5  # for baselines of 1 s per call or more
    max_blocks: int = 150
    budget_s: float = 6.0
    wanted_half_width: float = 0.01
    choice: Choice = field(default_factory=Choice)
    attempts: int = 3  # at most, while measurements are disturbed
    allow_load: bool = option(False, "Allow timing on a busy machine.", "--allow-load")  # recorded, no disturbance


def shorten_plan(plan: TimingPlan) -> TimingPlan:
    return replace(
        plan,
        budget_s=plan.budget_s / 4,
        min_blocks=max(plan.min_blocks // 2, 1),
        choice=Choice(compared_calls=0, screened_share=0.0),
        attempts=1,
    )


def share_plan(plan: TimingPlan, cases: int) -> TimingPlan:
    """Divide the time of a single case between several."""
    if cases == 1:
        return plan
    least = max(plan.min_blocks // 2, 1)
    return replace(
        plan,
        budget_s=plan.budget_s / cases,
        min_blocks=least,
        max_blocks=max(plan.max_blocks // cases, least),
        wanted_half_width=2 * plan.wanted_half_width,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """Without `attribute_work`, no custom kernel is required; without `measure_noise`, the device's floor counts."""

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
