"""Which model writes the fastest kernels: one row per (model, prompt, language, device, suite, workload, baseline).

Pure functions of judged samples; `harness.rank.metrics` says what counts. Rows of different devices, workloads or
baselines are never mixed into one, with one exception: a sample whose evaluation never reached a device ("none": no
code, rejected, not built) says the same about every device, so it joins the rows of the devices that its model was
judged on. It gets a row of its own only if there are none.

One sample has one voice: of its turns the last counts, of its evaluations the latest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.domain import Evaluation, Outcome
from harness.rank.metrics import (
    FAST_THRESHOLDS,
    Draws,
    count_outcomes,
    estimate_fast,
    estimate_fast_at_k,
    geometric_mean,
)

NO_DEVICE = "none"
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


class GroupKey(NamedTuple):
    """What is never mixed."""

    model: str
    prompt: str
    language: str
    device: str
    suite: str
    workload: str
    baseline: str


class JudgedSample(NamedTuple):
    """The few fields of an evaluation that rank it: cheap to make by the hundred thousand."""

    run: str
    problem: str
    sample: int
    turn: int
    suite: str
    model: str
    prompt: str
    language: str
    device: str
    workload: str
    baseline: str
    outcome: str
    speedup: float | None
    hardware: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAtK:
    """pass@k and fast_1@k: what the best of k draws would reach."""

    k: int
    correct: float | None
    fast_1: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One group. Rates are shares in 0..1 of the `scored` problems, None when there are none; `problems` counts all
    that were asked for, and the difference is what only the harness or the machine is to blame for. `fast` pairs each
    threshold p with fast_p. `hardware` names the chips it was judged on; more than one deserves a second look."""

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

    def fast_p(self, threshold: float) -> float | None:
        """fast_p at one of the thresholds of `FAST_THRESHOLDS`; fast_p(0) is the correctness rate."""
        return dict(self.fast)[threshold]


def rank_rows(
    evaluations: Iterable[Evaluation],
    *,
    problems_by_run: Mapping[str, Collection[str]] | None = None,
    problems_by_suite: Mapping[str, Collection[str]] | None = None,
    ks: Collection[int] = (),
) -> tuple[LeaderboardRow, ...]:
    """Ranks whole evaluations; see `rank_samples`."""
    samples = (_judged_sample(evaluation) for evaluation in evaluations)
    return rank_samples(samples, problems_by_run=problems_by_run, problems_by_suite=problems_by_suite, ks=ks)


def rank_samples(
    samples: Iterable[JudgedSample],
    *,
    problems_by_run: Mapping[str, Collection[str]] | None = None,
    problems_by_suite: Mapping[str, Collection[str]] | None = None,
    ks: Collection[int] = (),
) -> tuple[LeaderboardRow, ...]:
    """One row per group, best first: by fast_1, then correctness, then mean speedup.

    `samples` come in the order in which they were judged. Rates are over all problems of a group: those judged, those
    its runs asked for (`problems_by_run`, from their manifests) and those of its suite (`problems_by_suite`); what is
    known and has no sample counts as not solved. Raises UsageError for a k in `ks` that the samples cannot give.
    """
    rows = []
    for group, voices in _fold_deviceless(_group_samples(samples)).items():
        runs = {run for run, _, _ in voices}
        asked = set((problems_by_suite or {}).get(group.suite, ()))
        asked.update(problem for run in runs for problem in (problems_by_run or {}).get(run, ()))
        rows.append(_score_group(group, voices, asked, ks))
    return tuple(sorted(rows, key=_standing))


_Voice = tuple[str, str, int]  # run, problem, sample
_Voices = dict[_Voice, JudgedSample]


def _judged_sample(evaluation: Evaluation) -> JudgedSample:
    subject = evaluation.subject
    shared = {name: getattr(subject, name) for name in JudgedSample._fields if hasattr(subject, name)}
    return JudgedSample(**shared, outcome=evaluation.outcome, speedup=evaluation.speedup, hardware=evaluation.hardware)


def _group_samples(samples: Iterable[JudgedSample]) -> dict[GroupKey, _Voices]:
    groups: dict[GroupKey, _Voices] = {}
    for one in samples:
        group = GroupKey(one.model, one.prompt, one.language, one.device, one.suite, one.workload, one.baseline)
        voices = groups.setdefault(group, {})
        voice = (one.run, one.problem, one.sample)
        earlier = voices.get(voice)
        if earlier is None or earlier.turn <= one.turn:
            voices[voice] = one
    return groups


def _fold_deviceless(groups: dict[GroupKey, _Voices]) -> dict[GroupKey, _Voices]:
    """Lets samples that never reached a device join their model's rows on real devices, where such rows exist. What
    was judged on a device stands against an equally late turn that was not."""
    on_device = {group: voices for group, voices in groups.items() if group.device != NO_DEVICE}
    homes: dict[GroupKey, list[_Voices]] = {}
    for group, voices in on_device.items():
        homes.setdefault(group._replace(device=NO_DEVICE), []).append(voices)
    left_alone = {}
    for group in groups.keys() - on_device.keys():
        for home in homes.get(group, []):
            _join(home, groups[group])
        if group not in homes:
            left_alone[group] = groups[group]
    return on_device | left_alone


def _join(home: _Voices, guests: _Voices) -> None:
    for voice, guest in guests.items():
        if voice not in home or home[voice].turn < guest.turn:
            home[voice] = guest


def _score_group(group: GroupKey, voices: _Voices, asked: Collection[str], ks: Collection[int]) -> LeaderboardRow:
    draws = _draws_by_problem(voices, asked)
    speedups = [speedup for one in draws for speedup in one.speedups]
    return LeaderboardRow(
        group=group,
        problems=len(draws),
        scored=sum(one.scored for one in draws),
        samples=len(voices),
        outcomes=count_outcomes(draws),
        fast=tuple((threshold, estimate_fast(draws, threshold)) for threshold in FAST_THRESHOLDS),
        geometric_mean_speedup=geometric_mean(speedups),
        timed=len(speedups),
        at_k=tuple(_rank_at_k(draws, k) for k in sorted(ks)),
        hardware=_list_hardware(voices),
        runs=tuple(sorted({run for run, _, _ in voices})),
    )


def _list_hardware(voices: _Voices) -> tuple[str, ...]:
    return tuple(sorted({one.hardware for one in voices.values() if one.device != NO_DEVICE} - {""}))


def _draws_by_problem(voices: _Voices, asked: Collection[str]) -> list[Draws]:
    outcomes: dict[str, list[Outcome]] = {problem: [] for problem in sorted(asked)}
    speedups: dict[str, list[float]] = {}
    for (_, problem, _), one in voices.items():
        outcomes.setdefault(problem, []).append(_OUTCOMES[one.outcome])
        if one.speedup is not None:
            speedups.setdefault(problem, []).append(one.speedup)
    return [
        Draws(problem=problem, outcomes=tuple(ended), speedups=tuple(speedups.get(problem, ())))
        for problem, ended in outcomes.items()
    ]


def _rank_at_k(draws: list[Draws], k: int) -> RankedAtK:
    return RankedAtK(k=k, correct=estimate_fast_at_k(draws, 0.0, k), fast_1=estimate_fast_at_k(draws, 1.0, k))


def _standing(row: LeaderboardRow) -> tuple[float, float, float, GroupKey]:
    """Best first; what has no value comes after what has a bad one; names break ties."""
    values = (row.fast_p(1.0), row.fast_p(0.0), row.geometric_mean_speedup)
    fast_1, correct, mean = (1.0 if value is None else -value for value in values)
    return fast_1, correct, mean, row.group
