"""Compares candidates with earlier ones of other models, and with a folder of known solutions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.copies import find_own_values, list_fenced, take_fingerprint
from harness.domain import FILE_RUN, FROM_FILE, Evaluation, Finding, Problem, Subject, UsageError
from harness.store.completions import has_run, read_prompt
from harness.store.results import ResultStore, StoredEvaluation
from harness.store.runs import CANDIDATE, locate_run, locate_sample

if TYPE_CHECKING:
    from harness.executors.executor import Task

LOG = logging.getLogger(__name__)
NEAR_DUPLICATE, CONTAMINATED = "near_duplicate", "contaminated"
_SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
_MANY = 200  # fingerprints that take seconds


class KnownSolutions:
    """A `folder` of None is empty. Raises UsageError for a folder without programs."""

    def __init__(self, folder: Path | None) -> None:
        self._files = {} if folder is None else _read_known(folder)

    def check(self, task: Task) -> tuple[Finding, ...]:
        if not self._files or task.candidate is None:
            return ()
        return self.compare(find_own_values(task.candidate.source, [task.problem.source]))

    def compare(self, values: Sequence[str]) -> tuple[Finding, ...]:
        path = next((self._files[value] for value in values if value in self._files), None)
        if path is None:
            return ()
        message = f"its program or a kernel of it is that of the known solution {path}, up to names and layout"
        return (Finding(check=CONTAMINATED, severity="warning", message=message),)


class Provenance:
    """Raises UsageError for a folder without programs."""

    def __init__(self, store: ResultStore, *, generated_dir: Path, known_solutions: Path | None = None) -> None:
        self.store = store
        self._generated_dir = generated_dir
        self._known = KnownSolutions(known_solutions)
        missing = store.list_without_fingerprint()
        if len(missing) > _MANY:
            LOG.warning("fingerprints of %d stored candidates are made, once", len(missing))
        store.complete_fingerprints(missing)

    def record(self, evaluation: Evaluation, task: Task) -> StoredEvaluation:
        source = task.candidate.source if task.candidate else None
        evaluation = self.check(evaluation, source, task.problem)
        return StoredEvaluation(id=self.store.record(evaluation, source), evaluation=evaluation)

    def check(self, evaluation: Evaluation, source: str | None, problem: Problem) -> Evaluation:
        """Code that the problem or the prompt gave is no evidence of a copy."""
        if source is None:
            return evaluation
        values = find_own_values(source, [problem.source, *self._list_shown(evaluation.subject)])
        found = [*self._known.compare(values), *self._compare_with_models(values, evaluation.subject)]
        return replace(evaluation, findings=(*evaluation.findings, *found)) if found else evaluation

    def _list_shown(self, subject: Subject) -> list[str]:
        """Return code in the first prompt, since later ones quote the model's, and the file of `harness improve`."""
        if subject.run == FILE_RUN or not has_run(self._generated_dir, subject.run):
            return []
        folder = locate_sample(locate_run(self._generated_dir, subject.run), replace(subject.key, turn=0))
        shown = list_fenced(read_prompt(folder) or "")
        given = folder / CANDIDATE
        if subject.prompt.endswith(FROM_FILE) and given.is_file():
            shown.append(given.read_text(encoding="utf-8-sig", errors="replace"))
        return shown

    def _compare_with_models(self, values: Sequence[str], subject: Subject) -> Iterator[Finding]:
        """The first model that submitted a program is no copy, however often it is evaluated."""
        first = self.store.find_first(values) if values and subject.run != FILE_RUN else None
        if first is not None and first.model != subject.model:
            message = (
                f"its program or a kernel of it is that of model {first.model}, sample {first.key} "
                f"(evaluation {first.id}), up to names and layout"
            )
            yield Finding(check=NEAR_DUPLICATE, severity="warning", message=message)


def _read_known(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise UsageError(f"no folder {folder} of known solutions: check --known-solutions")
    files = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    if not files:
        raise UsageError(f"no program in {folder}: known solutions are files {', '.join(_SUFFIXES)}")
    found: dict[str, Path] = {}
    for path in files:
        for value in take_fingerprint(path.read_text(encoding="utf-8-sig", errors="replace")).values:
            found.setdefault(value, path)
    return found
