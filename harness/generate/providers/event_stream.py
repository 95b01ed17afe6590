"""Reads a chat completion that came as an unrequested event stream (server-sent events)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from harness.generate.providers.endpoint_errors import find_error
from harness.generate.providers.retries import AttemptFailed

_FIRST_LINE = re.compile(r"\s*(?:data|event|id|retry)?:")
_END = "[DONE]"


def is_event_stream(body: str) -> bool:
    return _FIRST_LINE.match(body) is not None


def join_events(body: str) -> Any:
    """Join the chunks' deltas, or return the first error among them. Raises AttemptFailed if the stream broke off."""
    answer: dict[str, Any] = {"choices": []}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message}
    for data in _list_data(body):
        if data == _END:
            return answer
        chunk = _parse(data)
        if not isinstance(chunk, dict) or find_error(chunk):
            return chunk
        answer |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name) is not None}
        for one in chunk.get("choices") or ():
            if isinstance(one, dict) and one.get("index", 0) in (0, None):
                answer["choices"] = [choice]
                _add_choice(choice, message, one)
    if choice.get("finish_reason") is None:
        raise AttemptFailed("the event stream broke off before a finish_reason")
    return answer


def _list_data(body: str) -> Iterator[str]:
    """Skip comments and other fields. Keep lines that are no field: JSON may follow comments."""
    for event in re.split(r"\r\n\r\n|\n\n|\r\r", body):
        lines = [line for line in event.splitlines() if not re.match(r"(?::|(?:event|id|retry):)", line)]
        data = [re.sub(r"^data: ?", "", line) for line in lines]
        joined = "\n".join(data).strip()
        if len(data) > 1 and not _is_json(joined):  # without empty lines between events
            yield from filter(None, map(str.strip, data))
        elif joined:
            yield joined


def _is_json(data: str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise AttemptFailed(f"the event stream holds an event that is not JSON ({error}): {data[:160]!r}") from error


def _add_choice(choice: dict[str, Any], message: dict[str, Any], chunk: dict[str, Any]) -> None:
    for name, value in chunk.items():
        if name in ("delta", "message") and isinstance(value, dict):
            for field, more in value.items():
                _add(message, field, more)
        elif name == "text":
            _add(message, "content", value)
        elif value is not None:
            choice[name] = value


def _add(fields: dict[str, Any], name: str, more: Any) -> None:
    """Append to strings and lists; match tool calls by their index."""
    have = fields.get(name)
    if name == "tool_calls" and isinstance(more, list):
        fields[name] = have if isinstance(have, list) else []
        for call in more:
            _add_tool_call(fields[name], call)
    elif isinstance(more, dict) and isinstance(have, dict):
        for inner, value in more.items():
            _add(have, inner, value)
    elif name in ("role", "type", "id", "name") or have is None:
        fields[name] = more if have is None else have
    elif isinstance(more, type(have)) and isinstance(more, str | list):
        fields[name] = have + more


def _add_tool_call(calls: list[Any], more: Any) -> None:
    if not isinstance(more, dict):
        return
    index = more.get("index", len(calls))
    known = next((call for call in calls if call.get("index") == index), None)
    if known is None:
        calls.append({"index": index, **more})
    elif isinstance(more.get("function"), dict):
        _add(known, "function", more["function"])
