"""Adapter for SkyRL-gym: register `KernelEnv` as an environment; `extras["evaluation"]` names the problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from harness.service.adapters.scoring import find_scorer
from harness.service.reward import Reward, Shaping

FEEDBACK = "The program was evaluated as {outcome}. {message}\nWrite the whole program again, improved."


class KernelEnv(BaseTextEnv):  # type: ignore[misc]  # skyrl_gym has no types
    """Each of the `max_turns` in `extras` is evaluated and rewarded; its verdict is the next observation."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        settings = extras or {}
        self._evaluation = dict(settings["evaluation"])
        self.max_turns = int(settings.get("max_turns", 1))
        chosen = env_config or {}
        self._scorer = find_scorer(chosen.get("url"), shaping=Shaping(**chosen.get("shaping", {})))
        self._last: Reward | None = None

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        self._last = reward = self._scorer.score(action, self._evaluation)
        done = self.turns >= self.max_turns
        feedback = FEEDBACK.format(outcome=reward.outcome, message=reward.message)
        return BaseTextEnvStepOutput(
            observations=[] if done else [{"role": "user", "content": feedback}],
            reward=reward.value,
            done=done,
            metadata={"outcome": reward.outcome, "message": reward.message, **reward.metrics},
        )

    def get_metrics(self) -> dict[str, Any]:
        return dict(self._last.metrics) if self._last else {}
