"""Collects facts about one candidate during its evaluation."""

from __future__ import annotations

import hashlib
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.builder.error_excerpt import shorten_log
from harness.domain import (
    BaselineResult,
    BuildRequest,
    BuildResult,
    BuildSummary,
    CandidateFailure,
    CaseResult,
    Comparison,
    Correctness,
    CounterReport,
    Evaluation,
    Finding,
    Outcome,
    ProblemError,
    RooflineBounds,
    Subject,
    Timing,
    Work,
)
from harness.evaluation.cases import CaseRun, combine_comparisons, combine_further, combine_timings
from harness.evaluation.emulated.findings import drop_repeated
from harness.evaluation.integrity.sandbox_causes import note_sandbox
from harness.evaluation.memory_plan import MemoryPlan, Thrift
from harness.evaluation.results import StepResult
from harness.sandbox.memory_limits import Room

MAX_MESSAGE_CHARACTERS = 2000


@dataclass(slots=True, kw_only=True)
class EvaluationRecord:
    """`seed` is secret until the evaluation ends."""

    seed: int
    began_s: float = field(default_factory=time.monotonic)
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    findings: list[Finding] = field(default_factory=list)
    requests: list[BuildRequest] = field(default_factory=list)
    builds: list[BuildResult] = field(default_factory=list)  # one per request
    built: list[BuildRequest] = field(default_factory=list)  # the successful requests
    correctness: Correctness | None = None
    timing: Timing | None = None
    comparisons: list[tuple[float, Comparison | None]] = field(default_factory=list)  # with weights, by case
    roofline: RooflineBounds | None = None
    work: Work | None = None
    works: list[Work] = field(default_factory=list)  # of the cases that ended
    profiled: Work | None = None  # as only its worker reports it: it counts if no case tells more
    counters: CounterReport | None = None
    further: tuple[BaselineResult, ...] = ()
    cases: list[CaseResult] = field(default_factory=list)
    phases_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    spans_s: list[tuple[str, float, float]] = field(default_factory=list)  # of phases, with begins of this machine
    sizes: str = ""  # of the reduced problem
    calls: tuple[tuple[str, str], ...] = ()  # unusual mode and seeding
    thrift: Thrift = "planned"  # another value after a failed allocation
    is_short: bool = False  # an allocation failed
    memory: str = "nothing was planned yet"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        finally:
            spent_s = time.monotonic() - began_s
            self.phases_s[name] += spent_s
            self.spans_s.append((name, began_s, spent_s))

    def draw_seeds(self, case: str = "") -> Iterator[int]:
        source = random.Random(f"{self.seed} {case}" if case else self.seed)
        while True:
            yield source.getrandbits(62)

    def note_memory(self, plan: MemoryPlan, full: MemoryPlan, room: Room) -> None:
        planned, free = plan.device_bytes >> 20, room.device_bytes >> 20
        self.memory = f"{planned} MiB were planned, {free} MiB free"
        reductions = plan.describe_reductions(full)
        if reductions:
            needed = f"the full plan needs {full.device_bytes >> 20} MiB"
            self.note("memory_plan", f"{needed}, {self.memory}; reduced: {'; '.join(reductions)}")

    def repeat_smaller(self, outcome: Outcome, message: str) -> EvaluationRecord:
        note = f"evaluated again with less memory, since an allocation failed: {message[:300]}"
        return EvaluationRecord(
            seed=self.seed, began_s=self.began_s, started_at=self.started_at, phases_s=self.phases_s,
            spans_s=self.spans_s,
            thrift="lean" if outcome is Outcome.OUT_OF_MEMORY else "least",
            findings=[Finding(check="memory", severity="note", message=note)],
        )  # fmt: skip

    def _add_correctness(self, correctness: Correctness, case: str) -> None:
        known = self.correctness
        trials = tuple(replace(trial, case=case) for trial in correctness.trials) if case else correctness.trials
        if known is None:
            self.correctness = replace(correctness, trials=trials)
            return
        truth = correctness.truth if known.truth == "float64" else known.truth
        self.correctness = replace(known, trials=(*known.trials, *trials), truth=truth)

    @contextmanager
    def at_case(self, run: CaseRun) -> Iterator[None]:
        """Collect the results of a case; failures and errors name it."""
        if run.case is None:
            yield
            return
        try:
            yield
        except CandidateFailure as failure:
            self._close_case(run, failure.outcome)
            raise run.name_failure(failure) from failure
        except ProblemError as error:
            raise type(error)(f"{run.label}: {error}") from error
        self._close_case(run, Outcome.CORRECT)

    @contextmanager
    def in_order(self, names: Sequence[str]) -> Iterator[None]:
        try:
            yield
        finally:
            self.cases.sort(key=lambda case: names.index(case.name))
            if self.cases and self.correctness is not None:
                trials = sorted(self.correctness.trials, key=lambda trial: names.index(trial.case))
                self.correctness = replace(self.correctness, trials=tuple(trials))

    def _close_case(self, run: CaseRun, outcome: Outcome) -> None:
        self.cases.append(run.conclude(outcome, self.timing, self.roofline, self.further))
        self.findings = list(dict.fromkeys(self.findings))
        if outcome is Outcome.CORRECT:
            self.works += [self.work] if self.work else []
            self.timing = self.roofline = self.work = None
            self.further = ()

    def combine_cases(self) -> None:
        self.work = self._combine_works()
        self.timing = combine_timings(self.cases)
        self.further = combine_further(self.cases)
        self.roofline = next((case.roofline for case in self.cases if case.timing is not None), None)

    def _combine_works(self) -> Work | None:
        """The smallest share of a case counts, since others may be left to torch. Kernels without an effect have none.
        On a CPU only the first case names kernels.
        """
        known = [*self.works, *([self.profiled] if self.profiled else [])]
        if not known:
            return None
        least = min(self.works or known, key=lambda one: one.custom if one.without_custom != "unchanged" else 0.0)
        whole = max(known, key=lambda one: len(one.custom_kernels))
        without_custom = whole.without_custom if least.without_custom == "not_tried" else least.without_custom
        names, parts = whole.custom_kernels, least.parts or whole.parts
        return replace(least, custom_kernels=names, without_custom=without_custom, parts=parts)

    def set_profile_aside(self) -> None:
        self.profiled, self.work = self.work, None

    def take_over(self, other: EvaluationRecord) -> None:
        """Adopt another record's verdict; keep the own builds and add the times."""
        self.cases = other.cases
        self.findings, self.correctness = other.findings, other.correctness
        self.sizes, self.calls = other.sizes, other.calls
        for name, spent_s in other.phases_s.items():
            self.phases_s[name] += spent_s
        self.spans_s += other.spans_s

    def add_result(self, result: StepResult, case: str = "") -> None:
        """Raises CandidateFailure if the step failed."""
        self.findings += [one for one in result.findings if one not in self.findings]
        if result.correctness is not None:
            self._add_correctness(result.correctness, case)
        self.timing = result.timing or self.timing
        self.roofline = result.roofline or self.roofline
        self.work = result.work or self.work
        self.counters = result.counters or self.counters
        self.further = result.further or self.further
        if result.outcome is not None:
            raise CandidateFailure(result.outcome, result.message)

    def note(self, check: str, message: str) -> None:
        self.findings.append(Finding(check=check, severity="note", message=message))

    def warn(self, check: str, message: str, evidence: str = "") -> None:
        self.findings.append(Finding(check=check, severity="warning", message=message, evidence=evidence))

    def add_build(self, request: BuildRequest, result: BuildResult) -> None:
        if self.cases and any(result.key == known.key for known in self.builds):
            return  # built for an earlier case
        self.requests.append(request)
        self.builds.append(result)
        if result.extension is not None:
            self.built.append(request)
        self.phases_s["build"] += result.duration_s
        if result.waited_s:
            self.phases_s["precompiling headers"] += result.waited_s
        if result.other_target:
            self.warn("gpu_target", f"compiled for this GPU instead: {result.other_target}")

    def add_builds_of(self, other: EvaluationRecord) -> None:
        for request, result in zip(other.requests, other.builds, strict=True):
            self.add_build(request, result)

    @contextmanager
    def blaming_builds(self) -> Iterator[None]:
        try:
            yield
        except CandidateFailure as failure:
            blamed = self.blame_build(failure)
            if blamed is failure:
                raise
            raise blamed from failure

    def blame_build(self, failure: CandidateFailure) -> CandidateFailure:
        """After a failed build, a failure to load or run is a build failure."""
        build = self._failed_build()
        if build is None or failure.outcome not in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
            return failure
        return _build_failure(build)

    def check_builds(self) -> None:
        """Raises CandidateFailure if every extension failed, even if the candidate runs without."""
        build = self._failed_build()
        if build is None:
            return
        if not any(result.extension is not None for result in self.builds):
            raise _build_failure(build)
        message = "one of the candidate's extensions did not build, and it runs without"
        self.warn("build", message, shorten_log(build.log))

    def describe_builds(self) -> str:
        if not self.builds:
            return "imported; it requested no extension"
        return f"built, linked and loaded {len(self.builds)} extension{'s' if len(self.builds) > 1 else ''}"

    def conclude(
        self,
        subject: Subject,
        outcome: Outcome,
        message: str,
        *,
        environment: tuple[tuple[str, str], ...],
        isolation: str,
        certificate: str = "",
    ) -> Evaluation:
        """Drop times unless the outcome is correct or suspect."""
        timed = outcome in (Outcome.CORRECT, Outcome.SUSPECT)
        return Evaluation(
            subject=subject,
            outcome=outcome,
            message=message[:MAX_MESSAGE_CHARACTERS],
            findings=(*drop_repeated(self.findings), *note_sandbox(self.findings, isolation)),
            correctness=self.correctness,
            timing=self.timing if timed else None,
            comparison=combine_comparisons(self.comparisons) if outcome is Outcome.CORRECT else None,
            build=self._summarise_builds(),
            environment=(
                *environment,
                *([("workload_sizes", self.sizes)] if self.sizes else []),
                *self.calls,
                ("seed", str(self.seed)),
            ),
            isolation=isolation,
            seeds_digest=hashlib.sha256(str(self.seed).encode()).hexdigest()[:16],
            started_at=self.started_at,
            duration_s=time.monotonic() - self.began_s,
            phases_s=tuple((name, round(spent_s, 4)) for name, spent_s in self.phases_s.items()),
            spans_s=tuple(
                (name, round(begin_s - self.began_s, 6), round(spent_s, 6)) for name, begin_s, spent_s in self.spans_s
            ),
            roofline=self.roofline if timed else None,
            work=self.work or self._combine_works(),
            counters=self.counters if outcome is Outcome.CORRECT else None,
            cases=tuple(self.cases if timed else _drop_times(self.cases)),
            certificate=certificate,
            further=self.further if timed else (),
        )

    def _failed_build(self) -> BuildResult | None:
        return next((build for build in self.builds if build.extension is None), None)

    def _summarise_builds(self) -> BuildSummary | None:
        if not self.builds:
            return None
        slow = next((build for build in self.builds if build.reason), self.builds[0])
        return BuildSummary(
            keys=tuple(build.key for build in self.builds),
            cached=all(build.status == "cached" for build in self.builds),
            duration_s=sum(build.duration_s for build in self.builds),
            strategy=slow.strategy,
            reason=slow.reason,
            log="\n".join(build.log for build in self.builds),
        )


def _drop_times(cases: Iterable[CaseResult]) -> Iterator[CaseResult]:
    return (replace(case, timing=None, roofline=None, further=()) for case in cases)


def _build_failure(build: BuildResult) -> CandidateFailure:
    short = shorten_log(build.log)
    outcomes = {"refused": Outcome.REJECTED, "uncovered": Outcome.NOT_RUN}
    outcome = outcomes.get(build.status, Outcome.BUILD_ERROR)
    finding = Finding(check="build", severity="fatal", message=f"the build {build.status}", evidence=short)
    return CandidateFailure(outcome, short or f"the build {build.status}", (finding,))
