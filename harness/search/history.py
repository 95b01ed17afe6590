"""Holds the turns of one sample with their verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from harness.analysis.samples import TurnResult, beats, find_best
from harness.domain import Evaluation, Outcome

# How far a program came: a repair that fails later is a gain.
_PROGRESS = (
    (Outcome.NO_CODE,),
    (Outcome.REJECTED, Outcome.SUSPECT, Outcome.BUILD_ERROR),
    (Outcome.LOAD_ERROR,),
    (Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY),
    (Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE),
    (Outcome.WRONG_VALUE,),
    (Outcome.CORRECT,),
)
_RANKS = {outcome: rank for rank, outcomes in enumerate(_PROGRESS) for outcome in outcomes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer and its verdict, continued from the turn `parent`. `same_as` is the earlier turn with the same
    program. `is_copy` marks the reference under another name. `measurements` counts evaluations; `usd` is the cost.
    """

    number: int
    evaluation: Evaluation
    source: str | None = None
    parent: int | None = None
    same_as: int | None = None
    is_copy: bool = False
    tokens: int = 0
    usd: float = 0.0
    measurements: int = 1

    @property
    def outcome(self) -> Outcome:
        return self.evaluation.outcome

    @property
    def result(self) -> TurnResult:
        timing, comparison = self.evaluation.timing, self.evaluation.comparison
        return TurnResult(
            is_correct=self.outcome is Outcome.CORRECT and not self.is_copy,
            speedup=self.evaluation.speedup,
            speedup_low=timing.speedup_low if timing else None,
            speedup_high=timing.speedup_high if timing else None,
            turn=self.number,
            rival=comparison.turn if comparison else None,
            over_rival_low=comparison.speedup_low if comparison else None,
            clock=timing.clock if timing else None,
        )

    @property
    def peak_fraction(self) -> float | None:
        return self.evaluation.roofline.peak_fraction if self.evaluation.roofline else None

    @property
    def _progress(self) -> int:
        return _RANKS.get(self.outcome, 0) - self.is_copy

    def improves_on(self, other: Self) -> bool:
        if self.result.is_correct and other.result.is_correct:
            return beats(self.result, other.result)
        return self._progress > other._progress


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    turns: tuple[Turn, ...] = ()

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    @property
    def best(self) -> Turn | None:
        """Return the best correct turn; a later one must beat it beyond the measurement error."""
        index = find_best([turn.result for turn in self.turns])
        return None if index is None else self.turns[index]

    @property
    def tokens(self) -> int:
        return sum(turn.tokens for turn in self.turns)

    @property
    def usd(self) -> float:
        return sum(turn.usd for turn in self.turns)

    @property
    def turns_without_gain(self) -> int:
        """Count turns since the last one that improved on all before it."""
        leader, gained = 0, 0
        for index, turn in enumerate(self.turns):
            if turn.improves_on(self.turns[leader]):
                leader, gained = index, index
        return len(self.turns) - 1 - gained if self.turns else 0

    def find(self, number: int) -> Turn:
        return next(turn for turn in self.turns if turn.number == number)

    def trace(self, number: int) -> Sequence[Turn]:
        """Return the turns from the first ancestor to this one."""
        path = [self.find(number)]
        while path[-1].parent is not None:
            path.append(self.find(path[-1].parent))
        return path[::-1]


def rank(turns: Sequence[Turn]) -> list[Turn]:
    """Sort the best first, of equals the earlier. Omit repeated programs."""
    ranked: list[Turn] = []
    for turn in turns:
        if turn.same_as is None:
            place = next((at for at, other in enumerate(ranked) if turn.improves_on(other)), len(ranked))
            ranked.insert(place, turn)
    return ranked
