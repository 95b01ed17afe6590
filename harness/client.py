"""Client of the evaluation service (`harness serve`). Needs neither torch nor the extra `serve`.

client = Client("http://reward-gpu:8700", token="...")
verdict = client.evaluate(completion=answer, problem="softmax")
verdict = await client.evaluate_async(completion=answer, reference=source)
"""

import asyncio
import os
import random
import ssl
import time
import weakref
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

from harness.domain import NoVerdict, UsageError

URL_VARIABLE, TOKEN_VARIABLE = "HARNESS_SERVICE_URL", "HARNESS_SERVICE_TOKEN"
LONG_POLL_S = 30.0
CONNECT_S, ANSWER_S = 10.0, 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """`status` 0 means no answer."""

    status: int
    body: Any
    retry_after_s: float = 0.0


class Client:
    """Thread-safe. Retries lost connections, full queues and faults of the service with growing pauses; a repeated
    request has the same task id, so it is evaluated once.

    `url` and `token` None read HARNESS_SERVICE_URL and HARNESS_SERVICE_TOKEN. `max_wait_s` limits one verdict;
    `max_failures` limits faults of the service per task.
    """

    def __init__(
        self, url: str | None = None, *, token: str | None = None, max_wait_s: float = 3600.0, max_failures: int = 3
    ) -> None:
        address = url or os.environ.get(URL_VARIABLE)
        if not address:
            raise UsageError(f"no address of an evaluation service: pass url, or set {URL_VARIABLE}")
        if not address.startswith(("http://", "https://")):
            shown = address.rpartition("@")[2]
            raise UsageError(f"{shown}: the address of an evaluation service begins with http:// or https://")
        self._address = f"{address.rstrip('/')}/v1/evaluations?wait={LONG_POLL_S:g}"
        self._host = urlsplit(address).netloc.rpartition("@")[2]  # without a token
        chosen = token or os.environ.get(TOKEN_VARIABLE)
        self._http = _import_http()
        self._options: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {chosen}"} if chosen else {},
            "timeout": self._http.Timeout(ANSWER_S, connect=CONNECT_S, pool=None),
            "verify": ssl.create_default_context(),  # takes 50 ms: one for all clients
            "limits": self._http.Limits(max_connections=None, max_keepalive_connections=32),
        }
        self._client = self._http.Client(**self._options)
        self._close = weakref.finalize(self, self._client.close)
        self._max_wait_s = max_wait_s
        self._max_failures = max_failures

    def evaluate(self, **request: Any) -> dict[str, Any]:
        """Return the verdict's record; takes the fields of `POST /v1/evaluations`. Raises UsageError and NoVerdict."""
        task = self._begin(request)
        while task.verdict is None:
            try:
                reply = _read(self._client.post(self._address, json=task.body))
            except self._http.TransportError as error:
                reply = self._explain_loss(error)
            time.sleep(task.take(reply))
        return task.verdict

    async def evaluate_async(self, **request: Any) -> dict[str, Any]:
        task = self._begin(request)
        async with self._http.AsyncClient(**self._options) as client:  # of this event loop
            while task.verdict is None:
                try:
                    reply = _read(await client.post(self._address, json=task.body))
                except self._http.TransportError as error:
                    reply = self._explain_loss(error)
                await asyncio.sleep(task.take(reply))
        return task.verdict

    def _begin(self, request: dict[str, Any]) -> "_Task":
        given = {name: value for name, value in request.items() if value is not None}
        return _Task({"task_id": uuid4().hex} | given, self._host, self._max_wait_s, self._max_failures)

    def close(self) -> None:
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _explain_loss(self, error: Exception) -> _Reply:
        where = f"no evaluation service answers at {self._host}"
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        return _Reply(status=0, body={"detail": f"{where} ({reason}): start `harness serve`, or correct the address"})


class _Task:
    """A request with its replies, until one has the `verdict`."""

    def __init__(self, body: dict[str, Any], host: str, max_wait_s: float, max_failures: int) -> None:
        self.body = body
        self.verdict: dict[str, Any] | None = None
        self._host, self._max_wait_s, self._max_failures = host, max_wait_s, max_failures
        self._deadline_s, self._pause_s, self._failures = time.monotonic() + max_wait_s, FIRST_PAUSE_S, 0

    def take(self, reply: _Reply) -> float:
        """Return how long to wait before the request is sent again. Raises UsageError and NoVerdict."""
        if reply.status == 200 and isinstance(reply.body, dict) and isinstance(reply.body.get("verdict"), dict):
            self.verdict = reply.body["verdict"]
            return 0.0
        if reply.status == 200 or 300 <= reply.status < 400:
            raise UsageError(f"{self._host} is no evaluation service: {_explain(reply)}")
        task = f"task {self.body['task_id']} has no verdict"
        if reply.status == 422 and "record" in reply.body:
            raise NoVerdict(f"{task}, and has none when it is repeated: {_explain(reply)}")
        if 400 <= reply.status < 500 and reply.status not in (408, 429):
            raise UsageError(f"the evaluation service refused the request: {_explain(reply)}")
        self._failures += reply.status == 503 and "record" in reply.body
        if self._failures >= self._max_failures:
            raise NoVerdict(f"{task} after {self._failures} failures: {_explain(reply)}")
        if time.monotonic() > self._deadline_s:
            raise NoVerdict(f"{task} after {self._max_wait_s:g} s: {_explain(reply)}")
        if reply.status == 202:
            self._pause_s = FIRST_PAUSE_S
            return 0.0
        wait_s = max(reply.retry_after_s, self._pause_s) * random.uniform(0.8, 1.2)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return wait_s


def _import_http() -> Any:
    try:
        return import_module("httpx2")
    except ImportError:
        return import_module("httpx")


def _read(response: Any) -> _Reply:
    try:
        body = response.json()
    except ValueError:
        body = {"detail": response.text[:500]}
    wait = response.headers.get("Retry-After", "")
    return _Reply(status=response.status_code, body=body, retry_after_s=float(wait) if wait.isdecimal() else 0.0)


def _explain(reply: _Reply) -> str:
    body = reply.body if isinstance(reply.body, dict) else {}
    said = body.get("detail") or body.get("error") or body.get("state") or reply.body
    return f"HTTP {reply.status}, {said}" if reply.status else str(said)
