"""Adapter for verifiers v1: a taskset with a task per problem of a suite, without container: the service scores."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from harness.domain import Language
from harness.languages import GPU_LANGUAGE
from harness.service.adapters.scoring import find_scorer, list_tasks
from harness.service.reward import Reward, Shaping


class KernelData(vf.TaskData):  # type: ignore[misc]  # checked without verifiers
    evaluation: dict[str, Any]


class KernelTaskConfig(vf.TaskConfig):  # type: ignore[misc]
    url: str | None = None
    shaping: Shaping = Shaping()


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):  # type: ignore[misc]
    async def _score(self, trace: vf.Trace) -> Reward:
        """Evaluate each answer once, although reward and metrics both request it."""
        answer = trace.last_reply
        digest = sha256(answer.encode("utf-8", "replace")).hexdigest()[:16]
        task_id = f"trace-{trace.id}-{digest}"
        scorer = find_scorer(self.config.url, shaping=self.config.shaping)
        return await scorer.score_async(answer, self.data.evaluation | {"task_id": task_id})

    @vf.metric  # type: ignore[untyped-decorator]
    async def measurements(self, trace: vf.Trace) -> dict[str, float]:
        return dict((await self._score(trace)).metrics)

    @vf.reward  # type: ignore[untyped-decorator]
    async def kernel_speedup(self, trace: vf.Trace) -> float:
        return (await self._score(trace)).value


class KernelTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    task: KernelTaskConfig = KernelTaskConfig()
    suite: str = "core"
    language: Language = GPU_LANGUAGE
    problems: tuple[str, ...] = ()
    prompt: str = "plain"
    gpu: str | None = None
    problems_dir: Path | None = None


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):  # type: ignore[misc]
    def load(self) -> Iterable[KernelTask]:
        settings = self.config
        for task in list_tasks(
            settings.suite,
            settings.language,
            problems=settings.problems,
            prompt=settings.prompt,
            gpu=settings.gpu,
            problems_dir=settings.problems_dir,
        ):
            data = KernelData(prompt=task.prompt, name=task.evaluation["problem"], evaluation=task.evaluation)
            yield KernelTask(data, settings.task)
