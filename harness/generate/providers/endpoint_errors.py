"""Reads an endpoint's error from an HTTP status or a body of HTTP 200, and decides whether to repeat the request."""

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.domain import ProviderError

Answer = TypeVar("Answer")


class EndpointRefused(ProviderError):
    """The endpoint refuses this prompt (moderation) or every request (bad key, unknown model)."""


class RunRefused(EndpointRefused):
    """The endpoint refuses so many requests in a row that the run ends."""


class AttemptFailed(Exception):
    """A transient failure. The endpoint may request `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Waits double from `first_wait_s` to `longest_wait_s`; after `max_wait_s` of consecutive failures the request
    fails."""

    max_wait_s: float = 600.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


class Retrier:
    """Retries requests to one endpoint, which share the time of an outage.

    After `max_wait_s` of failures, later requests fail at their first failing attempt, so that an outage costs that
    time once, not once per sample.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._draw = draw
        self._outage_since: float | None = None

    async def run(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """Raises ProviderError with the last failure after `max_wait_s`."""
        failing_since: float | None = None
        attempts = 0
        while True:
            try:
                answer = await attempt()
            except AttemptFailed as failure:
                attempts += 1
                now = self._clock()
                failing_since = now if failing_since is None else failing_since
                self._outage_since = now if self._outage_since is None else self._outage_since
                left_s = self._policy.max_wait_s - (now - min(failing_since, self._outage_since))
                await self._sleep(self._choose_wait(failure, attempts, left_s))
            else:
                self._outage_since = None
                return answer

    def _choose_wait(self, failure: AttemptFailed, attempts: int, left_s: float) -> float:
        asked_s = failure.retry_after_s
        if left_s <= 0 or (asked_s is not None and asked_s > left_s):
            raise ProviderError(self._describe_end(failure, attempts)) from failure
        if asked_s is not None:
            return asked_s + self._draw() * min(1.0, left_s - asked_s)  # spreads concurrent requests
        longest_s = min(self._policy.longest_wait_s, self._policy.first_wait_s * 2.0 ** min(attempts - 1, 30))
        return min(left_s, longest_s * (0.5 + 0.5 * self._draw()))

    def _describe_end(self, failure: AttemptFailed, attempts: int) -> str:
        reason = str(failure).rstrip(".")
        asked = "" if failure.retry_after_s is None else f" (retry after {failure.retry_after_s:g} s)"
        end = "" if not asked and reason.endswith(("?", "!")) else "."
        return (
            f"no usable answer after {attempts} attempt{'s' if attempts > 1 else ''}, "
            f"{self._policy.max_wait_s:g} s of --max-wait: {reason}{asked}{end} "
            "Run the same command again later: stored samples are not requested again"
        )


_RETRYABLE = {408, 409, 425, 429}
_ADVICE = {
    401: "the key was not accepted: check OPENAI_API_KEY",
    402: "the account has no credit: add some or use another key",
    403: "the key may not use this model: check OPENAI_API_KEY and --model",
    404: "no such model or path: check --model and --base-url (most end in /v1)",
}
_QUOTA = "insufficient_quota"
_UNAVAILABLE_FOR_LEGAL_REASONS = 451
_MAY_BE_MODERATION = {400, 403, 422}
_MODERATION = re.compile(
    r"moderat|flagged|(?:content|usage).?(?:polic|filter|management)|violat\w+ .{0,40}polic|safety|harmful",
    re.IGNORECASE,
)
_MESSAGE_KEYS = ("message", "msg", "detail", "error", "errors", "title", "error_msg", "base_resp", "status_msg")
_STATUS_KEYS = ("code", "status_code", "status", "http_status", "error_code")
# Words in the name of an error (its code or type, without `_`, `-` and spaces) for endpoints that send no number.
_STATUS_BY_NAME = {
    "ratelimit": 429, "toomanyrequests": 429, "resourceexhausted": 429, "apikey": 401, "authentication": 401,
    "unauthorized": 401, "unauthenticated": 401, "billing": 402, "permission": 403, "forbidden": 403,
    "notfound": 404, "invalid": 400, "badrequest": 400, "contextlength": 400, "contentpolicy": 400,
    "contentfilter": 400, "unsupported": 400, "unprocessable": 422, "quota": 402,
}  # fmt: skip
# Of errors without a code; all others are permanent.
_TEMPORARY = re.compile(
    r"rate.?limit|too many requests|resource.?exhausted|throttl|overload|capacity|busy|queue|timed?.?out|try again"
    r"|please retry|retry (?:after|in|your)|later|temporar|unavailable|not ready|loading|warming"
    r"|internal|server.?error|(?:unknown|unexpected) error|something went wrong|connect|network|upstream|gateway"
    r"|provider returned|out of memory|crash|abort|cancel|interrupt|shut",
    re.IGNORECASE,
)
_DEEPEST = 6


class RequestInvalid(ProviderError):
    pass


@dataclass(frozen=True, slots=True)
class EndpointError:
    """`status` is an HTTP status, derived from a number or the name of the error, or None."""

    message: str
    status: int | None = None
    name: str = ""


def find_error(answer: object) -> EndpointError | None:
    """Search a body's top, its first choice, and the place of the choices."""
    if isinstance(answer, list):
        return find_error(answer[0]) if answer else None
    if not isinstance(answer, dict):
        return None
    choice = first_choice(answer)
    message = choice.get("message")
    nested = message.get("error") if isinstance(message, dict) else None
    for error in (answer.get("error"), answer.get("errors"), choice.get("error"), nested):
        if _is_error(error):
            return _describe(error, outer=answer)
    is_error = "error" in (answer.get("object"), answer.get("type")) or not answer.get("choices")
    return _describe(answer) if is_error and next(_list_messages(answer), "") else None


