"""Makes the evaluations of `harness regress`: rounds of candidates that need more, the first with stored seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.analysis.change_detection import Change, ChangeKind, GateRule, classify_change, needs_more
from harness.domain import (
    FILE_RUN,
    INCOMPLETE_ANSWER,
    NO_DEVICE,
    Candidate,
    Evaluation,
    HarnessError,
    Outcome,
    SampleKey,
    Subject,
    UsageError,
    WorkloadName,
)
from harness.domain.files import raising
from harness.domain.options import option
from harness.hardware.host import list_gpus
from harness.languages import LANGUAGES
from harness.pipeline.options import EvaluateOptions, read_baselines
from harness.store.columns import COLUMNS, ResultRow
from harness.store.results import ResultFilter, ResultStore, StoredEvaluation, explain_no_match
from harness.store.runs import has_sample, load_sample, locate_run

if TYPE_CHECKING:
    from harness.executors.executor import Task
    from harness.pipeline.evaluations import Evaluations, ShowSteps

REGRESS_FOLDER = "regress"
_Setting = tuple[str, WorkloadName, str, str | None]
# Environment fields that may differ between repeats of one measurement.
_VOLATILE = ("seed", "sm_clock_mhz", "memory_clock_mhz")


def _read_day(day: str | None) -> str | None:
    try:
        return None if day is None else date.fromisoformat(day).isoformat()
    except ValueError as error:
        raise UsageError(f"--since expects a day such as 2025-03-01, found {day!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Unset fields do not filter. `where` has one filter per named run; `since` is an ISO date."""

    title: ClassVar[str] = "Options"
    has_variables: ClassVar[bool] = False

    pins: Path | None = option(None, "Only evaluations in this file: one number or run/problem/sample per line.")
    since: str | None = option(None, "Only evaluations on or after this day, e.g. 2025-03-01.", parse=_read_day)
    best: bool = option(False, "Only the fastest correct candidate of each problem.", "--best")
    last: int | None = option(None, "Only the last N of the selected.", min=1)
    where: tuple[ResultFilter, ...] = ()


@dataclass(slots=True, kw_only=True)
class Reevaluation:
    """`before` are repeats of the evaluation to compare with, itself last."""

    id: int
    before: tuple[Evaluation, ...]
    after: list[Evaluation] = field(default_factory=list)
    task: Task | None = None
    obstacle: str = ""

    @property
    def subject(self) -> Subject:
        return self.before[-1].subject


def regress_stored(
    selection: Selection,
    options: EvaluateOptions,
    rule: GateRule,
    *,
    extraction: bool,
    update: bool,
    show: ShowSteps = nullcontext,
) -> list[Change]:
    with ResultStore.open(options.results_dir, read_only=True) as store:
        rows = choose_rows(store, selection)
        entries = [_open_entry(store, row, options, rule) for row in rows]
    changes = check_extraction(rows, options.generated_dir) if extraction else []
    if not update:
        options = replace(options, results_dir=options.results_dir / REGRESS_FOLDER)
    _evaluate_in_rounds(entries, options, rule, show, fully=update)
    return [*changes, *(_conclude(entry, rule) for entry in entries)]


def choose_rows(store: ResultStore, selection: Selection) -> list[ResultRow]:
    """Return the latest evaluations, oldest first. Raises UsageError."""
    found = {row.id: row for where in selection.where for row in store.rows(where)}
    for where in selection.where:
        if where.run is not None and not store.count(where):
            raise UsageError(explain_no_match(store, where))
    rows = [found[number] for number in sorted(found)]
    if selection.pins is not None:
        rows = _choose_pinned(store, rows, read_pins(selection.pins), selection.pins)
    if selection.since is not None:
        rows = [row for row in rows if row.started_at >= selection.since]
    if selection.best:
        best: dict[tuple[str, ...], ResultRow] = {}
        for row in rows:
            if row.outcome != Outcome.CORRECT:
                continue
            place = (row.suite, row.problem, row.language, row.device, row.workload, row.baseline, row.dtype)
            if place not in best or (row.speedup or 0.0) > (best[place].speedup or 0.0):
                best[place] = row
        rows = sorted(best.values(), key=lambda row: row.id)
    return rows[-selection.last :] if selection.last else rows


def _choose_pinned(store: ResultStore, rows: Sequence[ResultRow], pins: Iterable[Pin], path: Path) -> list[ResultRow]:
    """A pinned id is compared with even if it was evaluated again later."""
    latest, every = {row.id: row for row in rows}, None
    chosen: dict[int, ResultRow] = {}
    for pin in pins:
        if pin.sample is not None:
            matches = [row for row in store.rows(ResultFilter.of_sample(pin.sample)) if row.id in latest]
        elif pin.evaluation in latest:
            matches = [latest[pin.evaluation]]
        else:
            every = every or {row.id: row for row in store.rows(history=True)}
            matches = [every[pin.evaluation]] if pin.evaluation in every else []
        if not matches:
            raise UsageError(f"{path}, line {pin.line}: no evaluation of {pin} is stored in {store.path}")
        chosen |= {row.id: row for row in matches}
    return [chosen[number] for number in sorted(chosen)]


