from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from harness.domain import (
    EAGER,
    NO_DEVICE,
    NO_PROMPT,
    Candidate,
    Evaluation,
    Finding,
    Language,
    Outcome,
    Precision,
    Problem,
    Rival,
    Subject,
    TimedBaseline,
    WorkloadName,
)
from harness.languages import LANGUAGES, note_other_language


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`candidate` is None if no code was found. `seed` repeats an evaluation. `notes` join the findings. A correct
    candidate is compared with the earlier program `rival`. `owner` is the client who sent the problem file, in
    whose sandbox alone it runs; "" means trusted.
    """

    subject: Subject
    problem: Problem
    candidate: Candidate | None
    seed: int | None = None
    notes: tuple[Finding, ...] = ()
    rival: Rival | None = None
    owner: str = ""
    baselines: tuple[TimedBaseline, ...] = EAGER

    def on_device(self, name: str) -> Task:
        return replace(self, subject=replace(self.subject, device=name))

    def against(self, baselines: tuple[TimedBaseline, ...]) -> Task:
        return replace(self, baselines=baselines, subject=replace(self.subject, baseline=baselines[0].name))

    @property
    def has_extensions(self) -> bool:
        return self.candidate is not None and self.candidate.has_extensions

    @property
    def builds_extensions(self) -> bool:
        """Building ahead executes the problem file in a trusted process."""
        return self.has_extensions and not self.owner

    @property
    def compiles_ahead(self) -> bool:
        """For a GPU. Compiling ahead executes the problem file, too."""
        compiles = LANGUAGES[self.subject.language].compiles_ahead and self.candidate is not None
        return compiles and not self.has_extensions and not self.owner

    def give_up(self, outcome: Outcome, check: str, message: str) -> Evaluation:
        finding = Finding(check=check, severity="fatal", message=message)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Evaluation(subject=self.subject, outcome=outcome, message=message, findings=(finding,), started_at=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`suite` None selects the problem's."""

    run: str
    model: str
    sample: int = 0
    turn: int = 0
    prompt: str = NO_PROMPT
    suite: str | None = None


def make_task(
    problem: Problem,
    candidate: Candidate | None,
    origin: Origin,
    *,
    language: Language,
    workload: WorkloadName = "full",
    baselines: tuple[TimedBaseline, ...] = EAGER,
    seed: int | None = None,
    notes: tuple[Finding, ...] = (),
    dtype: Precision | None = None,
) -> Task:
    """`dtype` None keeps the problem's. The first of the `baselines` ranks."""
    problem = problem if dtype is None else problem.in_precision(dtype)
    subject = Subject(
        run=origin.run,
        sample=origin.sample,
        turn=origin.turn,
        model=origin.model,
        prompt=origin.prompt,
        suite=problem.suite if origin.suite is None else origin.suite,
        problem=problem.name,
        problem_digest=problem.digest,
        candidate_digest="" if candidate is None else candidate.digest,
        language=language,
        device=NO_DEVICE,
        workload=workload,
        baseline=baselines[0].name,
        dtype=problem.precision,
    )
    if candidate is not None:
        notes += note_other_language(candidate.source, language)
    return Task(subject=subject, problem=problem, candidate=candidate, seed=seed, notes=notes, baselines=baselines)
