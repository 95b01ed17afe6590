"""Validates and parses the body of a chat completion; OpenAI-compatible endpoints omit different fields."""

from __future__ import annotations

import json
from typing import Any

from harness.domain import Completion, Usage
from harness.generate.providers.retries import AttemptFailed

_SHOWN_CHARACTERS = 160
_ESCAPED_LESS = "\\u003c"


def read_answer(body: str, *, latency_s: float) -> Completion:
    """Raises AttemptFailed that quotes the unusable body."""
    answer = _read_object(body)
    choice = _first(answer.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise AttemptFailed(f"the response holds no message: {_describe_failure(answer, body)}")
    return Completion(
        text=_read_text(message),
        reasoning=_text_or_none(message.get("reasoning")) or _text_or_none(message.get("reasoning_content")),
        finish_reason=_text_or_none(choice.get("finish_reason")),
        usage=_read_usage(answer.get("usage")),
        latency_s=latency_s,
        model=_text_or_none(answer.get("model")) or "",
        response_id=_text_or_none(answer.get("id")),
    )


def describe_body(body: str) -> str:
    words = " ".join(body.split())
    return repr(words if len(words) <= _SHOWN_CHARACTERS else words[:_SHOWN_CHARACTERS] + "...")


def _read_object(body: str) -> dict[str, Any]:
    if not body.strip():
        raise AttemptFailed("the response has an empty body")
    if body.lstrip().startswith("<"):
        raise AttemptFailed(f"the response is HTML, not JSON: {describe_body(body)}; is this the right --base-url?")
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise AttemptFailed(f"the response is not complete JSON ({error}): {describe_body(body)}") from error
    if not isinstance(answer, dict):
        raise AttemptFailed(f"the response is not a JSON object: {describe_body(body)}")
    return answer


def _describe_failure(answer: dict[str, Any], body: str) -> str:
    error = answer.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return describe_body(body)


def _first(choices: object) -> dict[str, Any]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _read_text(message: dict[str, Any]) -> str | None:
    """Content (a string or a list of parts), then the tool calls; without either, the refusal."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if any(functions):
        parts = [_text_or_none(content) or "", *map(_write_call, filter(None, functions))]
        return "\n".join(part for part in parts if part) + "\n"
    return content if isinstance(content, str) else _text_or_none(message.get("refusal"))


def _write_call(function: object) -> str:
    """As models without a tool interface write it; `<` is escaped, so that it holds no tag."""
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
