"""Validates and parses a chat completion; OpenAI-compatible endpoints omit different fields."""

import json
from collections.abc import Iterator
from typing import Any

from harness.domain import REFUSAL, Completion, Usage
from harness.generate.providers.endpoint_errors import (
    AttemptFailed,
    EndpointError,
    EndpointRefused,
    find_error,
    make_failure,
)

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
    choice = _first(answer.get("choices"))
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
    words = " ".join(body.split())
    return repr(words if len(words) <= _SHOWN_CHARACTERS else words[:_SHOWN_CHARACTERS] + "...")


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


def _first(choices: object) -> dict[str, Any]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


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
