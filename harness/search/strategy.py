"""The protocol of strategies: after each verdict a strategy chooses the turn that the next request continues from.

A strategy is a pure function of the history, so an interrupted search resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.domain import UsageError
from harness.search.history import History, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The next request. It continues from the program of the turn `parent` (None: the problem alone, without feedback),
    and combines it with that of `partner`.
    """

    parent: int | None
    partner: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    reason: str


Decision = Ask | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """`choose` gets a history of at least one turn. The search ends after `patience` turns without a gain (None:
    unlimited).
    """

    name: str
    choose: Callable[[History], Decision]
    needs_timing: bool = False
    patience: int | None = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The goal of a search: a share of the roofline, or a speedup (the lower end of its interval)."""

    roofline: float = 0.95
    speedup: float | None = None


ROOFLINE = Target()


def parse_target(text: str) -> Target:
    """Raises UsageError."""
    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = 0.0
    if text.endswith("x") and value > 0:
        return Target(speedup=value)
    if 0 < value <= 1:
        return Target(roofline=value)
    raise UsageError(f"--target {text}: give a share of the roofline in 0..1, or a speedup with an x, such as 2x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one sample. `turns` counts answers, without the initial `given` program. Budgets count prompts and
    answers.
    """

    turns: int
    given: int = 0
    patience: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    target: Target = ROOFLINE


def decide(strategy: Strategy, history: History, limits: Limits) -> Decision:
    reason = next(_find_limits(strategy, history, limits), None)
    if reason is not None:
        return Stop(reason=reason)
    return strategy.choose(history) if history.turns else Ask(parent=None)


def _find_limits(strategy: Strategy, history: History, limits: Limits) -> Iterator[str]:
    if limits.budget_tokens is not None and history.tokens >= limits.budget_tokens:
        yield f"the budget of {limits.budget_tokens} tokens is spent"
    if limits.budget_usd is not None and history.usd >= limits.budget_usd:
        yield f"the budget of {limits.budget_usd:g} US dollars is spent"
    if not history.turns:
        return
    best, patience = history.best, strategy.patience if limits.patience is None else limits.patience
    if not history.last.outcome.counts_against_model:
        yield f"turn {history.last.number} has no verdict: {history.last.outcome}"
    if best is not None:
        yield from _find_reached(best, limits.target)
    if patience is not None and history.turns_without_gain >= patience:
        yield f"{patience} turns without a gain"
    if len(history.turns) - limits.given >= limits.turns:
        yield f"all {limits.turns} turns are used"


def _find_reached(best: Turn, target: Target) -> Iterator[str]:
    if target.speedup is not None and (best.result.speedup_low or 0.0) >= target.speedup:
        yield f"the target of {target.speedup:g}x is reached"
    if (best.peak_fraction or 0.0) >= target.roofline:
        yield f"turn {best.number} is at {best.peak_fraction:.0%} of the roofline"
