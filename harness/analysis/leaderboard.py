"""Which model writes the fastest kernels: one row per (model, prompt, language, device, chip, suite, workload,
baseline).

Pure functions of judged samples; `harness.analysis.metrics` says what counts. Rows of different devices, chips,
workloads or baselines are never mixed into one, with one exception: a sample whose evaluation never reached a device
("none": no code, rejected, not built) says the same about every device, so it joins the rows of the devices that its
model was judged on. It gets a row of its own only if there are none. What was emulated has a correctness, and no speed.

One sample has one voice: of its turns the last counts, of its evaluations the latest.

`min_own_share` asks who did the work: a correct candidate then counts as correct and fast only if at least that share
of its time is in its own code, and its outputs need that code. One whose share was not measured does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import median
from typing import Literal, NamedTuple

from harness.analysis.metrics import (
    FAST_THRESHOLDS,
    Draws,
    count_outcomes,
    estimate_fast,
    estimate_fast_at_k,
    geometric_mean,
)
from harness.domain import EMULATED, TRUNCATED, Evaluation, Outcome, chip_of

NO_DEVICE = "none"
_TRUNCATED = f"note: {TRUNCATED}"  # in the findings of a flat row
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


class GroupKey(NamedTuple):
    """What is never mixed."""

    model: str
    prompt: str
    language: str
    device: str  # its kind: the GPUs of one chip are alike, whatever their numbers
    suite: str
    workload: str
    baseline: str
    chip: str  # the name of the GPU or CPU; "" where nothing was timed: emulated, or never on a device


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
    speedup_low: float | None
    speedup_high: float | None
    hardware: str
    own_share: float | None
    without_own: str | None
    certificate: str
    id: int = 0
    findings: str = ""


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
    threshold p with fast_p. `hardware` names the chip it was judged on, or what was emulated on which CPUs.

    `speedup_low` and `speedup_high` bound the mean speedup by what its measurements leave open; other problems could
    give another mean. `own_share` is the median share of a correct candidate's time in its own code. Of the
    `on_device` samples that reached a device, `certified` were judged under a valid red-team certificate. `not_own`
    counts correct samples that `min_own_share` left out; `truncated` those whose answer the token limit cut off before
    it held a whole program.
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

    @property
    def certificate(self) -> Literal["yes", "part", "no"] | None:
        """Whether all, some or none of what reached a device was judged under a certificate; None if nothing did."""
        if not self.on_device:
            return None
        return "yes" if self.certified == self.on_device else "part" if self.certified else "no"

    def fast_p(self, threshold: float) -> float | None:
        """fast_p at one of the thresholds of `FAST_THRESHOLDS`; fast_p(0) is the correctness rate."""
        return dict(self.fast)[threshold]


def rank_rows(
    evaluations: Iterable[Evaluation],
    *,
    problems_by_run: Mapping[str, Collection[str]] | None = None,
    problems_by_suite: Mapping[str, Collection[str]] | None = None,
    ks: Collection[int] = (),
    min_own_share: float | None = None,
) -> tuple[LeaderboardRow, ...]:
    """Ranks whole evaluations; see `rank_samples`."""
    return rank_samples(
        map(_judged_sample, evaluations),
        problems_by_run=problems_by_run,
        problems_by_suite=problems_by_suite,
        ks=ks,
        min_own_share=min_own_share,
    )


def rank_samples(
    samples: Iterable[JudgedSample],
    *,
    problems_by_run: Mapping[str, Collection[str]] | None = None,
    problems_by_suite: Mapping[str, Collection[str]] | None = None,
    ks: Collection[int] = (),
    min_own_share: float | None = None,
) -> tuple[LeaderboardRow, ...]:
    """One row per group, best first: by fast_1, then correctness, then mean speedup.

    `samples` come in the order in which they were judged. Rates are over all problems of a group: those judged, those
    its runs asked for (`problems_by_run`, from their manifests) and those of its suite (`problems_by_suite`); what is
    known and has no sample counts as not solved. Raises UsageError for a k in `ks` that the samples cannot give.
    """
    rows = []
    for group, voices in _fold_deviceless(_group_samples(samples)).items():
        asked = _list_asked(group, voices, problems_by_run or {}, problems_by_suite or {})
        rows.append(_score_group(group, voices, asked, ks, min_own_share))
    return tuple(sorted(rows, key=_standing))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembers:
    """What a row of the leaderboard counts: the samples, one voice each, and the same by problem, with the problems
    that were asked for and have none."""

    samples: tuple[JudgedSample, ...]
    draws: tuple[Draws, ...]


def list_members(
    samples: Iterable[JudgedSample], *, problems_by_run: Mapping[str, Collection[str]] | None = None
) -> dict[GroupKey, GroupMembers]:
    """The members of every group of `rank_samples` over the same samples."""
    return {
        group: GroupMembers(
            samples=tuple(voices.values()),
            draws=tuple(_draws_by_problem(voices, _list_asked(group, voices, problems_by_run or {}, {}))),
        )
        for group, voices in _fold_deviceless(_group_samples(samples)).items()
    }


def _list_asked(
    group: GroupKey,
    voices: _Voices,
    problems_by_run: Mapping[str, Collection[str]],
    problems_by_suite: Mapping[str, Collection[str]],
) -> set[str]:
    runs = {run for run, _, _ in voices}
    asked = set(problems_by_suite.get(group.suite, ()))
    asked.update(problem for run in runs for problem in problems_by_run.get(run, ()))
    return asked


_Voice = tuple[str, str, int]  # run, problem, sample
_Voices = dict[_Voice, JudgedSample]


def _judged_sample(evaluation: Evaluation) -> JudgedSample:
    subject = evaluation.subject
    shared = {name: getattr(subject, name) for name in JudgedSample._fields if hasattr(subject, name)}
    timing, work = evaluation.timing, evaluation.work
    return JudgedSample(
        **shared,
        outcome=evaluation.outcome,
        speedup=evaluation.speedup,
        speedup_low=timing.speedup_low if timing else None,
        speedup_high=timing.speedup_high if timing else None,
        hardware=evaluation.hardware,
        own_share=work.own if work else None,
        without_own=work.without_own if work else None,
        certificate=evaluation.certificate,
        findings=evaluation.findings_summary,
    )


def _group_samples(samples: Iterable[JudgedSample]) -> dict[GroupKey, _Voices]:
    groups: dict[GroupKey, _Voices] = {}
    for one in samples:
        chip, kind = chip_of(one.device, one.hardware), one.device.partition(":")[0]
        group = GroupKey(one.model, one.prompt, one.language, kind, one.suite, one.workload, one.baseline, chip)
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
        homes.setdefault(group._replace(device=NO_DEVICE, chip=""), []).append(voices)
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


def _score_group(
    group: GroupKey, voices: _Voices, asked: Collection[str], ks: Collection[int], min_own_share: float | None
) -> LeaderboardRow:
    counted = voices if min_own_share is None else _discount_borrowed(voices, min_own_share)
    draws = _draws_by_problem(counted, asked)
    timed = [one for one in counted.values() if one.speedup is not None]
    low, high = _bound_mean(timed)
    on_device = [one for one in voices.values() if one.device != NO_DEVICE]
    own_shares = [one.own_share for one in counted.values() if _is_correct(one) and one.own_share is not None]
    return LeaderboardRow(
        group=group,
        problems=len(draws),
        scored=sum(one.scored for one in draws),
        samples=len(voices),
        outcomes=count_outcomes(_draws_by_problem(voices, ())),
        fast=tuple((threshold, _estimate_fast(group, draws, threshold)) for threshold in FAST_THRESHOLDS),
        geometric_mean_speedup=geometric_mean([one.speedup for one in timed if one.speedup is not None]),
        timed=len(timed),
        at_k=tuple(_rank_at_k(group, draws, k) for k in sorted(ks)),
        hardware=_list_hardware(voices),
        runs=tuple(sorted({run for run, _, _ in voices})),
        speedup_low=low,
        speedup_high=high,
        own_share=median(own_shares) if own_shares else None,
        on_device=len(on_device),
        certified=sum(bool(one.certificate) for one in on_device),
        not_own=sum(map(_is_correct, voices.values())) - sum(map(_is_correct, counted.values())),
        truncated=sum(_TRUNCATED in one.findings.split("; ") for one in voices.values()),
    )


def _is_correct(one: JudgedSample) -> bool:
    return one.outcome == Outcome.CORRECT


def _discount_borrowed(voices: _Voices, min_own_share: float) -> _Voices:
    """The same voices; correct ones whose work others did count as not solved."""
    return {
        voice: one._replace(outcome=Outcome.REJECTED, speedup=None)
        if _is_correct(one) and not _did_own_work(one, min_own_share)
        else one
        for voice, one in voices.items()
    }


def _did_own_work(one: JudgedSample, min_own_share: float) -> bool:
    """A kernel that is launched but changes nothing in the outputs is a decoy, however long it runs."""
    return one.own_share is not None and one.own_share >= min_own_share and one.without_own != "unchanged"


def _bound_mean(timed: Collection[JudgedSample]) -> tuple[float | None, float | None]:
    """The interval of the geometric mean: errors of separate measurements are independent, so the logarithms of their
    half-widths add up as squares."""
    known = [(one.speedup, one.speedup_low, one.speedup_high) for one in timed]
    whole = [(mid, low, high) for mid, low, high in known if mid is not None and low is not None and high is not None]
    mean = geometric_mean([mid for mid, _, _ in whole])
    if mean is None or len(whole) < len(known):
        return None, None
    below = sqrt(sum(log(mid / low) ** 2 if low > 0 else inf for mid, low, _ in whole)) / len(whole)
    above = sqrt(sum(log(high / mid) ** 2 for mid, _, high in whole)) / len(whole)
    return mean * exp(-below), mean * exp(above)


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


def _estimate_fast(group: GroupKey, draws: list[Draws], threshold: float) -> float | None:
    """None where no time is taken: nothing is known then, which is not the same as slow."""
    return estimate_fast(draws, threshold) if threshold <= 0.0 or group.device != EMULATED else None


def _rank_at_k(group: GroupKey, draws: list[Draws], k: int) -> RankedAtK:
    fast_1 = estimate_fast_at_k(draws, 1.0, k) if group.device != EMULATED else None
    return RankedAtK(k=k, correct=estimate_fast_at_k(draws, 0.0, k), fast_1=fast_1)


def _standing(row: LeaderboardRow) -> tuple[float, float, float, GroupKey]:
    """Best first; what has no value comes after what has a bad one; names break ties."""
    values = (row.fast_p(1.0), row.fast_p(0.0), row.geometric_mean_speedup)
    fast_1, correct, mean = (1.0 if value is None else -value for value in values)
    return fast_1, correct, mean, row.group
