"""Ranks candidates of one problem that were given as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.domain import Comparison, Evaluation, Outcome, Timing

if TYPE_CHECKING:
    from harness.store.results import StoredEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFile:
    """`close_to` names the file with the largest speedup, if their intervals overlap. `pairs` compare both directly."""

    name: str
    stored: StoredEvaluation
    close_to: str = ""
    pairs: Comparison | None = None

    @property
    def evaluation(self) -> Evaluation:
        return self.stored.evaluation

    @property
    def is_correct(self) -> bool:
        return self.evaluation.outcome is Outcome.CORRECT

    @property
    def timing(self) -> Timing | None:
        return None if self.evaluation.speedup is None else self.evaluation.timing

    @property
    def device_kind(self) -> str:
        return self.evaluation.subject.device.partition(":")[0]


def rank_files(files: Iterable[RankedFile]) -> list[RankedFile]:
    """Put the largest speedup first, then correct files without a time, then failures in the given order. A file that
    gains over the largest speedup in pairs precedes it.
    """
    return sorted(files, key=_rank)


def _rank(file: RankedFile) -> tuple[bool, float, float]:
    gain = file.pairs.speedup if file.pairs is not None and file.pairs.is_gain else None
    return not file.is_correct, -(gain or 0.0), -(file.evaluation.speedup or 0.0)


def find_close(ranked: Sequence[RankedFile]) -> list[RankedFile]:
    """Return the files whose interval overlaps that of the first, by the same clock on the same kind of device."""
    first, others = ranked[0], ranked[1:]
    return [one for one in others if one.device_kind == first.device_kind and _overlap(one.timing, first.timing)]


def _overlap(one: Timing | None, first: Timing | None) -> bool:
    if one is None or first is None:
        return False
    return one.clock == first.clock and one.speedup_high >= first.speedup_low
