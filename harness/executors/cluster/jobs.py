"""Tracks a cluster's evaluations, and decides about those whose device was lost."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from harness.domain import Evaluation, Outcome
from harness.executors.cluster.remote import Built
from harness.executors.tasks import Task

MOST_LOSSES = 3  # of devices that ran one candidate, which then is suspect; two may have ended by chance
MOST_MOVES = 3  # away from drained nodes


@dataclass(slots=True, kw_only=True, eq=False)
class ClusterJob:
    """`kind` is the device's; `built` comes from another node; `losses` are reasons; `moves` counts losses that the
    candidate cannot have caused.
    """

    task: Task
    kind: str
    number: int = field(default_factory=count().__next__)
    future: Future[Evaluation] = field(default_factory=Future)
    built: Built | None = None
    losses: list[str] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)

    @property
    def is_prepared(self) -> bool:
        return True

    @property
    def wants_build(self) -> bool:
        return self.built is None and self.task.builds_extensions

    def finish(self, evaluation: Evaluation) -> None:
        with suppress(InvalidStateError):  # cancelled, or failed at the end of the executor
            self.future.set_result(evaluation)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def conclude_losses(job: ClusterJob) -> Evaluation | None:
    """Return the evaluation of a job that must not run again."""
    if len(job.losses) >= MOST_LOSSES:
        reasons = "; ".join(job.losses)
        message = f"{len(job.losses)} devices were lost while they ran it: {reasons}"
        return job.task.give_up(Outcome.SUSPECT, "device_lost", message)
    if len(job.moves) >= MOST_MOVES:
        message = f"it was moved too often: {'; '.join(job.moves)}"
        return job.task.give_up(Outcome.HARNESS_ERROR, "device_lost", message)
    return None
