"""Holds and describes the result of a search over turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.domain import Evaluation, SampleKey
from harness.report.terminal.tables import format_speedup
from harness.search.history import History, Turn

if TYPE_CHECKING:
    from harness.analysis.leaderboard import LeaderboardRow
    from harness.generate.sampler import SessionReport
    from harness.pipeline.evaluations import EvaluationReport

PLAIN_TORCH = "Plain PyTorch, without a custom kernel, is evaluated with --language torch."


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSearch:
    """`stopped` is the reason to end. `failure` is the endpoint's; the same command continues."""

    key: SampleKey
    history: History
    stopped: str
    failure: bool = False


@dataclass(slots=True, kw_only=True)
class SearchReport:
    """`strategy` "" means one turn per sample. `ranking` is the final leaderboard."""

    strategy: str
    asked: SessionReport
    evaluated: EvaluationReport
    samples: list[SampleSearch] = field(default_factory=list)
    ranking: Sequence[LeaderboardRow] = ()


def describe_search(report: SearchReport) -> Sequence[dict[str, object]]:
    return [
        {
            "run": one.key.run,
            "problem": one.key.problem,
            "sample": one.key.sample,
            "strategy": report.strategy,
            "turns": [_describe_turn(turn) for turn in one.history.turns],
            "best": one.history.best.number if one.history.best else None,
            "tokens": one.history.tokens,
            "stopped": one.stopped,
            "failed": one.failure,
        }
        for one in report.samples
    ]


def _describe_turn(turn: Turn) -> dict[str, object]:
    result, pairs = turn.result, turn.evaluation.comparison
    return {
        "turn": turn.number,
        "parent": turn.parent,
        "outcome": turn.outcome.value,
        "same_as": turn.same_as,
        "speedup": result.speedup,
        "speedup_low": result.speedup_low,
        "speedup_high": result.speedup_high,
        "rival": pairs.turn if pairs else None,
        "over_rival": pairs.speedup if pairs else None,
        "over_rival_low": pairs.speedup_low if pairs else None,
        "tokens": turn.tokens,
    }


def describe_turns(one: SampleSearch) -> str:
    path = " > ".join(_name_result(turn) for turn in one.history.turns) or "nothing asked"
    best = one.history.best
    chosen = "" if best is None or len(one.history.turns) == 1 else f"; best: turn {best.number}"
    return f"{one.key.problem}/{one.key.sample}: {path}{chosen} ({one.stopped})"


def explain_failures(report: SearchReport) -> Iterator[str]:
    for turn in (turn for one in report.samples for turn in one.history.turns):
        if turn.evaluation.message:
            yield f"turn {turn.number}: {turn.outcome.value}: {turn.evaluation.message.splitlines()[0]}"
        if turn.number == 0 and lacks_kernel(turn.evaluation):
            yield PLAIN_TORCH


def lacks_kernel(evaluation: Evaluation) -> bool:
    return any(one.check == "no_own_kernel" and one.severity == "fatal" for one in evaluation.findings)


def _name_result(turn: Turn) -> str:
    if turn.same_as is not None:
        return f"same as turn {turn.same_as}"
    timing = turn.evaluation.timing
    if timing is None:
        return turn.outcome.value
    if turn.evaluation.speedup is not None:  # as it is ranked: 1 for a tie
        note = f" (a tie, measured {format_speedup(timing.speedup, timing.clock)})" if timing.verdict == "tie" else ""
        return f"{turn.outcome.value} {format_speedup(turn.evaluation.speedup, timing.clock)}{note}"
    return f"{turn.outcome.value}, {timing.verdict} time"
