from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.evaluation.settings import EvaluationSettings
    from harness.evaluation.timing.plan import TimingPlan

Fidelity = Literal["correctness", "quick", "full"]
ANONYMOUS = "anonymous"  # client name without tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """`tokens`: client name per bearer token; empty: no authentication. `accepts_references` False: only problems of
    suites, since a reference by text is executed as trusted code."""

    folder: Path
    fidelity: Fidelity = "full"
    tokens: dict[str, str] = field(default_factory=dict, repr=False)
    problems_dir: Path | None = None
    accepts_references: bool = True
    max_body_bytes: int = 4 * 2**20
    max_queued: int = 10_000
    max_per_client: int = 5_000  # unfinished tasks
    keep_s: float = 7 * 86_400.0  # finished tasks
    retry_after_s: int = 5


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
