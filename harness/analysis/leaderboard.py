"""The leaderboard: one row per (model, prompt, language, device, chip, suite, workload, baseline, dtype).

Samples without a device (no code, rejected, not built) join all device rows of their model. Emulated rows, and rows
with an untimed correct sample, have no speed. A sample counts once, by its best turn, or its last if none is correct.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import exp, inf, log, sqrt
from statistics import mean, median
from typing import Literal, NamedTuple

from harness.analysis.metrics import (
    FAST_THRESHOLDS,
    Draws,
    combine_clocks,
    count_clocks,
    count_once,
    count_outcomes,
    estimate_fast,
    estimate_fast_at_k,
    geometric_mean,
)
from harness.analysis.samples import GroupKey, SampleId, Turns, find_best, group_of, group_samples, result_of
from harness.domain import EMULATED, INEXACT, NO_DEVICE, TRUNCATED, UNTIMED, Outcome
from harness.store.columns import ResultRow

_TRUNCATED = f"note: {TRUNCATED}"  # in the findings of a flat row
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


class SearchSpending(NamedTuple):
    tokens: int
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAtK:
    k: int
    correct: float | None
    fast_1: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """Rates are shares in 0..1 of the `scored` problems; `problems` includes those without a verdict. `fast` has
    (threshold, fast_p). `speedup_low` and `speedup_high` bound the mean by measurement error only. `own_share` and
    `best_turn` are medians over correct candidates. `over_faster` has (name, mean speedup, candidates) of faster
    baselines. `min_own_share` excluded `not_own` correct samples.
    """

    group: GroupKey
    problems: int
    scored: int
    samples: int
    outcomes: tuple[tuple[Outcome, int], ...]
    fast: tuple[tuple[float, float | None], ...]
    geometric_mean_speedup: float | None
    timed: int
    at_k: tuple[RankedAtK, ...] = ()
    hardware: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    speedup_low: float | None = None
    speedup_high: float | None = None
    own_share: float | None = None
    on_device: int = 0
    certified: int = 0
    not_own: int = 0
    truncated: int = 0
    untimed: int = 0
    problem_names: tuple[str, ...] = ()
    mean_turns: float | None = None
    best_turn: float | None = None
    tokens_per_correct: float | None = None
    usd_per_correct: float | None = None
    clocks: Mapping[str, int] = field(default_factory=dict, hash=False)
    over_faster: tuple[tuple[str, float, int], ...] = ()

    @property
    def clock(self) -> str | None:
        return combine_clocks(self.clocks)

    @property
    def certificate(self) -> Literal["yes", "part", "no"] | None:
        if not self.on_device:
            return None
        return "yes" if self.certified == self.on_device else "part" if self.certified else "no"

    def fast_p(self, threshold: float) -> float | None:
        return dict(self.fast)[threshold]


def rank_samples(
    samples: Iterable[ResultRow],
    *,
    problems_by_run: Mapping[str, Collection[str]] | None = None,
    ks: Collection[int] = (),
    min_own_share: float | None = None,
    spent: Mapping[SampleId, SearchSpending] | None = None,
    programs: Mapping[str, str] | None = None,
    common: bool = False,
) -> tuple[LeaderboardRow, ...]:
    """Return rows sorted by fast_1, correctness and mean speedup. Problems in `problems_by_run` without samples are
    unsolved. `common` restricts to problems of all rows. Equal `programs` are one draw. Raises UsageError for a large
    k.
    """
    rows = []
    groups = _group_samples(samples)
    problems = {group: _list_problems(turns, problems_by_run or {}) for group, turns in groups.items()}
    if common:
        problems = _intersect_by_section(problems)
    for group, asked in problems.items():
        turns = {key: one for key, one in groups[group].items() if key[1] in asked}
        latest = _choose_turns(turns)
        row = _score_group(group, latest, asked, ks, min_own_share, programs=programs)
        rows.append(_count_turns(row, turns, latest, spent or {}) if group.turns > 1 else row)
    return tuple(sorted(rows, key=_sort_key))


def describe_unequal_problems(rows: Collection[LeaderboardRow]) -> str:
    sets = [frozenset(row.problem_names) for row in rows]
    if len(set(sets)) < 2:
        return ""
    shared = len(frozenset.intersection(*sets))
    counts = sorted(map(len, sets))
    covered = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else f"{counts[0]} each"
    means = "so their rates do not compare"
    if not shared:
        return f"the rows cover different problems ({covered}, none in common), {means}"
    return (
        f"the rows cover different problems ({covered}, {shared} in common), {means}: "
        "`harness leaderboard --common` ranks them over the common ones"
    )


def _list_problems(turns: Turns, problems_by_run: Mapping[str, Collection[str]]) -> set[str]:
    return _list_requested(turns, problems_by_run) | {problem for _, problem, _ in turns}


def _intersect_by_section(problems: Mapping[GroupKey, set[str]]) -> dict[GroupKey, set[str]]:
    by_section: dict[tuple[str, ...], list[set[str]]] = defaultdict(list)
    for group, names in problems.items():
        by_section[group.section].append(names)
    common = {group: set.intersection(*by_section[group.section]) for group in problems}
    return {group: names for group, names in common.items() if names}


def _count_turns(
    row: LeaderboardRow, turns: Turns, latest: "_Latest", spent: Mapping[SampleId, SearchSpending]
) -> LeaderboardRow:
    correct = [one for one in latest.values() if _is_correct(one)]
    known = [spent[key] for key in latest if key in spent]
    is_known = bool(correct) and len(known) == len(latest)
    costs = [one.usd for one in known if one.usd is not None]
    return replace(
        row,
        mean_turns=mean(max(numbers) + 1 for numbers in turns.values()),
        best_turn=float(median([one.turn for one in correct])) if correct else None,
        tokens_per_correct=sum(one.tokens for one in known) / len(correct) if is_known else None,
        usd_per_correct=sum(costs) / len(correct) if is_known and len(costs) == len(known) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembers:
    samples: tuple[ResultRow, ...]
    draws: tuple[Draws, ...]


def list_members(
    samples: Iterable[ResultRow], *, problems_by_run: Mapping[str, Collection[str]] | None = None
) -> dict[GroupKey, GroupMembers]:
    return {
        group: GroupMembers(
            samples=tuple(latest.values()),
            draws=tuple(_draws_by_problem(latest, _list_requested(latest, problems_by_run or {}))),
        )
        for group, turns in _group_samples(samples).items()
        for latest in (_choose_turns(turns),)
    }


def _list_requested(samples: Iterable[SampleId], problems_by_run: Mapping[str, Collection[str]]) -> set[str]:
    runs = {run for run, _, _ in samples}
    return {problem for run in runs for problem in problems_by_run.get(run, ())}


_Latest = dict[SampleId, ResultRow]


def _group_samples(samples: Iterable[ResultRow]) -> dict[GroupKey, Turns]:
    samples = list(samples)
    most: dict[str, int] = {}
    for one in samples:
        most[one.run] = max(one.turn + 1, most.get(one.run, 1))
    return group_samples(samples, lambda one: group_of(one, most[one.run]))


def _choose_turns(turns: Turns) -> _Latest:
    latest = {}
    for key, by_number in turns.items():
        ordered = [by_number[number] for number in sorted(by_number)]
        best = find_best([result_of(one) for one in ordered]) if len(ordered) > 1 else None
        latest[key] = ordered[-1 if best is None else best]
    return latest


def _score_group(
    group: GroupKey,
    latest: _Latest,
    asked: Collection[str],
    ks: Collection[int],
    min_own_share: float | None,
    *,
    programs: Mapping[str, str] | None,
) -> LeaderboardRow:
    counted = latest if min_own_share is None else _apply_min_custom_share(latest, min_own_share)
    draws = _draws_by_problem(counted, asked)
    distinct = counted if programs is None else _keep_distinct(counted, programs)
    once = count_once(draws, _draws_by_problem(distinct, asked))
    timed = [one for one in counted.values() if one.speedup is not None]
    low, high = _bound_mean(timed)
    on_device = [one for one in latest.values() if one.device != NO_DEVICE]
    correct = [one for one in counted.values() if _is_correct(one)]
    shares = [one.own_share for one in correct if one.own_share is not None]
    untimed = sum(one.verdict in (None, UNTIMED) for one in correct) if group.device != EMULATED else 0
    is_untimed = untimed or (not timed and any(one.verdict == UNTIMED for one in latest.values()))
    is_timed = not is_untimed and group.device != EMULATED
    return LeaderboardRow(
        group=group,
        problems=len(draws),
        scored=sum(one.scored for one in draws),
        samples=len(latest),
        outcomes=count_outcomes(_draws_by_problem(latest, ())),
        fast=tuple(
            (threshold, estimate_fast(draws, threshold) if is_timed or threshold <= 0.0 else None)
            for threshold in FAST_THRESHOLDS
        ),
        geometric_mean_speedup=geometric_mean([one.speedup for one in timed if one.speedup is not None]),
        timed=len(timed),
        at_k=tuple(_rank_at_k(once, k, is_timed=is_timed) for k in sorted(ks)),
        hardware=tuple(sorted({one.hardware for one in latest.values() if one.device != NO_DEVICE} - {""})),
        runs=tuple(sorted({run for run, _, _ in latest})),
        speedup_low=low,
        speedup_high=high,
        own_share=median(shares) if shares else None,
        on_device=len(on_device),
        certified=sum(bool(one.certificate) for one in on_device),
        not_own=sum(map(_is_correct, latest.values())) - sum(map(_is_correct, counted.values())),
        truncated=sum(_TRUNCATED in one.findings.split("; ") for one in latest.values()),
        untimed=untimed,
        problem_names=tuple(one.problem for one in draws),
        clocks=count_clocks(timed),
        over_faster=tuple(_average_over_faster(timed)),
    )


def _is_correct(one: ResultRow) -> bool:
    return one.outcome == Outcome.CORRECT


def _apply_min_custom_share(latest: _Latest, min_own_share: float) -> _Latest:
    return {
        key: one._replace(outcome=Outcome.REJECTED, speedup=None)
        if _is_correct(one) and not _meets_custom_share(one, min_own_share)
        else one
        for key, one in latest.items()
    }


def _meets_custom_share(one: ResultRow, min_own_share: float) -> bool:
    return one.own_share is not None and one.own_share >= min_own_share and one.without_own != "unchanged"


def _bound_mean(timed: Collection[ResultRow]) -> tuple[float | None, float | None]:
    """Return the interval of the geometric mean; the log half-widths of independent measurements add in quadrature."""
    known = [(one.speedup, one.speedup_low, one.speedup_high) for one in timed]
    whole = [(mid, low, high) for mid, low, high in known if mid is not None and low is not None and high is not None]
    mean = geometric_mean([mid for mid, _, _ in whole])
    if mean is None or len(whole) < len(known):
        return None, None
    below = sqrt(sum(log(mid / low) ** 2 if low > 0 else inf for mid, low, _ in whole)) / len(whole)
    above = sqrt(sum(log(high / mid) ** 2 for mid, _, high in whole)) / len(whole)
    return mean * exp(-below), mean * exp(above)


def _average_over_faster(timed: Iterable[ResultRow]) -> Iterator[tuple[str, float, int]]:
    by_name: dict[str, list[float]] = defaultdict(list)
    for one in timed:
        if one.fastest_baseline and one.fastest_baseline != one.baseline and one.over_fastest is not None:
            by_name[one.fastest_baseline].append(one.over_fastest)
    for name, speedups in sorted(by_name.items()):
        yield name, geometric_mean(speedups) or 0.0, len(speedups)


def _draws_by_problem(latest: _Latest, asked: Collection[str]) -> list[Draws]:
    outcomes: dict[str, list[Outcome]] = {problem: [] for problem in sorted(asked)}
    speedups: dict[str, list[float]] = {}
    for (_, problem, _), one in latest.items():
        outcomes.setdefault(problem, []).append(_OUTCOMES[one.outcome])
        if one.speedup is not None:
            speedups.setdefault(problem, []).append(one.speedup)
    return [
        Draws(problem=problem, outcomes=tuple(ended), speedups=tuple(speedups.get(problem, ())))
        for problem, ended in outcomes.items()
    ]


def _keep_distinct(latest: _Latest, programs: Mapping[str, str]) -> _Latest:
    kept: dict[object, SampleId] = {}
    for key, one in sorted(latest.items(), key=lambda entry: not _OUTCOMES[entry[1].outcome].counts_against_model):
        program = programs.get(one.candidate, one.candidate)
        kept.setdefault((one.problem, program) if program else key, key)
    chosen = set(kept.values())
    return {key: one for key, one in latest.items() if key in chosen}


def _rank_at_k(draws: list[Draws], k: int, *, is_timed: bool) -> RankedAtK:
    fast_1 = estimate_fast_at_k(draws, 1.0, k) if is_timed else None
    return RankedAtK(k=k, correct=estimate_fast_at_k(draws, 0.0, k), fast_1=fast_1)


def _sort_key(row: LeaderboardRow) -> tuple[float, float, float, bool, GroupKey]:
    """Sort missing values last, and exact means above equal lower bounds."""
    values = (row.fast_p(1.0), row.fast_p(0.0), row.geometric_mean_speedup)
    fast_1, correct, mean = (1.0 if value is None else -value for value in values)
    return fast_1, correct, mean, row.clock in INEXACT, row.group
