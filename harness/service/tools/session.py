"""Runs evaluations for one agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from harness.copies.duplicates import is_reference_copy
from harness.domain import EMULATED, CounterReport, Evaluation, Language, Problem, Subject, UsageError
from harness.executors.executor import Executor
from harness.executors.local import LocalExecutor
from harness.executors.tasks import Task
from harness.generate.prompting import render_feedback
from harness.languages import GPU_LANGUAGE
from harness.languages.devices import find_devices
from harness.pipeline.data_folders import find_folder
from harness.pipeline.evaluations import Evaluations, open_results
from harness.search.feedback import Feedback, list_told_findings, make_feedback
from harness.search.history import History, Turn
from harness.search.quoting import clean
from harness.service.preparation import find_submitted_problem, make_submitted_task
from harness.service.settings import ToolSettings
from harness.service.submission import Submission
from harness.service.tools.problem_facts import PROMPT
from harness.store.completions import has_run
from harness.store.results import ResultFilter, StoredEvaluation
from harness.store.runs import check_name

MOST_SOURCE_BYTES = 2**20
PROMPT_NAME = "tools"  # of stored submissions


class ToolSession:
    """Runs one evaluation at a time, so that none disturbs another's timing."""

    def __init__(self, settings: ToolSettings) -> None:
        """Raises UsageError and DeviceError."""
        check_name("run", settings.run)
        if has_run(settings.options.generated_dir, settings.run):
            raise UsageError(f"run {settings.run!r} has a model's answers: choose another --run name for submissions")
        find_devices(settings.options.device, GPU_LANGUAGE)  # only to refuse an unknown or missing one at the start
        self.settings = settings
        self._local = settings.options
        self._executors = {self._local: LocalExecutor(self._local)}
        self._lock = asyncio.Lock()
        self._verdicts = self._started = 0
        self._best: dict[Subject, Turn] = {}

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()

    def find_problem(self, submission: Submission) -> Problem:
        """Use the server's dtype. Raises UsageError and ProblemError."""
        submission = replace(submission, dtype=self.settings.options.dtype)
        return find_submitted_problem(submission, self.settings.options.problems_dir)

    async def evaluate(
        self,
        source: str,
        language: Language,
        about: Submission,
        *,
        sanitizes: bool = False,
        profiles: bool = False,
        stores: bool = False,
    ) -> tuple[str, dict[str, Any]]:
        """Return (feedback, summary). A failing candidate is an outcome. Raises HarnessError, also when the budget is
        spent.
        """
        _require_source(source)
        options = self.settings.options
        workload = about.workload or (None if sanitizes else options.workload)
        submission = replace(about, candidate=source, language=language, workload=workload)
        problem = await asyncio.to_thread(self.find_problem, submission)
        async with self._lock:
            if self._left == 0:
                raise UsageError(f"the budget of {self.settings.budget} evaluations is spent")
            executor = await asyncio.to_thread(self._find_executor, language, sanitizes, profiles)
            made = await asyncio.to_thread(make_submitted_task, submission, problem, executor)
            task = made.against(options.baselines)
            self._started += 1
            if stores:
                stored = await self._evaluate_stored(task, executor)
                evaluation, number = stored.evaluation, stored.id
            else:
                evaluation, number = await asyncio.wrap_future(executor.submit(task)), None
            self._verdicts += evaluation.outcome.counts_against_model
            feedback, summary = self._tell(evaluation, task, problem)
            return feedback, summary | {"evaluations_left": self._left, "id": number}

    @property
    def _left(self) -> int | None:
        return None if self.settings.budget is None else self.settings.budget - self._verdicts

    def _find_executor(self, language: Language, sanitizes: bool, profiles: bool) -> Executor:
        local = replace(self._local, device=EMULATED, check_kernels=None) if sanitizes else self._local
        if profiles:
            local = replace(local, fidelity="correctness", profile=True)
            _require_gpu(find_devices(local.device, language))
        if not find_devices(local.device, language):
            raise UsageError(f"device {local.device} evaluates no {language} programs")
        if local not in self._executors:
            self._executors[local] = LocalExecutor(local)
        return self._executors[local]

    async def _evaluate_stored(self, task: Task, executor: Executor) -> StoredEvaluation:
        """Submissions for one problem are the turns of one sample."""
        settings, subject = self.settings, task.subject
        where = ResultFilter(run=settings.run, suite=subject.suite, problem=subject.problem)
        with open_results(settings.options) as results:
            turn = results.store.count(where)
            subject = replace(subject, run=settings.run, model=settings.model, prompt=PROMPT_NAME, turn=turn)
            evaluations = Evaluations(replace(settings.options, again=True), executor, results)
            return await evaluations.evaluate(replace(task, subject=subject))

    def _tell(self, evaluation: Evaluation, task: Task, problem: Problem) -> tuple[str, dict[str, Any]]:
        """The summary adds only findings about the candidate's kernels."""
        subject, source = evaluation.subject, task.candidate.source if task.candidate else ""
        place = replace(subject, run="", model="", prompt="", turn=0, candidate_digest="")
        is_copy = is_reference_copy(source, problem.source)
        turn = Turn(number=self._started, evaluation=evaluation, source=source, is_copy=is_copy)
        history = History(turns=(self._best[place], turn) if place in self._best else (turn,))
        if history.best is not None:
            self._best[place] = history.best
        feedback = make_feedback(turn, history)
        told = [
            asdict(replace(one, message=clean(one.message), evidence=clean(one.evidence)))
            for one in list_told_findings(evaluation)
        ]
        summary = {
            "evaluation": turn.number,
            "outcome": feedback.outcome,
            "measured": asdict(feedback.measured) if feedback.measured else None,
            "counters": None if evaluation.counters is None else _describe_counters(feedback, evaluation.counters),
            "findings": told,
            "problem": subject.problem,
            "device": subject.device,
            "workload": subject.workload,
        }
        folder, language = find_folder("prompts", None), subject.language
        told_text = render_feedback(
            feedback, problem, prompt=PROMPT, language=language, prompts_dir=folder, has_tools=True
        )
        return told_text, summary


def _require_gpu(devices: Sequence[str]) -> None:
    if not any(one.startswith("cuda") for one in devices):
        raise UsageError("profile needs an NVIDIA GPU: this server evaluates on none")


def _describe_counters(feedback: Feedback, report: CounterReport) -> dict[str, Any]:
    kernels = [asdict(one) | {"metrics": dict(one.metrics)} for one in feedback.counters]
    return {"kernels": kernels, "note": clean(report.note)}


def _require_source(source: str) -> None:
    if not source.strip():
        raise UsageError("the source is empty: send one Python file that defines ModelNew")
    size_bytes = len(source.encode())
    if size_bytes > MOST_SOURCE_BYTES:
        raise UsageError(f"the source has {size_bytes:,} bytes; the limit is {MOST_SOURCE_BYTES:,}")
