"""How much an evaluation measures. Correctness is checked in full in each."""

from __future__ import annotations

from dataclasses import replace

from harness.evaluation.settings import EvaluationSettings
from harness.evaluation.timing.paired import TimingPlan
from harness.service.settings import Fidelity


def apply_fidelity(settings: EvaluationSettings, fidelity: Fidelity) -> EvaluationSettings:
    """`quick`: fewer pairs, so the interval of the speedup is wider."""
    if fidelity == "full":
        return settings
    if fidelity == "correctness":
        return replace(settings, measure_time=False)
    return replace(settings, plan=_shorten(settings.plan))


def _shorten(plan: TimingPlan) -> TimingPlan:
    """The checks of timed calls stay; a disturbed measurement is repeated once."""
    return replace(plan, budget_s=1.5, min_blocks=10, max_blocks=40, wanted_half_width=0.03, attempts=2)
