"""Repeats failing attempts with growing, jittered waits until a time limit."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

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
