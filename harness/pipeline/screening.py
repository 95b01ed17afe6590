"""Makes the cheap evaluations of `--screen`: a candidate that fails there gets no full evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from harness.domain import EMULATED, Evaluation, Finding, Language, Outcome, UsageError
from harness.languages import LANGUAGES
from harness.pipeline.evaluations import place_task
from harness.pipeline.options import EvaluateOptions
from harness.search.options import Screen

if TYPE_CHECKING:
    from harness.executors.executor import Executor
    from harness.executors.tasks import Task

OF_THE_EMULATION = (Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY)  # a GPU is faster, and has other memory


class Screening:
    """`small` checks correctness at the small or reduced sizes on the same devices; `emulated` checks on the emulated
    device.
    """

    def __init__(self, screen: Screen, options: EvaluateOptions, executor: Executor) -> None:
        self._screen, self._options, self.executor = screen, options, executor

    async def find_failure(self, task: Task) -> Evaluation | None:
        """Return the failure as the verdict of `task`; None if the candidate is correct or could not be
        evaluated here.
        """
        placed = self._place(task)
        if placed is None:
            return None
        evaluation = await asyncio.wrap_future(self.executor.submit(placed))
        outcome = evaluation.outcome
        if outcome is Outcome.CORRECT or not outcome.counts_against_model:
            return None
        if self._screen == EMULATED and outcome in OF_THE_EMULATION:
            return None
        sizes = f"{placed.subject.workload} sizes on {evaluation.subject.device}"
        note = Finding(check="screen", severity="note", message=f"evaluated at {sizes} only (--screen {self._screen})")
        facts = tuple(fact for fact in evaluation.environment if fact[0] != "emulated_gpu")  # not of the task's device
        return replace(evaluation, subject=task.subject, environment=facts, findings=(*evaluation.findings, note))

    def _place(self, task: Task) -> Task | None:
        devices = self.executor.devices(task.subject.language)
        names: tuple[Literal["small", "reduced"], ...] = ("small", "reduced")
        tasks = (place_task(task, devices, replace(self._options, workload=name)) for name in names)
        return next((replace(one, rival=None) for one in tasks if one is not None), None)


@contextmanager
def open_screening(screen: Screen | None, options: EvaluateOptions, language: Language) -> Iterator[Screening | None]:
    """Raises UsageError if the screening device does not fit, or is the evaluating one."""
    from harness.executors.local import LocalExecutor
    from harness.languages.devices import find_devices

    if screen is None:
        yield None
        return
    rules = LANGUAGES[language]
    if screen == EMULATED and (rules.compiles_only or not rules.uses_gpu):
        raise UsageError(f"--screen emulated: language {language} is not emulated")
    if screen == EMULATED and EMULATED in find_devices(options.device, language):
        raise UsageError("--screen emulated: the emulated device is where the candidates are evaluated anyway")
    device = EMULATED if screen == EMULATED else options.device
    options = replace(options, device=device, fidelity="correctness", profile=False)
    with LocalExecutor(options) as executor:
        yield Screening(screen, options, executor)
