"""How long and how often a failing attempt is repeated. Time is simulated: sleeping moves the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import ProviderError
from harness.generate.providers.endpoint_errors import AttemptFailed, Retrier, RetryPolicy


class Simulation:
    """A clock, and an endpoint that fails until `up_at_s`."""

    def __init__(self, *, up_at_s: float, retry_after_s: float | None = None, draw: Callable[[], float] = lambda: 1.0):
        self.now_s = 0.0
        self.waits_s: list[float] = []
        self.up_at_s = up_at_s
        self.retry_after_s = retry_after_s
        self.draw = draw

    async def attempt(self) -> str:
        if self.now_s < self.up_at_s:
            raise AttemptFailed("down", retry_after_s=self.retry_after_s)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waits_s.append(seconds)
        self.now_s += seconds

    def make_retrier(self, policy: RetryPolicy) -> Retrier:
        return Retrier(policy, clock=lambda: self.now_s, sleep=self.sleep, draw=self.draw)

    def run(self, policy: RetryPolicy) -> str:
        return asyncio.run(self.make_retrier(policy).run(self.attempt))


def test_a_long_outage_is_survived() -> None:
    simulation = Simulation(up_at_s=590.0)
    assert simulation.run(RetryPolicy()) == "answer"
    assert simulation.now_s <= 600.0


def test_waits_double_up_to_the_longest() -> None:
    simulation = Simulation(up_at_s=100.0)
    simulation.run(RetryPolicy())
    assert simulation.waits_s[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_no_patience_means_one_attempt() -> None:
    simulation = Simulation(up_at_s=1.0)
    with pytest.raises(ProviderError, match=r"after 1 attempt, 0 s of --max-wait: down"):
        simulation.run(RetryPolicy(max_wait_s=0.0))
    assert simulation.waits_s == []


def test_wait_is_at_least_the_retry_after_of_the_endpoint() -> None:
    simulation = Simulation(up_at_s=20.0, retry_after_s=7.0)
    simulation.run(RetryPolicy())
    assert all(7.0 <= wait_s <= 8.0 for wait_s in simulation.waits_s)


def test_an_answer_to_anybody_ends_the_outage_for_all() -> None:
    simulation = Simulation(up_at_s=9.0)
    retrier = simulation.make_retrier(RetryPolicy(max_wait_s=10.0))
    asyncio.run(retrier.run(simulation.attempt))
    simulation.up_at_s = simulation.now_s + 9.0
    assert asyncio.run(retrier.run(simulation.attempt)) == "answer"


def test_after_an_outage_too_long_the_next_request_fails_at_once() -> None:
    simulation = Simulation(up_at_s=1e9)
    retrier = simulation.make_retrier(RetryPolicy(max_wait_s=10.0))
    with pytest.raises(ProviderError):
        asyncio.run(retrier.run(simulation.attempt))
    waits = len(simulation.waits_s)
    with pytest.raises(ProviderError, match="after 1 attempt,"):
        asyncio.run(retrier.run(simulation.attempt))
    assert len(simulation.waits_s) == waits


@given(
    up_at_s=st.floats(0, 1000),
    max_wait_s=st.floats(0, 700),
    retry_after_s=st.none() | st.floats(0, 800),
    drawn=st.floats(0, 1, exclude_max=True),
)
def test_it_never_waits_longer_than_its_patience(
    up_at_s: float, max_wait_s: float, retry_after_s: float | None, drawn: float
) -> None:
    simulation = Simulation(up_at_s=up_at_s, retry_after_s=retry_after_s, draw=lambda: drawn)
    if retry_after_s is not None and retry_after_s < 0.01:
        simulation.retry_after_s = 0.01  # time must pass for the simulation to end
    try:
        simulation.run(RetryPolicy(max_wait_s=max_wait_s))
    except ProviderError:
        assert up_at_s > 0
    assert simulation.now_s <= max_wait_s + 1e-6
