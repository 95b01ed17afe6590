"""Adapter for verl: `reward.custom_reward_function.path=<this file>`, `...name=compute_score`."""

from collections.abc import Mapping
from typing import Any

from harness.service.adapters.scoring import fill_metrics, find_scorer
from harness.service.reward import Shaping


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    shaping: Mapping[str, float] | None = None,
    **_: Any,
) -> dict[str, float]:
    """`extra_info["evaluation"]` names the problem, else `ground_truth` is it. `shaping`: fields of `Shaping`."""
    evaluation = (extra_info or {}).get("evaluation") or {"reference": ground_truth}
    reward = find_scorer(url, token, Shaping(**(shaping or {}))).score(solution_str, evaluation)
    return {"score": reward.value, **fill_metrics(reward)}
