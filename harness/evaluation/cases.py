"""Lists the cases of one evaluation, and combines their results."""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from harness.domain import (
    BaselineResult,
    CandidateFailure,
    Case,
    CaseResult,
    Comparison,
    Finding,
    Outcome,
    Problem,
    ProblemError,
    ReferenceStopped,
    RooflineBounds,
    Timing,
    TimingVerdict,
    WorkloadName,
    average,
    weighted_mean,
)
from harness.evaluation.timing.block_statistics import decide
from harness.problems.loading import load_problem
from harness.problems.shrink import list_sizes
from harness.tensors.values import count_bytes, list_tensors

OF_EVERY_CASE = (Outcome.BUILD_ERROR, Outcome.REJECTED)  # such failures name no case


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """`case` is None without cases. Robustness probes, and time attribution but on a GPU, run only in the file's first
    case. One secretly chosen run makes all the calls that check correctness. `timed_runs` share the timing budget.
    """

    case: Case | None = None
    sizes: str = ""
    is_first: bool = True
    is_checked_fully: bool = True
    timed_runs: int = 1

    @property
    def name(self) -> str:
        return self.case.name if self.case else ""

    @property
    def is_timed(self) -> bool:
        return self.case is None or self.case.timed

    @property
    def is_secret(self) -> bool:
        return self.case is not None and self.case.is_secret

    @property
    def weight(self) -> float:
        return 1.0 if self.case is None else float(self.case.weight)

    @property
    def label(self) -> str:
        return f"case {self.name} ({self.sizes})" if self.sizes else f"case {self.name}"

    def name_failure(self, failure: CandidateFailure) -> CandidateFailure:
        if failure.outcome in OF_EVERY_CASE:
            return failure
        return CandidateFailure(failure.outcome, f"{self.label}: {failure.message}", failure.findings)

    def name_finding(self, finding: Finding) -> Finding:
        return replace(finding, message=f"{self.label}: {finding.message}") if self.case else finding

    def name_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(map(self.name_finding, findings))

    def conclude(
        self,
        outcome: Outcome,
        timing: Timing | None,
        roofline: RooflineBounds | None,
        further: tuple[BaselineResult, ...],
    ) -> CaseResult:
        assert self.case is not None
        return CaseResult(
            name=self.case.name,
            sizes=self.sizes,
            outcome=outcome,
            weight=self.weight,
            is_secret=self.is_secret,
            timing=timing,
            roofline=roofline,
            further=further,
        )


WHOLE = CaseRun()


def list_runs(problem: Problem, workload: WorkloadName, seed: int) -> tuple[tuple[Problem, CaseRun], ...]:
    """Each case comes with the problem that has it as its workload. `seed` draws the sizes of secret cases."""
    cases = problem.list_cases(workload)
    if not cases or (len(cases) == 1 and cases[0].is_whole(workload)):
        return ((problem, WHOLE),)
    source = random.Random(f"cases {seed}")
    timed, fully = sum(case.timed for case in cases), source.randrange(len(cases))
    runs = []
    for index, case in enumerate(cases):
        chosen = problem.take_case(case, workload, source)
        drawn = chosen.workload(workload)
        sizes = case.describe(drawn.overrides if drawn else ())
        run = CaseRun(case=case, sizes=sizes, is_first=index == 0, is_checked_fully=index == fully, timed_runs=timed)
        runs.append((chosen, run))
    return tuple(runs)


def put_smallest_first(
    runs: Sequence[tuple[Problem, CaseRun]], workload: WorkloadName
) -> list[tuple[Problem, CaseRun]]:
    """Sort by input bytes, since a wrong output ends the evaluation; by sizes in the file if inputs need values."""
    if len(runs) < 2:
        return list(runs)
    measured = [_measure_inputs(problem, workload) for problem, _ in runs]
    sizes = [size for size in measured if size is not None]
    if len(sizes) < len(runs):
        sizes = [math.prod(list_sizes(problem, problem.workload(workload)).values()) for problem, _ in runs]
    order = sorted(range(len(runs)), key=sizes.__getitem__)
    return [runs[index] for index in order]


