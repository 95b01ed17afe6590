"""The verdict on one candidate: outcomes, findings, correctness, timing. An `Evaluation` cannot be built in a
contradictory state. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from harness.domain.evidence import Conditions, Plausibility, Work
from harness.domain.generation import Language
from harness.domain.problem import WorkloadName

Baseline = Literal["eager", "compile"]
TRUNCATED = "truncated"  # the check that notes an answer without a whole program, cut off by the token limit
EMULATED = "emulated"  # the device: CUDA on the CPU, correctness without time
TimingVerdict = Literal["faster", "tie", "slower", "unreliable", "unconfirmed"]


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
    HARNESS_ERROR = "harness_error"

    @property
    def counts_against_model(self) -> bool:
        """`harness_error` is our fault and `not_run` our machine's; neither is a verdict on the candidate."""
        return self not in (Outcome.HARNESS_ERROR, Outcome.NOT_RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a check noticed. `severity` "fatal" decided the outcome; "warning" and "note" did not."""

    check: str
    severity: Literal["note", "warning", "fatal"]
    message: str
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One judged call with fresh inputs. Errors are against the float64 truth, dimensionless or in output units."""

    distribution: str
    passed: bool
    max_abs_error: float | None = None
    reference_max_abs_error: float | None = None
    worst_ratio: float | None = None  # error / what was allowed there; at most 1.0 passes
    mismatched: int = 0
    elements: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """All trials, and how the weights of reference and candidate were made equal."""

    trials: tuple[Trial, ...]
    weights: Literal["identical", "loaded", "unmatched", "none"]
    truth: Literal["float64", "reference"] = "float64"

    @property
    def passed(self) -> bool:
        return bool(self.trials) and all(trial.passed for trial in self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One timed block: the same number of calls by baseline and candidate, each on fresh inputs.

    `*_claim_us` is the worker's own time per call, `*_judge_us` the judge's (it contains the exchange, and on a GPU all
    of the window but waking), and `*_copy_us`, in some blocks on a CPU, how long after that the outputs lay in the
    judge's hands. On a GPU `*_wake_us` is how long the worker took to obey the signal to wake, and `*_snapshot_us` how
    long the judge took to copy the outputs.
    """

    calls: int
    baseline_claim_us: float
    candidate_claim_us: float
    baseline_judge_us: float
    candidate_judge_us: float
    baseline_copy_us: float | None = None
    candidate_copy_us: float | None = None
    baseline_wake_us: float | None = None
    candidate_wake_us: float | None = None
    baseline_snapshot_us: float | None = None
    candidate_snapshot_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Paired timing against a named baseline. Times in microseconds per call; speedup = baseline / candidate.

    The interval holds what another measurement of the same two programs would give: it contains the scatter of the
    blocks, the noise floor of the problem on this device, and whatever time the judge's clock cannot exclude beyond
    the candidate's claims. `resolution_us` is how fine that clock was. `attempts` counts measurements: a disturbed one
    is repeated.
    """

    baseline: str
    baseline_us: float
    candidate_us: float
    speedup: float
    speedup_low: float
    speedup_high: float
    verdict: TimingVerdict
    blocks: tuple[Block, ...]
    overhead_us: float
    noise_floor: float | None = None
    resolution_us: float | None = None
    conditions: Conditions | None = None
    attempts: int = 1

    def __post_init__(self) -> None:
        if not self.baseline:
            raise ValueError("a timing must name its baseline")
        if min(self.baseline_us, self.candidate_us, self.speedup) <= 0:
            raise ValueError("times and speedups are positive")
        if not self.speedup_low <= self.speedup <= self.speedup_high:
            raise ValueError(
                f"speedup {self.speedup} lies outside its interval [{self.speedup_low}, {self.speedup_high}]"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSummary:
    """What building this candidate cost: one key per captured extension. `reason`: why the lane is not the fast one."""

    keys: tuple[str, ...]
    cached: bool
    duration_s: float
    lane: str
    log: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was judged: where the candidate came from and what it was judged on. Together with the problem's and
    the candidate's digest this names an evaluation that need not be made twice."""

    run: str
    sample: int
    turn: int
    model: str
    prompt: str
    suite: str
    problem: str
    problem_digest: str
    candidate_digest: str  # "" when no code was found
    language: Language
    device: str  # "cpu", "cuda:0", "emulated"; "none" for what never reached a device
    workload: WorkloadName
    baseline: Baseline


def chip_of(device: str, hardware: str) -> str:
    """The chip that evaluations are kept apart by: `hardware` on a CPU or GPU; "" where no time depends on it."""
    return hardware if device == "cpu" or device.startswith("cuda") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The judged verdict on one candidate on one device."""

    subject: Subject
    outcome: Outcome
    message: str = ""
    findings: tuple[Finding, ...] = ()
    correctness: Correctness | None = None
    timing: Timing | None = None
    build: BuildSummary | None = None
    environment: tuple[tuple[str, str], ...] = ()
    confinement: str = "none"
    seeds_digest: str = ""
    started_at: str = ""
    duration_s: float = 0.0
    phases_s: tuple[tuple[str, float], ...] = field(default=())
    plausibility: Plausibility | None = None
    work: Work | None = None
    certificate: str = ""  # digest of the red-team certificate that was valid when it was judged; "": none

    def __post_init__(self) -> None:
        if self.timing is not None and self.outcome not in (Outcome.CORRECT, Outcome.SUSPECT):
            raise ValueError(f"an evaluation that ended as {self.outcome} cannot carry a timing")
        if self.outcome is Outcome.CORRECT and (self.correctness is None or not self.correctness.passed):
            raise ValueError("a correct evaluation needs trials that all passed")
        fatal = any(finding.severity == "fatal" for finding in self.findings)
        if self.outcome is Outcome.CORRECT and fatal:
            raise ValueError("a correct evaluation cannot carry a fatal finding")
        if self.timing is not None and self.timing.baseline != self.subject.baseline:
            raise ValueError(f"timed against {self.timing.baseline}, but asked for {self.subject.baseline}")
        if self.timing is not None and self.subject.device == EMULATED:
            raise ValueError("what is emulated has no timing")

    @property
    def speedup(self) -> float | None:
        """The ranked speedup: none unless the candidate is correct and its time was confirmed; 1 where it is a tie."""
        if self.outcome is not Outcome.CORRECT or self.timing is None:
            return None
        if self.timing.verdict == "tie":
            return 1.0
        return None if self.timing.verdict in ("unreliable", "unconfirmed") else self.timing.speedup

    @property
    def findings_summary(self) -> str:
        """Severity and check of every finding, on one line."""
        return "; ".join(f"{finding.severity}: {finding.check}" for finding in self.findings)

    @property
    def hardware(self) -> str:
        """The chip it was judged on: the environment's `gpu` entry on a CUDA device, else its `cpu` entry; what was
        emulated on which CPU."""
        facts = dict(self.environment)
        if self.subject.device == EMULATED:
            return f"{facts.get('emulated_gpu', 'GPU')} emulated on {facts.get('cpu', 'CPU')}"
        return facts.get("gpu" if self.subject.device.startswith("cuda") else "cpu", "")