def _open_entry(store: ResultStore, row: ResultRow, options: EvaluateOptions, rule: GateRule) -> Reevaluation:
    stored = store.get(row.id)
    if stored is None:
        raise UsageError(f"evaluation {row.id} is no longer stored in {store.path}")
    before = find_repeats(store, stored, rule.most)
    if options.fidelity == "correctness":  # only outcomes are compared
        before = tuple(replace(one, timing=None) for one in before)
    entry = Reevaluation(id=row.id, before=before)
    try:
        entry.task = _make_task(stored, store.source(stored.evaluation.subject.candidate_digest), options)
    except HarnessError as error:
        entry.obstacle = str(error)
    if entry.task and entry.task.problem.digest != stored.evaluation.subject.problem_digest:
        entry.task, entry.obstacle = None, "other problem version"
    return entry


def find_repeats(store: ResultStore, stored: StoredEvaluation, most: int) -> tuple[Evaluation, ...]:
    """Return preceding evaluations under the same conditions, and itself last."""
    subject, conditions = stored.evaluation.subject, _conditions_of(stored.evaluation)
    earlier = [one for one in store.load_all(ResultFilter.of_sample(subject.key), history=True) if one.id < stored.id]
    group = [stored.evaluation]
    for one in reversed(earlier):
        if one.evaluation.subject != subject:
            continue
        if len(group) == most or _conditions_of(one.evaluation) != conditions:
            break
        group.append(one.evaluation)
    return tuple(reversed(group))


def _conditions_of(evaluation: Evaluation) -> tuple[Outcome, dict[str, str]]:
    facts = {name: value for name, value in evaluation.facts.items() if name not in _VOLATILE}
    return evaluation.outcome, facts


def _make_task(stored: StoredEvaluation, source: str | None, options: EvaluateOptions) -> Task:
    """Use the current version of the problem and the stored seed."""
    from harness.executors.executor import Origin, make_task
    from harness.generate.extraction.notes import EXTRACTION
    from harness.pipeline.data_folders import find_evaluated_problem

    subject = stored.evaluation.subject
    if source is None and subject.candidate_digest:
        raise UsageError(f"the source of candidate {subject.candidate_digest} is not stored")
    candidate = None if source is None else Candidate(source=source, language=subject.language, rule="stored")
    if candidate is not None and candidate.digest != subject.candidate_digest:
        raise UsageError(f"the stored source of candidate {subject.candidate_digest} was edited: evaluate it again")
    problem = find_evaluated_problem(subject, options.generated_dir, options.problems_dir)
    if subject.workload != "reduced" and problem.workload(subject.workload) is None:
        raise UsageError(f"the problem has no {subject.workload} workload any more")
    seed = stored.evaluation.facts.get("seed", "")
    origin = Origin(**{one.name: getattr(subject, one.name) for one in fields(Origin)})
    return make_task(
        problem,
        candidate,
        origin,
        language=subject.language,
        workload=subject.workload,
        baselines=read_baselines(subject.baseline),
        dtype=subject.dtype or None,
        seed=int(seed) if seed.isdecimal() else None,
        notes=tuple(one for one in stored.evaluation.findings if one.check in (EXTRACTION, *INCOMPLETE_ANSWER)),
    )


def check_extraction(rows: Sequence[ResultRow], generated_dir: Path) -> list[Change]:
    """Skip samples deleted from generated/."""
    from harness.generate.extraction.extractor import reextract

    changes = []
    latest = {row.key: row for row in rows if row.run and row.run != FILE_RUN}
    for key, row in latest.items():
        try:
            run_dir = locate_run(generated_dir, key.run)
            found = [load_sample(run_dir, key)] if has_sample(run_dir, key) else []
        except HarnessError as error:
            changes.append(_describe_extraction(row, "not_comparable", f"its files are damaged: {error}"))
            continue
        for change in reextract(found):
            if change.kind != "rule":
                kind: ChangeKind = "fixed" if change.kind == "found" else "broken"
                changes.append(_describe_extraction(row, kind, f"extraction: {change.reason}"))
    return changes


def _describe_extraction(row: ResultRow, kind: ChangeKind, reason: str) -> Change:
    fields = {name: getattr(row, name) for name in Subject.__dataclass_fields__ if name in COLUMNS}
    subject = Subject(**fields, problem_digest="", candidate_digest=row.candidate)
    return Change(subject=subject, kind=kind, reason=reason, stored=row.id)