@lru_cache(maxsize=256)
def _measure_inputs(problem: Problem, workload: WorkloadName) -> int | None:
    """Return bytes without allocating; None if unknown. Raises ReferenceStopped."""
    try:
        inputs = load_problem(problem, workload).make_inputs(0, torch.device("meta"))
        return count_bytes(list_tensors(inputs))
    except ReferenceStopped:
        raise
    except ProblemError:
        return None  # it occurs again, and is named, if the case cannot be evaluated


def combine_timings(cases: Sequence[CaseResult]) -> Timing | None:
    """Return the geometric mean of the known cases; None if none was timed.

    Its interval reaches from the mean of the lower ends to that of the upper ends: right for any correlation.
    """
    counted = [case for case in cases if case.timing is not None and not case.is_secret]
    timings = [case.timing for case in counted if case.timing is not None]
    if not timings:
        return None
    low, high = average(counted, "speedup_low"), average(counted, "speedup_high")
    conditions = [timing.conditions for timing in timings if timing.conditions is not None]
    return Timing(
        baseline=timings[0].baseline,
        baseline_us=average(counted, "baseline_us"),
        candidate_us=average(counted, "candidate_us"),
        speedup=min(max(average(counted, "speedup"), low), high),
        speedup_low=low,
        speedup_high=high,
        verdict=_decide_verdict(timings, low, high),
        blocks=(),
        overhead_us=max(timing.overhead_us for timing in timings),
        noise_floor=max((timing.noise_floor for timing in timings if timing.noise_floor is not None), default=None),
        resolution_us=max(
            (timing.resolution_us for timing in timings if timing.resolution_us is not None), default=None
        ),
        conditions=next((one for one in conditions if one.disturbed), next(iter(conditions), None)),
        attempts=max(timing.attempts for timing in timings),
        baseline_bytes=_find_largest(timings, "baseline_bytes"),
        candidate_bytes=_find_largest(timings, "candidate_bytes"),
        baseline_mj=_average_known(counted, "baseline_mj"),
        candidate_mj=_average_known(counted, "candidate_mj"),
        baseline_call_us=_average_known(counted, "baseline_call_us"),
        candidate_call_us=_average_known(counted, "candidate_call_us"),
        clock=timings[0].clock if len({timing.clock for timing in timings}) == 1 else "mixed",
    )


def _find_largest(timings: Sequence[Timing], name: str) -> int | None:
    return max((value for one in timings if (value := getattr(one, name)) is not None), default=None)


def _average_known(cases: Sequence[CaseResult], name: str) -> float | None:
    return average(cases, name) if all(getattr(case.timing, name) for case in cases) else None


def combine_further(cases: Sequence[CaseResult]) -> tuple[BaselineResult, ...]:
    names = dict.fromkeys(one.name for case in cases for one in case.further)
    return tuple(_combine_baseline(name, cases) for name in names)


def _combine_baseline(name: str, cases: Sequence[CaseResult]) -> BaselineResult:
    """It needs a time in every timed case."""
    reasons = [one.reason for case in cases for one in case.further if one.name == name and one.timing is None]
    timing = None if reasons else combine_timings([case.against(name) for case in cases])
    return BaselineResult(name=name, timing=timing, reason="".join(reasons[:1]))


def combine_comparisons(comparisons: Sequence[tuple[float, Comparison | None]]) -> Comparison | None:
    """Return the geometric mean of (weight, comparison). None, or values None, unless every case has them."""
    known = [(weight, one) for weight, one in comparisons if one is not None]
    if not known or len(known) < len(comparisons):
        return None

    def combine(name: str) -> float | None:
        values = [(weight, value) for weight, one in known if (value := getattr(one, name)) is not None]
        return weighted_mean(values) if len(values) == len(known) else None

    return Comparison(
        turn=known[0][1].turn,
        speedup=combine("speedup"),
        speedup_low=combine("speedup_low"),
        speedup_high=combine("speedup_high"),
    )


def _decide_verdict(timings: Sequence[Timing], low: float, high: float) -> TimingVerdict:
    verdicts = {timing.verdict for timing in timings}
    for doubtful in ("unreliable", "unconfirmed"):
        if doubtful in verdicts:
            return doubtful
    verdict = decide(low, high)
    has_bounds = any(timing.clock == "bound" for timing in timings)
    return "tie" if verdict == "slower" and has_bounds and "slower" not in verdicts else verdict
