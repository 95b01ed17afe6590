"""Evaluates files with candidates of one problem: all, ranked, or again whenever their content changes."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.analysis.ranking import RankedFile, find_close, rank_files
from harness.domain import Evaluation, ProblemError, UsageError
from harness.executors.executor import Executor, Task
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
    """Compare close ones if one is new. The ranking lacks files that were not evaluated. Raises as `evaluate_tasks`."""
    wanted = list({task.subject: task for task in tasks.values()}.values())
    with open_evaluations(options, wanted) as evaluations:
        evaluations.evaluate_all(wanted, show, selection)
        ranked = rank_report(tasks, evaluations.report)
        ranked = asyncio.run(_compare_close(ranked, tasks, evaluations)) if ranked else []
    return evaluations.report, ranked


def rank_report(tasks: Mapping[Path, Task], report: EvaluationReport) -> list[RankedFile]:
    found = {(one.evaluation.subject.model, one.evaluation.subject.candidate_digest): one for one in report.all}
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


POLL_S = 0.05
LONG_S = 30.0  # a verdict that takes longer is preceded by a check of the outputs
GONE = "cannot be read: waiting for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """Not evaluated, for `reason`; `evaluation` of outputs, not stored; or `stored`. `after_s` since the change."""

    file: Path
    after_s: float = 0.0
    reason: str = ""
    evaluation: Evaluation | None = None
    stored: StoredEvaluation | None = None
    source: str = ""


async def watch_files(
    files: Sequence[Path],
    problem: Path,
    make_task: Callable[[Path], Task],
    options: EvaluateOptions,
    report: Callable[[WatchEvent], None],
) -> None:
    """Report events of all files, then of changed ones, without end; a changed problem file changes all. Outputs are
    checked first, in other processes, except on a quick emulated device. Raises HarnessError for the machine.
    """
    quick = replace(options, fidelity="correctness", profile=False, attribute_work=False, check_kernels=False)
    with open_results(options) as results, open_executor(quick) as outputs, open_executor(options) as whole:
        contents = Contents([*files, problem])
        watch = _Watch(lambda executor: Evaluations(options, executor, results), outputs, whole, report)
        while True:
            await asyncio.sleep(POLL_S)
            changed, began_s = contents.find_changes(), time.monotonic()
            for file in files if problem in changed else changed:
                await watch.take_change(file, make_task, began_s)
            watch.report_ended(contents.has_changed)


class _Watch:
    def __init__(
        self,
        begin: Callable[[Executor], Evaluations],
        outputs: Executor,
        whole: Executor,
        report: Callable[[WatchEvent], None],
    ) -> None:
        self._begin = begin
        self._outputs = outputs
        self._whole = whole
        self._report = report
        self._checks = WholeChecks(self._evaluate_whole)
        self._has_evaluated = False
        self._last_s = 0.0  # duration of the last verdict

    async def take_change(self, file: Path, make_task: Callable[[Path], Task], began_s: float) -> None:
        self._checks.forget(file)
        try:
            if not file.is_file():
                raise UsageError(GONE)
            task = make_task(file)
            event = WatchEvent(file=file, source="" if task.candidate is None else task.candidate.source)
            await self._evaluate(Version(event=event, task=task, began_s=began_s))
        except (UsageError, ProblemError) as error:  # the next change may mend it
            self._checks.forget(file)
            self._report(WatchEvent(file=file, reason=str(error)))

    async def _evaluate(self, version: "Version") -> None:
        task, has_evaluated = version.task, self._has_evaluated
        self._has_evaluated = True
        is_emulated = any(one.emulated_gpu for one in self._whole.devices(task.subject.language))
        is_quick = is_emulated and self._last_s <= LONG_S
        first = self._begin(self._whole if is_quick else self._outputs)
        stored = None if first.options.again else first.find(task)
        if stored is not None:
            self._report(version.make_event(stored=stored))
            if not has_evaluated:
                await first.try_out(task)  # starts the processes
            return
        if is_emulated:
            self._checks.add(version)
            self._checks.begin()
        if not is_quick:
            evaluation = await first.try_out(task)
            if not self._checks.has_ended(version):
                self._report(version.make_event(evaluation=evaluation))
                self._checks.add(version)

    def report_ended(self, has_changed: Callable[[Path], bool]) -> None:
        for event in self._checks.take_ended():
            self._report(event)
            self._last_s = 0.0 if event.stored is None else event.stored.evaluation.duration_s
        self._checks.begin(has_changed)

    async def _evaluate_whole(self, task: Task) -> StoredEvaluation:
        whole = self._begin(self._whole)
        stored = await whole.evaluate(task)
        whole.require_devices()
        return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    event: WatchEvent  # without a result
    task: Task
    began_s: float

    def make_event(self, **result: Any) -> WatchEvent:
        return replace(self.event, after_s=time.monotonic() - self.began_s, **result)


class WholeChecks:
    """Makes the verdicts on the latest versions of files, one after the other, while the event loop runs."""

    def __init__(self, evaluate: Callable[[Task], Coroutine[Any, Any, StoredEvaluation]]) -> None:
        self._evaluate = evaluate
        self._latest: dict[Path, Version] = {}
        self._running: tuple[Version, asyncio.Task[StoredEvaluation]] | None = None

    def forget(self, file: Path) -> None:
        """A verdict on it that is being made is stored, but not returned."""
        self._latest.pop(file, None)

    def add(self, version: Version) -> None:
        self._latest[version.event.file] = version

    def has_ended(self, version: Version) -> bool:
        return self._running is not None and self._running[0] is version and self._running[1].done()

    def take_ended(self) -> list[WatchEvent]:
        """Return the event of the version whose verdict was made, if it is still wanted."""
        if self._running is None or not self._running[1].done():
            return []
        (version, running), self._running = self._running, None
        event = _describe_end(version, running)
        if self._latest.get(event.file) is not version:
            return []
        self.forget(event.file)
        return [event]

    def begin(self, has_changed: Callable[[Path], bool] = lambda _: False) -> None:
        """Begin the next one that has not changed, in the running loop, unless one is being made."""
        wanted = [one for file, one in self._latest.items() if not has_changed(file)]
        if self._running is None and wanted:
            self._running = (wanted[0], asyncio.create_task(self._evaluate(wanted[0].task)))


def _describe_end(version: Version, ended: asyncio.Task[StoredEvaluation]) -> WatchEvent:
    try:
        return version.make_event(stored=ended.result())
    except (UsageError, ProblemError) as error:
        return WatchEvent(file=version.event.file, reason=str(error))


class Contents:
    """Compares contents, since editors replace files, and times of changes may be too coarse."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._reported: dict[Path, bytes | None] = {}
        self._files = files
        self._before = self._read_all()

    def find_changes(self) -> list[Path]:
        """Return files with another content than reported before, if it is as at the last call."""
        before, self._before = self._before, self._read_all()
        now = self._before
        changed = [one for one in self._files if now[one] == before[one] and self._is_new(one, now[one])]
        self._reported |= {one: now[one] for one in changed}
        return changed

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
