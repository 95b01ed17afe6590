"""Requests completions from an OpenAI-compatible endpoint.

The package's own retries are off: they end after seconds, outages last minutes (see `retries`). `chat_response` parses
the bodies, because the package returns HTML as completions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.domain import Completion, ProviderError, SampleKey, UsageError
from harness.generate.providers.base import CompletionRequest
from harness.generate.providers.chat_response import describe_body, read_answer
from harness.generate.providers.retries import AttemptFailed, EndpointRefused, Retrier, RetryPolicy

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
_RETRYABLE = {408, 409, 425, 429}
_ADVICE = {
    401: "the key was not accepted: check OPENAI_API_KEY",
    402: "the account has no credit: add some or use another key",
    403: "the key may not use this model: check OPENAI_API_KEY and --model",
    404: "no such model or path: check --model and --base-url (most end in /v1)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """`base_url` None: OpenAI. `timeout_s` limits one attempt, including its whole response."""

    base_url: str | None
    api_key: str | None
    concurrency: int = 16
    timeout_s: float = 1200.0
    retries: RetryPolicy = field(default_factory=RetryPolicy)


def read_endpoint_settings(
    environment: Mapping[str, str],
    *,
    base_url: str | None,
    concurrency: int = 16,
    timeout_s: float = 1200.0,
    max_wait_s: float = 600.0,
) -> EndpointSettings:
    """Raises UsageError for a missing or malformed key and an invalid base URL."""
    key = environment.get("OPENAI_API_KEY", "").strip() or None
    if base_url is not None and (urlsplit(base_url).scheme not in ("http", "https") or not urlsplit(base_url).netloc):
        raise UsageError(f"--base-url must begin with http:// or https://, found {base_url!r}")
    if key is None and (base_url is None or base_url.rstrip("/") == OPENAI_URL):
        raise UsageError(
            "no API key: set OPENAI_API_KEY, choose an endpoint without one with --base-url "
            "(such as http://localhost:8000/v1), or replay stored completions with --provider recorded"
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise UsageError("OPENAI_API_KEY holds invalid characters: set it again, without quotes or line ends")
    return EndpointSettings(
        base_url=base_url,
        api_key=key,
        concurrency=concurrency,
        timeout_s=timeout_s,
        retries=RetryPolicy(max_wait_s=max_wait_s),
    )


def open_endpoint(settings: EndpointSettings) -> EndpointProvider:
    from openai import DEFAULT_CONNECTION_LIMITS, AsyncOpenAI, DefaultAsyncHttpxClient

    # The package's default keeps 100 connections open; requests above that would reconnect each time.
    limits = type(DEFAULT_CONNECTION_LIMITS)(
        max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency, keepalive_expiry=30.0
    )
    client = AsyncOpenAI(
        api_key=settings.api_key or "none-needed",
        base_url=settings.base_url or OPENAI_URL,
        max_retries=0,
        timeout=settings.timeout_s,
        http_client=DefaultAsyncHttpxClient(limits=limits),
    )
    return EndpointProvider(client, settings)


class EndpointProvider:
    def __init__(self, client: AsyncOpenAI, settings: EndpointSettings) -> None:
        self._client = client
        self._create = client.chat.completions.with_raw_response.create  # resolved here: it imports lazily
        self._settings = settings
        self._retrier = Retrier(settings.retries)

    def can_answer(self, key: SampleKey) -> bool:
        return True

    async def complete(self, request: CompletionRequest) -> Completion:
        parameters = self._make_parameters(request)
        return await self._retrier.run(lambda: self._attempt(parameters))

    async def close(self) -> None:
        await self._client.close()

    def _make_parameters(self, request: CompletionRequest) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": one.role, "content": one.text} for one in request.prompt.messages],
        }
        if request.temperature is not None:
            parameters["temperature"] = request.temperature
        if request.max_tokens is not None:
            # OpenAI's newer models reject `max_tokens`; most other servers know only that.
            is_openai = (self._settings.base_url or OPENAI_URL).rstrip("/") == OPENAI_URL
            parameters["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
        return parameters

    async def _attempt(self, parameters: dict[str, Any]) -> Completion:
        from openai import APIConnectionError, APIStatusError

        url = self._settings.base_url or OPENAI_URL
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response = await self._create(**parameters)
        except TimeoutError as error:
            raise AttemptFailed(
                f"{url} did not answer within --request-timeout {self._settings.timeout_s:g} s"
            ) from error
        except APIStatusError as error:
            raise _classify_status(error, url) from error
        except APIConnectionError as error:
            raise AttemptFailed(f"cannot reach {url}: {error.__cause__ or error}") from error
        return read_answer(response.text, latency_s=time.monotonic() - started)


def _classify_status(error: APIStatusError, url: str) -> Exception:
    """AttemptFailed: retry. EndpointRefused: every request would fail. ProviderError: this request fails."""
    status = error.status_code
    message = f"{url} answered HTTP {status}: {_describe_error(error)}"
    if error.code == "insufficient_quota":
        return EndpointRefused(f"{message}; the account's quota is exhausted: waiting does not help")
    if status in _RETRYABLE or status >= 500:
        return AttemptFailed(message, retry_after_s=read_retry_after(error.response.headers))
    if status in _ADVICE:
        return EndpointRefused(f"{message}; {_ADVICE[status]}")
    return ProviderError(f"{message}; the request is invalid: check --model, --max-tokens and --temperature")


def _describe_error(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return describe_body(error.response.text) if error.response.text.strip() else "an empty body"


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; None without a header. A date counts from the server's own `Date`, whatever the clock here."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        until, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
        return max(0.0, (until - now).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
