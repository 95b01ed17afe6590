"""Requests completions from an OpenAI-compatible endpoint.

The package's own retries are disabled: they end after seconds, but outages last minutes (see `Retrier`).
Bodies are parsed here, because the package returns HTML as completions.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.domain import REFUSAL, Completion, SampleKey, TokenLimitName, Usage, UsageError
from harness.domain.errors import shorten
from harness.generate.providers import CompletionRequest
from harness.generate.providers.endpoint_errors import (
    AttemptFailed,
    EndpointError,
    EndpointRefused,
    RequestInvalid,
    Retrier,
    RetryPolicy,
    RunRefused,
    find_error,
    first_choice,
    make_failure,
)

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
_NOT_SUPPORTED = re.compile(
    r"unsupported|not\s+support|unrecogni[sz]ed|unknown|not\s+(?:permitted|allowed)|unexpected|deprecated|instead|invalid\s+param",
    re.IGNORECASE,
)
# Refusals in a row, besides those of concurrent requests, that end a run: moderation refuses only some prompts.
_MOST_REFUSED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """`base_url` None selects OpenAI. `timeout_s` limits one attempt, including its whole response."""

    base_url: str | None
    api_key: str | None
    concurrency: int = 16
    timeout_s: float = 1200.0
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    token_limit_name: TokenLimitName = "auto"


def read_key(environment: Mapping[str, str], base_url: str | None) -> str | None:
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
    return key


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
        self._refused = 0
        # OpenAI's newer models reject `max_tokens`; most other servers know only that.
        is_openai = (settings.base_url or OPENAI_URL).rstrip("/") == OPENAI_URL
        self._may_learn = settings.token_limit_name == "auto"
        self._limit_name: TokenLimitName = settings.token_limit_name
        if self._may_learn:
            self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"

    def can_answer(self, key: SampleKey) -> bool:
        return True

    async def complete(self, request: CompletionRequest) -> Completion:
        """Raises ProviderError; RunRefused after too many refusals in a row."""
        try:
            completion = await self._retrier.run(lambda: self._attempt(request))
        except EndpointRefused as error:
            self._refused += 1
            if self._refused >= _MOST_REFUSED + self._settings.concurrency:
                raise RunRefused(f"{error} (the last {self._refused} requests were refused)") from error
            raise
        self._refused = 0
        return completion

    async def close(self) -> None:
        await self._client.close()

    async def _attempt(self, request: CompletionRequest) -> Completion:
        sent = self._limit_name
        try:
            return await self._send(self._make_parameters(request, sent))
        except RequestInvalid as error:
            if request.max_tokens is None or not self._learn_limit_name(sent, str(error)):
                raise
        return await self._send(self._make_parameters(request, self._limit_name))

    def _learn_limit_name(self, sent: TokenLimitName, refusal: str) -> bool:
        """Return True if the request must be repeated with the other name, which all later requests use."""
        if self._may_learn and re.search(rf"\b{sent}\b", refusal) and _NOT_SUPPORTED.search(refusal):
            self._may_learn = False
            self._limit_name = "max_tokens" if sent == "max_completion_tokens" else "max_completion_tokens"
        return self._limit_name != sent

    def _make_parameters(self, request: CompletionRequest, limit_name: TokenLimitName) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": one.role, "content": one.text} for one in request.prompt.messages],
        }
        if request.temperature is not None:
            parameters["temperature"] = request.temperature
        if request.max_tokens is not None:
            parameters[limit_name] = request.max_tokens
        return parameters

    async def _send(self, parameters: dict[str, Any]) -> Completion:
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
            raise _read_failure(error, url) from error
        except APIConnectionError as error:
            raise AttemptFailed(f"cannot reach {url}: {error.__cause__ or error}") from error
        return read_answer(response.text, latency_s=time.monotonic() - started)


def _read_failure(failure: APIStatusError, url: str) -> Exception:
    body = failure.response.text
    try:
        error = find_error(json.loads(body))
    except (ValueError, RecursionError):
        error = None
    if error is None:
        error = EndpointError(describe_body(body) if body.strip() else "an empty body")
    status = failure.status_code
    retry_after_s = read_retry_after(failure.response.headers)
    return make_failure(error, f"{url} answered HTTP {status}", status=status, retry_after_s=retry_after_s)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds, or None without a header. A date counts from the server's own `Date`."""
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


_SHOWN_CHARACTERS = 160
_ESCAPED_LESS = "\\u003c"
_REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking", "reasoning_details", "thinking_blocks")
# In lower case. Other reasons ("error", "network_error", "abort") mean that the answer was not finished.
_FINISHED = {
    "stop", "length", "tool_calls", "content_filter",
    "function_call", "tool_use", "eos", "eos_token", "end_turn", "stop_sequence", "completed",
    "max_tokens", "model_length", "model_context_window_exceeded",
    REFUSAL, "safety", "sensitive", "recitation", "prohibited_content", "blocklist",
}  # fmt: skip