def _evaluate_in_rounds(
    entries: Sequence[Reevaluation], options: EvaluateOptions, rule: GateRule, show: ShowSteps, *, fully: bool
) -> None:
    """With `fully`, correct candidates get all evaluations."""
    from harness.pipeline.evaluate import open_executor
    from harness.pipeline.evaluations import Evaluations, open_results

    settings = {_setting_of(entry) for entry in entries if entry.task}
    if not settings:
        return
    tasks = [entry.task for entry in entries if entry.task]
    only = _apply_setting(settings.pop(), options) if len(settings) == 1 else None
    with (
        open_results(options) as results,
        open_executor(only, tasks) if only else nullcontext() as kept,  # for all rounds
    ):
        for number in range(rule.most):
            groups: dict[_Setting, list[Reevaluation]] = {}
            for entry in entries:
                if entry.task and _wants_more(entry, rule, fully=fully):
                    groups.setdefault(_setting_of(entry), []).append(entry)
            for setting, group in groups.items():
                applied = _apply_setting(setting, options)
                with open_executor(applied, tasks) if kept is None else nullcontext(kept) as executor:
                    _evaluate_group(group, Evaluations(applied, executor, results), show, with_stored_seed=number == 0)


def _wants_more(entry: Reevaluation, rule: GateRule, *, fully: bool) -> bool:
    if needs_more(entry.before, entry.after, rule):
        return True
    return fully and entry.after[-1].timing is not None and len(entry.after) < rule.most


def _apply_setting(setting: _Setting, options: EvaluateOptions) -> EvaluateOptions:
    device, workload, baseline, gpu = setting
    options = replace(options, device=device, workload=workload, baselines=read_baselines(baseline), again=True)
    return replace(options, gpu=options.gpu or gpu)


def _evaluate_group(
    group: Sequence[Reevaluation], evaluations: Evaluations, show: ShowSteps, *, with_stored_seed: bool
) -> None:
    tasks = [entry.task for entry in group if entry.task]
    evaluations.evaluate_all([task if with_stored_seed else replace(task, seed=None) for task in tasks], show)
    made = [stored.evaluation for stored in evaluations.report.evaluations]
    found = {_identify(evaluation.subject): evaluation for evaluation in made}
    for entry in group:
        evaluation = found.get(_identify(entry.subject))
        if evaluation is None:
            entry.task, entry.obstacle = None, f"the problem has no {entry.subject.workload} workload any more"
        else:
            entry.after.append(evaluation)


def _setting_of(entry: Reevaluation) -> _Setting:
    subject = entry.subject
    gpu = entry.before[-1].facts.get("emulated_gpu")
    return find_device(subject), subject.workload, subject.baseline, gpu


def find_device(subject: Subject) -> str:
    """CUDA candidates whose device is missing get the CPU, where they are only built."""
    if not LANGUAGES[subject.language].uses_gpu:
        return "auto" if subject.device == NO_DEVICE else subject.device
    if not subject.device.startswith("cuda"):
        return "cpu" if subject.device == NO_DEVICE else subject.device
    index = int(subject.device.partition(":")[2] or 0)
    return subject.device if index < len(list_gpus()) else "cpu"


def _identify(subject: Subject) -> tuple[str | int, ...]:
    origin = subject.run, subject.sample, subject.turn
    return *origin, subject.problem, subject.candidate_digest, subject.language, subject.dtype


def _conclude(entry: Reevaluation, rule: GateRule) -> Change:
    if entry.obstacle:
        before = entry.before[-1]
        return Change(
            subject=before.subject, kind="not_comparable", reason=entry.obstacle, before=before.outcome, stored=entry.id
        )
    return replace(classify_change(entry.before, entry.after, rule), stored=entry.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    line: int
    evaluation: int | None = None
    sample: SampleKey | None = None

    def __str__(self) -> str:
        return str(self.evaluation if self.sample is None else self.sample)


def read_pins(path: Path) -> tuple[Pin, ...]:
    """Read the evaluations to repeat. Each line has an evaluation's number, or `run/problem/sample`, with `/turn-N` for
    a repair turn; `#` starts a comment. Raises UsageError for an unreadable or empty file and an invalid line.
    """
    with raising(UsageError, f"read the pins {path}", also=(UnicodeDecodeError,)):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    stripped = [(number, line.split("#", 1)[0].strip()) for number, line in enumerate(lines, start=1)]
    pins = tuple(_read_pin(text, number, path) for number, text in stripped if text)
    if not pins:
        raise UsageError(f"{path} contains no pins: write one evaluation per line, such as 12 or my-run/softmax/0")
    return pins


def _read_pin(text: str, line: int, path: Path) -> Pin:
    if re.fullmatch(r"\d{1,15}", text):
        return Pin(line=line, evaluation=int(text))
    key = SampleKey.parse(text)
    if key is None:
        raise UsageError(
            f"{path}, line {line}: expected the number of an evaluation or run/problem/sample, found {text!r}"
        )
    return Pin(line=line, sample=key)
