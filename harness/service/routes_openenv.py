"""OpenEnv's routes: an environment with one problem and one step. Without sessions: the action names the problem."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from harness.domain import Language
from harness.service.adapters.scoring import KernelTask, list_tasks
from harness.service.answers import answer_task
from harness.service.preparation import require_name
from harness.service.requests import EvaluationRequest, Text
from harness.service.reward import score_verdict
from harness.service.service import Service
from harness.service.submission import Submission

LONGEST_STEP_S = 3600.0


class ResetRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    problem: Text | None = Field(default=None, description="Default: one of the suite's, chosen by the seed.")
    suite: Text = "core"
    language: Language = "cuda"
    seed: int | None = None


class StepRequest(BaseModel):
    """`action`: the fields of `POST /v1/evaluations`."""

    model_config = ConfigDict(extra="ignore")

    action: EvaluationRequest


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["OpenEnv"])

    @lru_cache(32)
    def find_tasks(suite: str, language: Language) -> tuple[KernelTask, ...]:
        return tuple(list_tasks(suite, language, problems_dir=service.settings.problems_dir))

    def choose(body: ResetRequest) -> KernelTask:
        require_name(body.suite)
        tasks = find_tasks(body.suite, body.language)
        if body.problem is None:
            return random.Random(body.seed).choice(tasks)
        service.find_problem(Submission(problem=body.problem, suite=body.suite))
        return next(task for task in tasks if task.evaluation["problem"] == body.problem)

    @router.post("/reset")
    async def reset(body: ResetRequest) -> Response:
        task = await run_in_threadpool(choose, body)
        observation = {"prompt": task.prompt, **task.evaluation, "task_id": uuid4().hex}
        return JSONResponse({"observation": observation, "reward": None, "done": False})

    @router.post("/step")
    async def step(body: StepRequest, request: Request) -> Response:
        """Waits for the verdict; 503 if the harness failed: send the same action again."""
        task = body.action.to_task(request.state.client, service.settings.fidelity)
        (entry,) = await service.accept([task])
        ended = await service.wait(entry, LONGEST_STEP_S)
        verdict = service.queue.read_verdict(ended.number) if ended and ended.state == "done" else None
        return answer_task(service, ended) if verdict is None else JSONResponse(_describe_step(json.loads(verdict)))

    return router


def _describe_step(verdict: dict[str, Any]) -> dict[str, Any]:
    reward = score_verdict(verdict)
    observation = {"outcome": reward.outcome, "message": reward.message, "metrics": dict(reward.metrics)}
    return {"observation": observation, "reward": reward.value, "done": True}