def first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def make_failure(
    error: EndpointError, where: str, *, status: int | None = None, retry_after_s: float | None = None
) -> Exception:
    """AttemptFailed repeats the request. EndpointRefused refuses this or every request. RequestInvalid fails the
    request.

    `status` is None if the error came with HTTP 200.
    """
    code = "" if status is not None or error.status is None else f" (code {error.status})"
    message = f"{where}: {error.message}{code}"
    status = status or error.status or _guess_status(error)
    if error.name == _QUOTA:
        return EndpointRefused(f"{message}; the account's quota is exhausted: waiting does not help")
    if status in _RETRYABLE or status >= 500:
        return AttemptFailed(message, retry_after_s=retry_after_s)
    is_moderated = status in _MAY_BE_MODERATION and _MODERATION.search(f"{error.message} {error.name}")
    if is_moderated or status == _UNAVAILABLE_FOR_LEGAL_REASONS:
        return RequestInvalid(f"{message}; the endpoint refuses what the prompt says: change it, or ask another model")
    if status in _ADVICE:
        return EndpointRefused(f"{message}; {_ADVICE[status]}")
    return RequestInvalid(f"{message}; the request is invalid: check --model, --max-tokens and --temperature")


def _is_error(value: object) -> bool:
    """Return False for `{"code": 0}`, with which some endpoints report success."""
    if isinstance(value, dict):
        return any(_list_messages(value)) or _find_status(value) is not None
    return isinstance(value, str | list) and bool(value)


def _describe(error: object, outer: object = None) -> EndpointError:
    inner = [error, *_list_inner(error)]
    parameters = [one["param"] for one in inner if isinstance(one, dict) and isinstance(one.get("param"), str)]
    words = list(dict.fromkeys(word for word in _list_messages(error) if word))
    words += [name for name in parameters[:1] if name and name not in " ".join(words)]
    statuses = [status for one in (*inner, outer) if (status := _find_status(one)) is not None]
    names = [_name(one) for one in (*inner, outer)]
    named = [status for name in names for word, status in _STATUS_BY_NAME.items() if word in name]
    return EndpointError(
        ": ".join(words).rstrip(". ") or json.dumps(error)[:160],
        next(iter((*statuses, *named)), None),
        _QUOTA if any(_QUOTA.replace("_", "") in name for name in names) else " ".join(names),
    )


def _list_messages(value: object, depth: int = 0) -> Iterator[str]:
    """Include the provider's original error, `metadata.raw`, which may be JSON in a string."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        parsed = _parse_object(value)
        yield from [" ".join(value.split())] if parsed is None else _list_messages(parsed, depth + 1)
    elif isinstance(value, list):
        yield from _list_messages(value[0], depth + 1) if value else ()
    elif isinstance(value, dict):
        found = (word for key in _MESSAGE_KEYS for word in _list_messages(value.get(key), depth + 1))
        word, location = next(found, ""), value.get("loc")  # pydantic's path of an invalid field
        where = f" ({'.'.join(map(str, location))})" if isinstance(location, list) else ""
        yield from [f"{word}{where}"] if word else []
        metadata = value.get("metadata")
        yield from _list_messages(metadata.get("raw"), depth + 1) if isinstance(metadata, dict) else ()


def _list_inner(value: object, depth: int = 0) -> Iterator[object]:
    if isinstance(value, str):
        value = _parse_object(value)
        yield from (value,) if value is not None else ()
    if isinstance(value, list):
        value = {"error": value[0]} if value else {}
    if not isinstance(value, dict) or depth > _DEEPEST:
        return
    metadata = value.get("metadata")
    inner = [value.get("error"), value.get("message"), metadata.get("raw") if isinstance(metadata, dict) else None]
    for one in inner:
        if one is not None:
            yield one
            yield from _list_inner(one, depth + 1)


def _parse_object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _find_status(value: object) -> int | None:
    if not isinstance(value, dict):
        return None
    for key in _STATUS_KEYS:
        text = str(value.get(key))
        if re.fullmatch(r"[45]\d\d", text):
            return int(text)
    return None


def _guess_status(error: EndpointError) -> int:
    if _TEMPORARY.search(f"{error.message} {error.name}"):
        return 503
    words = _simplify(error.message)
    return next((status for word, status in _STATUS_BY_NAME.items() if word in words), 400)


def _name(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    words = [value.get(key) for key in ("code", "type", "status", "error_type")]
    return _simplify(" ".join(word for word in words if isinstance(word, str)))


def _simplify(words: str) -> str:
    return re.sub(r"[\W_]+", "", words).lower()
