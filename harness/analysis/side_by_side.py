"""Compares two sets of evaluations on the same problems, within sections.

Per problem: Welch test on log speedups, false discovery rate by Benjamini-Hochberg. Over problems: Wilcoxon signed-rank
test of speed, sign test of correctness.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from harness.analysis.intervals import SpeedRatio, find_error
from harness.analysis.metrics import NO_VERDICT, combine_clocks, count_clocks
from harness.analysis.samples import Section, group_samples, section_of
from harness.domain import Outcome
from harness.store.columns import ResultRow

FALSE_DISCOVERY_RATE = 0.05
MESSAGE_CHARACTERS = 100
_NO_VERDICT = frozenset(outcome.value for outcome in NO_VERDICT)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")

FlipKind = Literal["won", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTest(SpeedRatio):
    """Ratio of geometric means; `q` is the adjusted p-value."""

    p: float
    q: float | None = None

    @property
    def is_significant(self) -> bool:
        return (self.p if self.q is None else self.q) <= FALSE_DISCOVERY_RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    problem: str
    pair: str
    before: tuple[ResultRow, ...]
    after: tuple[ResultRow, ...]
    speed: SpeedTest | None = None

    @property
    def name(self) -> str:
        return self.pair or self.problem

    @property
    def has_other_clock(self) -> bool:
        """Both sides are timed, but by different clocks, so their speedups are not comparable."""
        clocks = [combine_clocks(count_clocks(rows)) for rows in (self.before, self.after)]
        return None not in clocks and clocks[0] != clocks[1]

    @property
    def flip(self) -> FlipKind | None:
        """`lost` means that some sample was correct before and none after; `won` is the opposite."""
        was, now = share_correct(self.before) > 0, share_correct(self.after) > 0
        return None if was == now else "won" if now else "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """`correct_before` and `correct_after` are fast_0. `speed` covers pairs timed on both sides."""

    group: Section
    pairs: tuple[Pair, ...]
    correct_before: float
    correct_after: float
    correct_p: float
    speed: SpeedTest | None

    @property
    def timed(self) -> int:
        return sum(pair.speed is not None for pair in self.pairs)

    @property
    def other_clock(self) -> int:
        return sum(pair.has_other_clock for pair in self.pairs)

    def flips(self, kind: FlipKind) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.flip == kind)

    def changed_speed(self) -> tuple[Pair, ...]:
        found = [(pair.speed.ratio, pair) for pair in self.pairs if pair.speed and pair.speed.is_significant]
        return tuple(pair for _, pair in sorted(found, key=lambda entry: entry[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResult:
    """`other_version` lists problems with changed source, which are not compared."""

    groups: tuple[GroupComparison, ...]
    only_before: tuple[tuple[Section, str], ...]
    only_after: tuple[tuple[Section, str], ...]
    other_version: tuple[tuple[Section, str], ...]
    outcomes: Mapping[str, tuple[int, int]]
    messages: tuple[tuple[str, int, int], ...]


_Key = tuple[Section, str, str]  # group, problem, pair


def compare_rows(
    before: Iterable[ResultRow],
    after: Iterable[ResultRow],
    versions: Mapping[int, str] | None = None,
    *,
    by_sample: bool = False,
) -> DiffResult:
    """Sides in evaluation order, with measured speedups or None. `by_sample` pairs each sample with itself."""
    sides = tuple(_group_samples(rows, by_sample=by_sample) for rows in (before, after))
    shared = [key for key in sides[0] if key in sides[1]]
    known = versions or {}
    other_version = [key for key in shared if len({known.get(row.id) for side in sides for row in side[key]}) > 1]
    dropped = set(other_version)
    by_group: dict[Section, list[Pair]] = defaultdict(list)
    for key in sorted(set(shared) - dropped):
        rows = [tuple(sides[number][key]) for number in (0, 1)]
        by_group[key[0]].append(Pair(problem=key[1], pair=key[2], before=rows[0], after=rows[1]))
    groups = tuple(_compare_group(group, pairs) for group, pairs in sorted(by_group.items()))
    pairs = [pair for group in groups for pair in group.pairs]
    outcomes = _count_on_sides(pairs, lambda rows: [row.outcome for row in rows])
    messages = [(text, *counts) for text, counts in _count_on_sides(pairs, _messages_of).items()]
    return DiffResult(
        groups=groups,
        only_before=_name_keys(key for key in sides[0] if key not in sides[1]),
        only_after=_name_keys(key for key in sides[1] if key not in sides[0]),
        other_version=_name_keys(other_version),
        outcomes={outcome.value: outcomes[outcome.value] for outcome in Outcome if outcome.value in outcomes},
        messages=tuple(sorted(messages, key=lambda entry: (-abs(entry[2] - entry[1]), entry[0]))),
    )


def share_correct(rows: Sequence[ResultRow]) -> float:
    evaluated = [row for row in rows if row.outcome not in _NO_VERDICT]
    return sum(row.outcome == Outcome.CORRECT for row in evaluated) / len(evaluated) if evaluated else 0.0


def shorten_message(message: str) -> str:
    """Replace numbers, so that equal errors compare equal."""
    first = message.strip().split("\n", 1)[0]
    return _NUMBER.sub("#", first)[:MESSAGE_CHARACTERS]


def _group_samples(rows: Iterable[ResultRow], *, by_sample: bool) -> dict[_Key, list[ResultRow]]:
    grouped: dict[_Key, list[ResultRow]] = defaultdict(list)
    for section, samples in group_samples(rows, section_of).items():
        for turns in samples.values():
            row = turns[max(turns)]
            if row.outcome not in _NO_VERDICT:
                pair = f"{row.run}/{row.problem}/{row.sample}" if by_sample else ""
                grouped[section, row.problem, pair].append(row)
    return grouped


def _name_keys(keys: Iterable[_Key]) -> tuple[tuple[Section, str], ...]:
    return tuple(sorted({(group, pair or problem) for group, problem, pair in keys}))


def _compare_group(group: Section, pairs: Sequence[Pair]) -> GroupComparison:
    tested = _control_discoveries([_with_speed(pair) for pair in pairs])
    shares = [(share_correct(pair.before), share_correct(pair.after)) for pair in pairs]
    return GroupComparison(
        group=group,
        pairs=tuple(tested),
        correct_before=fmean(was for was, _ in shares),
        correct_after=fmean(now for _, now in shares),
        correct_p=_test_signs([now - was for was, now in shares]),
        speed=_test_ranks([pair.speed for pair in tested if pair.speed is not None]),
    )


def _with_speed(pair: Pair) -> Pair:
    before, after = _logs_of(pair.before), _logs_of(pair.after)
    if not before or not after or pair.has_other_clock:
        return pair
    speed = replace(_test_means(before, after), clock=combine_clocks(count_clocks(pair.after)))
    return Pair(problem=pair.problem, pair=pair.pair, before=pair.before, after=pair.after, speed=speed)


def _logs_of(rows: Iterable[ResultRow]) -> list[tuple[float, float]]:
    """Return (log speedup, its standard error) of each timed sample."""
    found = []
    for row in rows:
        if row.speedup is not None:
            low, high = row.speedup_low, row.speedup_high
            found.append((math.log(row.speedup), find_error(low, high) if low and high else 0.0))
    return found


def _test_means(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]) -> SpeedTest:
    from scipy.special import stdtr, stdtrit

    means = [fmean(value for value, _ in side) for side in (before, after)]
    scatter = [
        _variance([value for value, _ in side]) / len(side) if len(side) > 1 else 0.0 for side in (before, after)
    ]
    measured = sum(sum(error**2 for _, error in side) / len(side) ** 2 for side in (before, after))
    whole = sum(scatter) + measured
    doubts = [part**2 / (len(side) - 1) for part, side in zip(scatter, (before, after), strict=True) if part > 0]
    freedom = min(whole**2 / sum(doubts), 1e6) if doubts and sum(doubts) > 0 else 1e6
    change, error = means[1] - means[0], math.sqrt(whole)
    margin = float(stdtrit(freedom, 0.975)) * error
    p = 2 * float(stdtr(freedom, -abs(change) / error)) if error > 0 else float(change == 0)
    return SpeedTest.of_logs(means[0], means[1], margin, margin, p=min(p, 1.0))


def _variance(values: Sequence[float]) -> float:
    """Needs two values. `statistics.variance` uses fractions and is 100 times slower."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _control_discoveries(pairs: Sequence[Pair]) -> list[Pair]:
    from scipy.stats import false_discovery_control

    tested = [pair.speed.p for pair in pairs if pair.speed is not None]
    if not tested:
        return list(pairs)
    adjusted = iter(false_discovery_control(tested))
    return [replace(pair, speed=replace(pair.speed, q=float(next(adjusted)))) if pair.speed else pair for pair in pairs]


