"""Evaluates files with candidates of one problem: all, ranked, or again whenever their content changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis.ranking import RankedFile, find_close, rank_files
from harness.domain import Evaluation, ProblemError, UsageError
from harness.executors.tasks import Task
from harness.pipeline.evaluate import open_executor
from harness.pipeline.evaluations import EvaluationReport, Evaluations, ShowSteps, open_evaluations, open_results
from harness.pipeline.options import EVERY_TASK, EvaluateOptions, Selection
from harness.store.results import StoredEvaluation


def evaluate_files(
    tasks: Mapping[Path, Task],
    options: EvaluateOptions,
    show: ShowSteps = nullcontext,
    selection: Selection = EVERY_TASK,
) -> tuple[EvaluationReport, list[RankedFile]]:
    """Compare close ones directly if one of them is new. The ranking lacks files that were not evaluated. Raises as
    `evaluate_tasks`.
    """
    wanted = list({task.subject: task for task in tasks.values()}.values())
    with open_evaluations(options, wanted) as evaluations:
        evaluations.evaluate_all(wanted, show, selection)
        ranked = rank_report(tasks, evaluations.report)
        ranked = asyncio.run(_compare_close(ranked, tasks, evaluations)) if ranked else []
    return evaluations.report, ranked


def rank_report(tasks: Mapping[Path, Task], report: EvaluationReport) -> list[RankedFile]:
    found = {_name_program(one.evaluation): one for one in report.all}
    return rank_files(
        RankedFile(name=str(file), stored=found[name])
        for file, task in tasks.items()
        if (name := (task.subject.model, task.subject.candidate_digest)) in found
    )


async def _compare_close(
    ranked: Sequence[RankedFile], tasks: Mapping[Path, Task], evaluations: Evaluations
) -> list[RankedFile]:
    """Compare files with the first, one after the other."""
    new, first, compared = {one.id for one in evaluations.report.evaluations}, ranked[0], dict[str, RankedFile]()
    for one in find_close(ranked):
        pairs = None
        if {one.stored.id, first.stored.id} & new and one.stored.id != first.stored.id:
            candidate = tasks[Path(first.name)].candidate
            assert candidate is not None
            rival = first.evaluation.as_rival(0, candidate)
            pairs = (await evaluations.try_out(replace(tasks[Path(one.name)], rival=rival))).comparison
        compared[one.name] = replace(one, close_to=first.name, pairs=pairs)
    return rank_files(compared.get(one.name, one) for one in ranked)


def _name_program(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.subject.model, evaluation.subject.candidate_digest


POLL_S = 0.1
GONE = "cannot be read: waiting for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """A file that cannot be evaluated as it is, for `reason`; an `evaluation` of the outputs alone, which is not
    stored; or the verdict `stored`. `after_s` counts from the change.
    """

    file: Path
    after_s: float = 0.0
    reason: str = ""
    evaluation: Evaluation | None = None
    stored: StoredEvaluation | None = None
    source: str = ""


def watch_files(
    files: Sequence[Path], problem: Path, make_task: Callable[[Path], Task], options: EvaluateOptions
) -> Generator[WatchEvent, None, None]:
    """Yield events of all files, then of changed ones, without end; a changed problem file changes all. Outputs are
    checked first, in evaluator processes of their own. Raises HarnessError for faults of the machine.
    """
    quick = replace(options, fidelity="correctness", profile=False, attribute_work=False, check_kernels=False)
    with open_results(options) as results, open_executor(quick) as outputs, open_executor(options) as whole:
        contents = Contents([*files, problem])
        while True:
            changed, began_s = contents.wait_for_changes(), time.monotonic()
            for file in files if problem in changed else changed:
                try:
                    if not file.is_file():
                        raise UsageError(GONE)
                    first, second = (Evaluations(options, executor, results) for executor in (outputs, whole))
                    for event in _evaluate_file(WatchEvent(file=file), make_task(file), first, second, contents):
                        yield replace(event, after_s=time.monotonic() - began_s)
                except (UsageError, ProblemError) as error:  # the next change may mend it
                    yield WatchEvent(file=file, reason=str(error))


def _evaluate_file(
    event: WatchEvent, task: Task, outputs: Evaluations, whole: Evaluations, contents: Contents
) -> Iterator[WatchEvent]:
    """Omit the first part if a verdict is stored, the second if the file has changed meanwhile."""
    if whole.options.again or outputs.find(task) is None:
        yield replace(event, evaluation=asyncio.run(outputs.try_out(task)))
    if not contents.has_changed(event.file):
        source = "" if task.candidate is None else task.candidate.source
        yield replace(event, stored=asyncio.run(whole.evaluate(task)), source=source)
        whole.require_devices()


class Contents:
    """Compares contents, since editors replace files, and times of changes may be too coarse."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._reported: dict[Path, bytes | None] = {}
        self._files = files

    def wait_for_changes(self) -> list[Path]:
        """Return files with another content than reported before, once it has stayed the same for a moment."""
        before = self._read_all()
        while True:
            time.sleep(POLL_S)
            now = self._read_all()
            changed = [one for one in self._files if now[one] == before[one] and self._is_new(one, now[one])]
            if changed:
                self._reported |= {one: now[one] for one in changed}
                return changed
            before = now

    def has_changed(self, file: Path) -> bool:
        return self._is_new(file, _read(file))

    def _is_new(self, file: Path, content: bytes | None) -> bool:
        return file not in self._reported or content != self._reported[file]

    def _read_all(self) -> dict[Path, bytes | None]:
        return {file: _read(file) for file in self._files}


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
