"""OpenEnv: an environment with one problem and one step, over WebSocket and as two routes without sessions."""

import json
import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from harness.domain import HarnessError, Language, NoVerdict, ProblemError, UsageError
from harness.service.adapters.scoring import KernelTask, list_tasks
from harness.service.answers import EvaluationRequest, Text, answer_task, describe_errors
from harness.service.preparation import choose_prompted_language, find_named_suite
from harness.service.queue import Entry, QueueFull, Submission
from harness.service.reward import score_verdict
from harness.service.service import Service

LONGEST_STEP_S = 3600.0


class ResetRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    problem: Text | None = Field(default=None, description="Or SUITE/NAME. Default: one of the suite's, by the seed.")
    suite: Text = "core"
    language: Language | None = Field(default=None, description="Default: one that this service evaluates.")
    seed: int | None = None
    episode_id: Text | None = None


class StepRequest(BaseModel):
    """`action`: the fields of `POST /v1/evaluations`."""

    model_config = ConfigDict(extra="ignore")

    action: EvaluationRequest


@dataclass(slots=True)
class Episode:
    """`evaluation` holds fields of an action that the reset has set."""

    id: str = field(default_factory=lambda: uuid4().hex)
    evaluation: dict[str, Any] = field(default_factory=dict)
    steps: int = 0


class Environment:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._find_tasks = lru_cache(256)(self._list_tasks)

    async def reset(self, body: ResetRequest) -> tuple[dict[str, Any], KernelTask]:
        """Return (the answer, the task)."""
        task = await run_in_threadpool(self._choose, body)
        observation = {"prompt": task.prompt, **task.evaluation, "task_id": uuid4().hex}
        return {"observation": observation, "reward": None, "done": False}, task

    async def evaluate(self, action: EvaluationRequest, client: str) -> Entry | None:
        (entry,) = await self._service.accept([action.to_task(client, self._service.settings.fidelity)])
        return await self._service.wait(entry, LONGEST_STEP_S)

    def describe_step(self, ended: Entry | None) -> dict[str, Any] | None:
        if ended is None or ended.state != "done":
            return None
        reward = score_verdict(json.loads(self._service.queue.read_verdict(ended.number) or "null"))
        observation = {"outcome": reward.outcome, "message": reward.message, "metrics": dict(reward.metrics)}
        return {"observation": observation, "reward": reward.value, "done": True}

    def _choose(self, body: ResetRequest) -> KernelTask:
        language = body.language or choose_prompted_language(self._service.executor)
        if body.problem is None:
            find_named_suite(body.suite, self._service.settings.problems_dir)
            return random.Random(body.seed).choice(self._find_tasks(body.suite, language, ()))
        problem = self._service.find_problem(Submission(problem=body.problem, suite=body.suite))
        (task,) = self._find_tasks(problem.suite, language, (problem.name,))
        return task

    def _list_tasks(self, suite: str, language: Language, problems: tuple[str, ...]) -> tuple[KernelTask, ...]:
        folder = self._service.settings.problems_dir
        return tuple(list_tasks(suite, language, problems=problems, problems_dir=folder))


class Session:
    """One WebSocket. An action may omit fields that the reset has set."""

    def __init__(self, environment: Environment, client: str) -> None:
        self._environment = environment
        self._client = client
        self._episode = Episode()

    async def answer(self, text: str) -> dict[str, Any] | None:
        try:
            message = json.loads(text)
            kind, data = message["type"], message.get("data") or {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _describe_error("INVALID_JSON", 'expected {"type": ..., "data": {...}}')
        try:
            return await self._answer(kind, data)
        except ValidationError as error:
            return _describe_error("VALIDATION_ERROR", describe_errors(error.errors()))
        except (UsageError, ProblemError) as error:
            return _describe_error("VALIDATION_ERROR", str(error))
        except QueueFull as error:
            return _describe_error("CAPACITY_REACHED", str(error))
        except HarnessError as error:
            return _describe_error("EXECUTION_ERROR", str(error))

    async def _answer(self, kind: str, data: dict[str, Any]) -> dict[str, Any] | None:
        if kind == "close":
            return None
        if kind == "reset":
            return {"type": "observation", "data": await self._reset(ResetRequest.model_validate(data))}
        if kind == "step":
            return {"type": "observation", "data": await self._step(data)}
        if kind == "state":
            episode = self._episode
            state = {"episode_id": episode.id, "step_count": episode.steps, **episode.evaluation}
            return {"type": "state", "data": state}
        return _describe_error("UNKNOWN_TYPE", f"no type of message {str(kind)[:100]!r}: use reset, step, state, close")

    async def _reset(self, body: ResetRequest) -> dict[str, Any]:
        answer, task = await self._environment.reset(body)
        self._episode = Episode(body.episode_id or uuid4().hex, task.evaluation)
        return answer

    async def _step(self, data: dict[str, Any]) -> dict[str, Any]:
        """Raises NoVerdict for a fault of the harness, which is never a reward."""
        given = {name: value for name, value in data.items() if name != "metadata"}  # of OpenEnv's actions
        names_problem = given.get("problem") or given.get("reference")
        action = EvaluationRequest.model_validate(({} if names_problem else self._episode.evaluation) | given)
        ended = await self._environment.evaluate(action, self._client)
        answer = self._environment.describe_step(ended)
        if answer is None:
            raise NoVerdict(f"no verdict: {ended.error or ended.state if ended else 'the task was deleted'}")
        self._episode.steps += 1
        return answer


def make_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["OpenEnv"])
    environment, sessions = Environment(service), set[WebSocket]()

    @router.post("/reset")
    async def reset(body: ResetRequest) -> Response:
        return JSONResponse((await environment.reset(body))[0])

    @router.post("/step")
    async def step(body: StepRequest, request: Request) -> Response:
        """Waits for the verdict; 503 if the harness failed: send the same action again."""
        ended = await environment.evaluate(body.action, request.state.client)
        answer = environment.describe_step(ended)
        return answer_task(service, ended) if answer is None else JSONResponse(answer)

    @router.websocket("/ws")
    async def converse(socket: WebSocket) -> None:
        """Messages of OpenEnv's client: reset, step, state, close."""
        await socket.accept()
        sessions.add(socket)
        try:
            if len(sessions) > service.settings.max_sessions:
                await socket.send_json(_describe_error("CAPACITY_REACHED", f"{len(sessions) - 1} sessions are open"))
            else:
                await _serve_session(socket, Session(environment, socket.state.client))
            await socket.close()
        except WebSocketDisconnect:
            return
        finally:
            sessions.discard(socket)

    return router


async def _serve_session(socket: WebSocket, session: Session) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        answer = await session.answer(message.get("text") or "")
        if answer is None:
            return
        await socket.send_json(answer)


def _describe_error(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "data": {"code": code, "message": message}}
