"""Provides prompts and rewards for all adapters.

An *evaluation* is a dict with fields of `POST /v1/evaluations`: `{"problem": "softmax", "suite": "core", "language":
"cuda"}`, or `{"reference": "<source of a problem file>"}`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.client import Client
from harness.domain import Language
from harness.languages import GPU_LANGUAGE
from harness.problems.discovery import find_problem, find_suite
from harness.service.reward import Reward, Shaping, score_verdict

ALWAYS = ("built", "loaded", "correct", "suspect", "speedup", "speedup_low", "own_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    prompt: str
    evaluation: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    client: Client
    shaping: Shaping

    def score(self, completion: str, evaluation: Mapping[str, Any]) -> Reward:
        """Raises NoVerdict for faults of the service: skip or repeat the sample, never score it."""
        return score_verdict(self.client.evaluate(completion=completion, **evaluation), self.shaping)

    async def score_async(self, completion: str, evaluation: Mapping[str, Any]) -> Reward:
        return score_verdict(await self.client.evaluate_async(completion=completion, **evaluation), self.shaping)


@cache
def find_scorer(url: str | None = None, token: str | None = None, shaping: Shaping | None = None) -> Scorer:
    return Scorer(client=Client(url, token=token), shaping=shaping or Shaping())


def list_tasks(
    suite: str = "core",
    language: Language = GPU_LANGUAGE,
    *,
    problems: Sequence[str] = (),
    prompt: str = "plain",
    gpu: str | None = None,
    problems_dir: Path | str | None = None,
) -> Iterator[KernelTask]:
    """Yield all problems of a suite, or the named ones. The prompt describes `gpu`, which measures the reward."""
    from harness.generate.prompting import find_gpu, read_host_facts, render_prompt
    from harness.pipeline.data_folders import find_folder, find_suite_folder

    folder = find_suite_folder(suite, None if problems_dir is None else Path(problems_dir))
    prompts_dir = find_folder("prompts", None)
    chosen = [find_problem(name, folder) for name in problems] if problems else find_suite(folder)
    facts, host = None if gpu is None else find_gpu(gpu), read_host_facts()
    for problem in chosen:
        text = render_prompt(
            problem, prompt=prompt, language=language, gpu=facts, host=host, prompts_dir=prompts_dir
        ).text
        yield KernelTask(prompt=text, evaluation={"problem": problem.name, "suite": suite, "language": language})


def fill_metrics(reward: Reward) -> dict[str, float]:
    """Return the same keys for every program, as some frameworks require; unmeasured values are 0."""
    return {name: reward.metrics.get(name, 0.0) for name in ALWAYS}
