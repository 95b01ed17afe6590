"""Computes the reward of a verdict for reinforcement learning, by pure functions of the stored record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.domain import NoVerdict, Outcome

UNBUILT = (Outcome.NO_CODE, Outcome.BUILD_ERROR)
UNLOADED = (*UNBUILT, Outcome.LOAD_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """Rewards of incorrect programs, by the last stage reached, and limits.

    `suspect` is for cheating and rejected programs, `untimed` for correct ones without times. `cap` is the largest
    reward.
    """

    unbuilt: float = 0.0
    built: float = 0.0
    loaded: float = 0.0
    suspect: float = 0.0
    untimed: float = 1.0
    cap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    value: float
    metrics: Mapping[str, float]
    outcome: str
    message: str


def score_verdict(verdict: Mapping[str, Any], shaping: Shaping | None = None) -> Reward:
    """Use the speedup's lower end. A tie is 1; without a confirmed time at most 1. Raises NoVerdict for our faults."""
    outcome, chosen = Outcome(verdict["outcome"]), shaping or Shaping()
    if not outcome.counts_against_model:
        raise NoVerdict(f"{outcome.value}: {verdict['message']}")
    return Reward(
        value=_score_correct(verdict, chosen) if outcome is Outcome.CORRECT else _score_failure(outcome, chosen),
        metrics=_list_metrics(verdict, outcome),
        outcome=outcome.value,
        message=verdict["message"],
    )


def _score_correct(verdict: Mapping[str, Any], shaping: Shaping) -> float:
    timing = verdict["timing"]
    if timing is None:
        value = shaping.untimed
    elif timing["verdict"] == "tie":
        value = 1.0
    elif timing["verdict"] in ("faster", "slower"):
        value = float(timing["speedup_low"])
    else:
        value = min(1.0, float(timing["speedup_low"]))
    return value if shaping.cap is None else min(value, shaping.cap)


def _score_failure(outcome: Outcome, shaping: Shaping) -> float:
    if outcome in (Outcome.SUSPECT, Outcome.REJECTED):
        return shaping.suspect
    if outcome in UNBUILT:
        return shaping.unbuilt
    return shaping.built if outcome is Outcome.LOAD_ERROR else shaping.loaded


def _list_metrics(verdict: Mapping[str, Any], outcome: Outcome) -> dict[str, float]:
    timing, work = verdict["timing"], verdict["work"]
    metrics = {
        "built": float(outcome not in UNBUILT),
        "loaded": float(outcome not in UNLOADED),
        "correct": float(outcome is Outcome.CORRECT),
        "suspect": float(outcome is Outcome.SUSPECT),
    }
    if verdict["speedup"] is not None:
        metrics |= {"speedup": float(verdict["speedup"]), "speedup_low": float(timing["speedup_low"])}
    if not work:
        return metrics
    return metrics | {"own_share": float(work["custom"]) if work["without_custom"] != "unchanged" else 0.0}
