"""Adapter for verifiers v0, which SkyRL and tinker use: `load_environment(suite="core", language="cuda", ...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import verifiers as vf
from datasets import Dataset

from harness.languages import GPU_LANGUAGE
from harness.service.adapters.scoring import ALWAYS, Scorer, fill_metrics, find_scorer, list_tasks
from harness.service.reward import Shaping


class KernelRubric(vf.Rubric):  # type: ignore[misc]  # checked without verifiers
    """verifiers scores a reward function's exception as 0. This rubric raises it: a service's fault is no score."""

    def __init__(self, scorer: Scorer) -> None:
        metrics = [_make_metric(name) for name in ALWAYS]
        super().__init__(funcs=[self.kernel_speedup, *metrics], weights=[1.0, *(0.0 for _ in metrics)])
        self._scorer = scorer

    async def kernel_speedup(self, state: Any) -> float:
        answer = str(state["completion"][-1]["content"])
        reward = await self._scorer.score_async(answer, state["info"])
        state["kernel_metrics"] = fill_metrics(reward)
        return reward.value

    async def _call_individual_reward_func(self, func: Any, state: Any) -> float:
        return float(await func(state))


def load_environment(
    suite: str = "core",
    language: str = GPU_LANGUAGE,
    url: str | None = None,
    token: str | None = None,
    shaping: Mapping[str, float] | None = None,
    **options: Any,
) -> vf.Environment:
    """`shaping` has fields of `Shaping`; `options` are those of `list_tasks`."""
    tasks = list_tasks(suite, language, **options)  # type: ignore[arg-type]
    rows = [{"prompt": [{"role": "user", "content": task.prompt}], "info": task.evaluation} for task in tasks]
    scorer = find_scorer(url, token, Shaping(**(shaping or {})))
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=KernelRubric(scorer))


def _make_metric(name: str) -> Any:
    async def metric(state: Any) -> float:
        return float(state["kernel_metrics"][name])

    metric.__name__ = name
    return metric