def _test_ranks(tests: Sequence[SpeedTest]) -> SpeedTest | None:
    """Combine a t interval of the ratio of geometric means with Wilcoxon's test."""
    from scipy.special import stdtrit
    from scipy.stats import wilcoxon

    if not tests:
        return None
    changes = [math.log(test.ratio) for test in tests]
    means = [
        fmean(math.log(value) for value in side)
        for side in zip(*((one.before, one.after) for one in tests), strict=True)
    ]
    p = float(wilcoxon(changes).pvalue) if len(changes) > 1 and any(changes) else 1.0
    error = math.sqrt(_variance(changes) / len(changes)) if len(changes) > 1 else math.inf
    margin = float(stdtrit(len(changes) - 1, 0.975)) * error if len(changes) > 1 else math.inf
    return SpeedTest.of_logs(means[0], means[1], margin, margin, p=min(p, 1.0))


def _test_signs(changes: Sequence[float]) -> float:
    from scipy.special import bdtr

    better, worse = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return min(2 * float(bdtr(min(better, worse), better + worse, 0.5)), 1.0) if better + worse else 1.0


def _count_on_sides(
    pairs: Iterable[Pair], name: Callable[[Iterable[ResultRow]], Iterable[str]]
) -> dict[str, tuple[int, int]]:
    before, after = Counter[str](), Counter[str]()
    for pair in pairs:
        before.update(name(pair.before))
        after.update(name(pair.after))
    return {text: (before[text], after[text]) for text in before | after}


def _messages_of(rows: Iterable[ResultRow]) -> Iterable[str]:
    for row in rows:
        if row.outcome != Outcome.CORRECT:
            short = shorten_message(row.message)
            yield f"{row.outcome}: {short}" if short else row.outcome
