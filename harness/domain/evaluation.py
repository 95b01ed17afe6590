"""Evaluation of one candidate. `Evaluation` rejects contradictory states."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, Self

from harness.domain.evidence import BaselineResult, CounterReport, RooflineBounds, Timing, TimingVerdict, Work
from harness.domain.generation import Candidate, Language, SampleKey
from harness.domain.problem import Precision, WorkloadName

NO_DEVICE = "none"  # device name: none was needed (no code, rejected, not built)
EMULATED = "emulated"  # device name: CUDA on the CPU, correctness only
Fidelity = Literal["correctness", "quick", "full"]  # ascending
FIDELITY = "fidelity"  # a fact of the environment, except "full"
UNTIMED: Literal["untimed"] = "untimed"  # in place of a timing's verdict, where only correctness was asked for


class Outcome(StrEnum):
    NO_CODE = "no_code"
    REJECTED = "rejected"
    BUILD_ERROR = "build_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUE = "wrong_value"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    SUSPECT = "suspect"
    CORRECT = "correct"
    NOT_RUN = "not_run"
    PROBLEM_ERROR = "problem_error"
    HARNESS_ERROR = "harness_error"

    @property
    def counts_against_model(self) -> bool:
        return self is not Outcome.NOT_RUN and not self.is_error

    @property
    def is_error(self) -> bool:
        """True for faults of the problem's file or the harness, which the same command evaluates again."""
        return self in (Outcome.PROBLEM_ERROR, Outcome.HARNESS_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Findings of severity "fatal" decide the outcome; others do not."""

    check: str
    severity: Literal["note", "warning", "fatal"]
    message: str
    evidence: str = ""


MAX_MESSAGE = 500


class CandidateFailure(Exception):
    """Becomes the outcome of an evaluation."""

    def __init__(self, outcome: Outcome, message: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.findings = findings

    @classmethod
    def of_check(cls, outcome: Outcome, check: str, message: str) -> Self:
        """With a fatal finding."""
        return cls(outcome, message, (Finding(check=check, severity="fatal", message=message),))

    @classmethod
    def of_protocol(cls, message: str) -> Self:
        """The worker program is trusted: only candidate code can make it break the protocol."""
        message = message[:MAX_MESSAGE]
        finding = Finding(check="protocol", severity="fatal", message=message)
        return cls(Outcome.SUSPECT, f"the worker broke the protocol: {message}", (finding,))

    @property
    def is_exception(self) -> bool:
        """Return whether the worker reported an exception of the candidate's code, and goes on."""
        return any(finding.check == "exception" for finding in self.findings)


Weights = Literal["identical", "loaded", "unmatched", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One call with fresh inputs. Errors are against float64, in output units; None for large, clearly close ones."""

    distribution: str
    passed: bool
    max_abs_error: float | None = None
    reference_max_abs_error: float | None = None
    worst_ratio: float | None = None  # error / allowed error; passes up to 1.0
    whole_ratio: float | None = None  # the same of bias and scatter of a whole output
    mismatched: int = 0
    elements: int = 0
    lost: int = 0  # by more than half of their value: what rounded inputs change must explain it
    message: str = ""
    case: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    trials: tuple[Trial, ...]
    weights: Weights
    truth: Literal["float64", "reference"] = "float64"

    @property
    def passed(self) -> bool:
        return bool(self.trials) and all(trial.passed for trial in self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """`sizes` is such as `rows=4096, columns=512, bfloat16`. The geometric mean omits secret cases."""

    name: str
    sizes: str
    outcome: Outcome
    weight: float = 1.0
    is_secret: bool = False
    timing: Timing | None = None
    roofline: RooflineBounds | None = None
    further: tuple[BaselineResult, ...] = ()

    def against(self, baseline: str) -> Self:
        return replace(self, timing=_find_timing(self.further, baseline), further=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """The sample's best earlier program. `speedup_lows` are lower interval ends by case."""

    turn: int
    candidate: Candidate
    speedup_lows: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A/B pairs: the rival's time / this candidate's, with scatter and noise floor; None if they were disturbed."""

    turn: int
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None

    @property
    def is_gain(self) -> bool:
        return (self.speedup_low or 0.0) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Speedup of the known cases / speedup of the secret ones; 1 means no difference."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSummary:
    """Has one key per extension."""

    keys: tuple[str, ...]
    cached: bool
    duration_s: float
    strategy: str
    log: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Candidate and settings: the identity of an evaluation."""

    run: str
    sample: int
    turn: int
    model: str
    prompt: str
    suite: str
    problem: str
    problem_digest: str
    candidate_digest: str  # "" without a candidate
    language: Language
    device: str  # "cpu", "cuda:0", "emulated"; "none" if no device was used
    workload: WorkloadName
    baseline: str
    dtype: Precision | Literal[""] = ""  # "": as in the problem's file

    @property
    def key(self) -> SampleKey:
        return SampleKey(run=self.run, problem=self.problem, sample=self.sample, turn=self.turn)


def chip_of(device: str, hardware: str) -> str:
    return hardware if device == "cpu" or device.startswith("cuda") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    subject: Subject
    outcome: Outcome
    message: str = ""
    findings: tuple[Finding, ...] = ()
    correctness: Correctness | None = None
    timing: Timing | None = None
    comparison: Comparison | None = None
    build: BuildSummary | None = None
    environment: tuple[tuple[str, str], ...] = ()
    isolation: str = "none"
    seeds_digest: str = ""
    started_at: str = ""
    duration_s: float = 0.0
    phases_s: tuple[tuple[str, float], ...] = field(default=())
    spans_s: tuple[tuple[str, float, float], ...] = ()  # of the phases: name, begin since the evaluation's, duration
    roofline: RooflineBounds | None = None
    work: Work | None = None
    counters: CounterReport | None = None  # None: not asked for
    cases: tuple[CaseResult, ...] = ()  # in the order of evaluation; those after a failed one are missing
    certificate: str = ""  # digest of the red-team certificate that was valid at the evaluation; "": none
    further: tuple[BaselineResult, ...] = ()  # in the order of the request

    def __post_init__(self) -> None:
        if self.timing is not None and self.outcome not in (Outcome.CORRECT, Outcome.SUSPECT):
            raise ValueError(f"an evaluation with outcome {self.outcome} cannot carry a timing")
        if self.outcome is Outcome.CORRECT and (self.correctness is None or not self.correctness.passed):
            raise ValueError("a correct evaluation needs trials that all passed")
        fatal = any(finding.severity == "fatal" for finding in self.findings)
        if self.outcome is Outcome.CORRECT and fatal:
            raise ValueError("a correct evaluation cannot carry a fatal finding")
        if self.timing is not None and self.timing.baseline != self.subject.baseline:
            raise ValueError(f"timed against {self.timing.baseline}, but asked for {self.subject.baseline}")
        if self.timing is not None and self.subject.device == EMULATED:
            raise ValueError("an emulated evaluation cannot carry a timing")

    @property
    def speedup(self) -> float | None:
        """Speedup for ranking: None unless correct with confirmed time; 1 for a tie."""
        if self.outcome is not Outcome.CORRECT or self.timing is None:
            return None
        return self.timing.ranked_speedup

    @property
    def call_speedup(self) -> float | None:
        return self.timing.call_speedup if self.outcome is Outcome.CORRECT and self.timing is not None else None

    @property
    def timing_by_case(self) -> dict[str, Timing | None]:
        """Return the whole timing, with the name "", for a problem without cases."""
        return {case.name: case.timing for case in self.cases} or {"": self.timing}

    @property
    def measured(self) -> tuple[Timing, ...]:
        """Timings against each baseline, the first one first."""
        return tuple(one for one in (self.timing, *(one.timing for one in self.further)) if one is not None)

    @property
    def measured_baselines(self) -> str:
        return ",".join(one.baseline for one in self.measured)

    @property
    def fastest(self) -> Timing | None:
        """Timing against the fastest of several baselines. None unless correct with confirmed times."""
        known = [(speedup, one) for one in self.measured if (speedup := one.ranked_speedup) is not None]
        if self.outcome is not Outcome.CORRECT or len(known) < 2:
            return None
        return min(known, key=lambda pair: pair[0])[1]

    def against(self, baseline: str) -> Self:
        """Return this evaluation with another one of its baselines first. It is untimed if that was not measured."""
        if baseline == self.subject.baseline:
            return self
        subject, cases = replace(self.subject, baseline=baseline), tuple(one.against(baseline) for one in self.cases)
        return replace(self, subject=subject, timing=_find_timing(self.further, baseline), cases=cases, further=())

    def as_rival(self, turn: int, candidate: Candidate) -> Rival:
        """`candidate` is the evaluated program, which was timed."""
        assert self.timing is not None
        lows = {one.name: one.timing.speedup_low for one in self.cases if one.timing is not None}
        return Rival(turn=turn, candidate=candidate, speedup_lows=lows or {"": self.timing.speedup_low})

    @property
    def gap_closed(self) -> float | None:
        """Share of the time from baseline to roofline that is saved; None if unconfirmed, 0 for a tie."""
        if self.speedup is None:
            return None
        cases = [(case.weight, case.timing, case.roofline) for case in self._list_timed(is_secret=False)]
        shares = [
            (weight, share)
            for weight, timing, roofline in cases or [(1.0, self.timing, self.roofline)]
            if timing is not None and roofline is not None
            and (share := roofline.share_of_gap(timing.baseline_us, timing.candidate_us, timing.noise_floor or 0.0))
            is not None
        ]  # fmt: skip
        total = sum(weight for weight, _ in shares)
        if not total:
            return None
        is_tie = self.timing is not None and self.timing.verdict == "tie"
        return 0.0 if is_tie else sum(weight * share for weight, share in shares) / total

    @property
    def achieved_gb_s(self) -> float | None:
        """Bytes that a call needs to move / its time; of several cases, the first timed one."""
        timing, roofline = self._first_timed
        return None if timing is None or roofline is None else roofline.moved_bytes / timing.candidate_us / 1e3

    @property
    def achieved_tflops(self) -> float | None:
        """Operations of the reference / time of a call; of several cases, the first timed one."""
        timing, roofline = self._first_timed
        if timing is None or roofline is None or roofline.flops is None:
            return None
        return roofline.flops / timing.candidate_us / 1e6

    @property
    def _first_timed(self) -> tuple[Timing | None, RooflineBounds | None]:
        timed = ((case.timing, case.roofline) for case in self.cases if case.timing is not None)
        return next(timed, (self.timing, self.roofline))

    @property
    def worst_case(self) -> CaseResult | None:
        return min(self._list_timed(is_secret=False), key=_speedup_of, default=None)

    @property
    def generalisation_gap(self) -> Gap | None:
        """Is None unless known and secret cases have a confirmed time."""
        known, secret = self._list_timed(is_secret=False), self._list_timed(is_secret=True)
        if (
            self.speedup is None
            or not known
            or not secret
            or any(case.timing is None or case.timing.is_doubtful for case in secret)
        ):
            return None

        def divide(mine: str, theirs: str) -> float:
            return average(known, mine) / average(secret, theirs)

        return Gap(
            ratio=divide("speedup", "speedup"),
            low=divide("speedup_low", "speedup_high"),
            high=divide("speedup_high", "speedup_low"),
        )

    def _list_timed(self, *, is_secret: bool) -> list[CaseResult]:
        if self.outcome is not Outcome.CORRECT:
            return []
        return [case for case in self.cases if case.timing is not None and case.is_secret == is_secret]

    @property
    def findings_summary(self) -> str:
        return "; ".join(f"{finding.severity}: {finding.check}" for finding in self.findings)

    @property
    def verdict(self) -> TimingVerdict | Literal["untimed"] | None:
        """ "untimed" if only correctness was requested."""
        if self.timing is not None:
            return self.timing.verdict
        return UNTIMED if self.facts.get(FIDELITY) == "correctness" else None

    @property
    def facts(self) -> dict[str, str]:
        return dict(self.environment)

    @property
    def hardware(self) -> str:
        facts = self.facts
        if self.subject.device == EMULATED:
            return f"{facts.get('emulated_gpu', 'GPU')} emulated on {facts.get('cpu', 'CPU')}"
        return facts.get("gpu" if self.subject.device.startswith("cuda") else "cpu", "")


def _find_timing(further: Sequence[BaselineResult], baseline: str) -> Timing | None:
    return next((one.timing for one in further if one.name == baseline), None)


def average(cases: Sequence[CaseResult], name: str) -> float:
    return weighted_mean([(case.weight, getattr(case.timing, name)) for case in cases])


def weighted_mean(values: Sequence[tuple[float, float]]) -> float:
    """Geometric mean of (weight, value)."""
    total = sum(weight * math.log(value) for weight, value in values)
    return math.exp(total / sum(weight for weight, _ in values))


def _speedup_of(case: CaseResult) -> float:
    return case.timing.speedup if case.timing is not None else math.inf
