from __future__ import annotations

from dataclasses import dataclass, field

from harness.evaluation.timing.plan import TimingPlan
from harness.sandbox.worker_process import TimeLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """Without `attribute_work`, a suite's requirement of a custom kernel is not checked. Without `measure_noise`,
    the noise floor is that of the device type."""

    limits: TimeLimits = field(default_factory=TimeLimits)
    plan: TimingPlan = field(default_factory=TimingPlan)
    measure_time: bool = True
    attribute_work: bool = True
    measure_noise: bool = True