def read_answer(body: str, *, latency_s: float) -> Completion:
    """Raises AttemptFailed, EndpointRefused or ProviderError."""
    answer = _parse(body)
    error = find_error(answer)
    answer = answer if isinstance(answer, dict) else {}
    choice = first_choice(answer)
    finish_reason = _text_or_none(choice.get("finish_reason"))
    if finish_reason and finish_reason.lower() not in _FINISHED:
        error = error or EndpointError("the endpoint gives no other reason")
        raise _interrupted(error, f"the answer ended with finish_reason {finish_reason!r}")
    message = _find_message(choice)
    if error is not None and message is not None:
        raise _interrupted(error, "the response holds an error")
    if error is not None:
        raise make_failure(error, "the response holds no message")
    if message is None:
        raise AttemptFailed(f"the response holds no message: {describe_body(body)}")
    text, refusal = _read_text(message), _read_refusal(message)
    is_refused = bool(refusal) and not (text or "").strip()
    return Completion(
        text=refusal if is_refused else text,
        reasoning=_read_reasoning(message),
        finish_reason=REFUSAL if is_refused else finish_reason or "",
        usage=_read_usage(answer.get("usage")),
        latency_s=latency_s,
        model=_text_or_none(answer.get("model")) or "",
        response_id=_text_or_none(answer.get("id")),
    )


def _interrupted(error: EndpointError, where: str) -> Exception:
    """An error after the answer has begun, without a code, means that the request was valid."""
    return AttemptFailed(f"{where}: {error.message}") if error.status is None else make_failure(error, where)


def describe_body(body: str) -> str:
    return repr(shorten(" ".join(body.split()), _SHOWN_CHARACTERS))


def _parse(body: str) -> Any:
    body = body.removeprefix("\ufeff")
    if not body.strip():
        raise AttemptFailed("the response has an empty body")
    if body.lstrip().startswith("<"):
        raise EndpointRefused(
            f"the response is HTML, not JSON: {describe_body(body)}; the address is no such API: check --base-url "
            "(most end in /v1)"
        )
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AttemptFailed(f"the response is not complete JSON ({error}): {describe_body(body)}") from error
    if not isinstance(answer, dict) and find_error(answer) is None:
        raise AttemptFailed(f"the response is not a JSON object: {describe_body(body)}")
    return answer


def _find_message(choice: dict[str, Any]) -> dict[str, Any] | None:
    """`delta` comes from endpoints that always stream, `text` from those of the older completions."""
    for message in (choice.get("message"), choice.get("delta")):
        if isinstance(message, dict):
            return message
    return {"content": choice["text"]} if isinstance(choice.get("text"), str) else None


def _read_text(message: dict[str, Any]) -> str | None:
    """Return content (a string or a list of parts), then the tool calls."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_list_texts([part for part in content if not _is_reasoning(part)]))
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(message.get("function_call"))
    if any(functions):
        parts = [_text_or_none(content) or "", *map(_write_call, filter(None, functions))]
        return "\n".join(part for part in parts if part) + "\n"
    return _text_or_none(content)


def _read_refusal(message: dict[str, Any]) -> str | None:
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    given = _text_or_none(message.get("refusal")) or "".join(_list_texts([part.get("refusal") for part in parts]))
    return given.strip() or None


def _read_reasoning(message: dict[str, Any]) -> str | None:
    content = message.get("content")
    parts = [part for part in content if _is_reasoning(part)] if isinstance(content, list) else []
    for value in (*(message.get(name) for name in _REASONING_FIELDS), parts):
        if text := "".join(_list_texts(value)):
            return text
    return None


def _is_reasoning(part: object) -> bool:
    return isinstance(part, dict) and str(part.get("type")).startswith(("thinking", "reasoning"))


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _list_texts(part)
    elif isinstance(value, dict):
        names = ("text", "thinking", "reasoning", "summary", "content")
        yield from _list_texts(next((value[name] for name in names if value.get(name)), None))


def _write_call(function: object) -> str:
    """Write a tool call like models without a tool interface; escape `<`, so that it contains no tag."""
    return f"<tool_call>\n{json.dumps(function).replace('<', _ESCAPED_LESS)}\n</tool_call>"


def _read_usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else usage.get("reasoning_tokens")
    return Usage(
        prompt_tokens=_count_or_none(usage.get("prompt_tokens")),
        completion_tokens=_count_or_none(usage.get("completion_tokens")),
        reasoning_tokens=_count_or_none(reasoning),
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
