"""The evaluations of a cluster, and the rules for those whose device was lost."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.domain import Evaluation, Finding, Outcome
from harness.executors.cluster.remote import Built
from harness.executors.tasks import Task

MOST_LOSSES = 2  # of devices that ran one candidate; then the candidate is suspect
MOST_MOVES = 3  # away from drained nodes
EXTENSION = "cpp_extension"  # in the source of candidates that build


@dataclass(slots=True, kw_only=True, eq=False)
class ClusterJob:
    """`kind`: of device; `built`: on another node; `losses`: reasons; `moves`: losses that say nothing about the
    candidate."""

    task: Task
    kind: str
    future: Future[Evaluation] = field(default_factory=Future)
    built: Built | None = None
    losses: list[str] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)

    @property
    def wants_build(self) -> bool:
        candidate = self.task.candidate
        return self.built is None and candidate is not None and EXTENSION in candidate.source

    def finish(self, evaluation: Evaluation) -> None:
        with suppress(InvalidStateError):  # cancelled, or failed at the end of the executor
            self.future.set_result(evaluation)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def judge_losses(job: ClusterJob) -> Evaluation | None:
    """The evaluation of a job that must not run again."""
    if len(job.losses) >= MOST_LOSSES:
        reasons = "; ".join(job.losses)
        return _conclude(job, Outcome.SUSPECT, f"{MOST_LOSSES} devices were lost while they ran it: {reasons}")
    if len(job.moves) >= MOST_MOVES:
        return _conclude(job, Outcome.HARNESS_ERROR, f"it was moved too often: {'; '.join(job.moves)}")
    return None


def _conclude(job: ClusterJob, outcome: Outcome, message: str) -> Evaluation:
    finding = Finding(check="device_lost", severity="fatal", message=message)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Evaluation(subject=job.task.subject, outcome=outcome, message=message, findings=(finding,), started_at=now)
