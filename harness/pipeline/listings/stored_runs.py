"""Lists and removes runs, in `generated/` and in the results."""

from __future__ import annotations

import shutil
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from harness.domain import FILE_RUN, Outcome, RunManifest, StoreError, UsageError
from harness.domain.errors import suggest
from harness.domain.files import raising
from harness.report.export.table_files import write_csvs
from harness.store.columns import ResultRow
from harness.store.results import ResultStore
from harness.store.run_notes import RunNotes, read_notes
from harness.store.runs import hold_run, list_keys, list_runs, locate_run, read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """`answers` counts turns, too. `created_at` of a run without files is the start of its first evaluation."""

    name: str
    created_at: str
    models: tuple[str, ...]
    suite: str
    language: str
    problems: int
    answers: int
    evaluations: int
    correct: int
    note: str = ""
    tags: tuple[str, ...] = ()
    error: str = ""


def list_stored_runs(generated_dir: Path, results_dir: Path) -> list[StoredRun]:
    """Return runs by date. A damaged manifest is an `error`. Raises StoreError."""
    rows = defaultdict(list)
    with ResultStore.open(results_dir, read_only=True) as store:
        for row in store.rows():
            rows[row.run].append(row)
    names = {*list_runs(generated_dir), *rows}
    runs = [_describe_run(name, generated_dir, rows.get(name, [])) for name in names]
    return sorted(runs, key=lambda run: (run.created_at, run.name))


def find_stored_run(name: str, generated_dir: Path, results_dir: Path) -> StoredRun:
    """Raises UsageError with the nearest name."""
    runs = {run.name: run for run in list_stored_runs(generated_dir, results_dir)}
    if name not in runs:
        raise UsageError(f"no run {name!r} in {generated_dir} or {results_dir}; {suggest(name, runs)}")
    return runs[name]


def remove_stored_run(run: StoredRun, generated_dir: Path, results_dir: Path) -> None:
    """Remove evaluations, then files, so that an interrupted removal can be repeated. Raises HarnessError, for example
    while the run is generated.
    """
    run_dir = locate_run(generated_dir, run.name) if run.name in list_runs(generated_dir) else None
    with nullcontext() if run_dir is None else hold_run(run_dir):
        if run.evaluations:
            with ResultStore.open(results_dir) as store:
                store.remove_run(run.name)
                write_csvs(store, results_dir, generated_dir=generated_dir)
        if run_dir is not None:
            with raising(StoreError, f"remove {run_dir}"):
                shutil.rmtree(run_dir)


def _describe_run(name: str, generated_dir: Path, rows: list[ResultRow]) -> StoredRun:
    manifest, notes, error = _read_files(name, generated_dir)
    started = [row.started_at for row in rows]
    return StoredRun(
        name=name,
        created_at=manifest.created_at if manifest else min(started, default=""),
        models=(manifest.model,) if manifest else tuple(sorted({row.model for row in rows})),
        suite=manifest.suite if manifest else ", ".join(sorted({row.suite for row in rows})),
        language=manifest.language if manifest else ", ".join(sorted({row.language for row in rows})),
        problems=len(manifest.problems) if manifest else len({(row.suite, row.problem) for row in rows}),
        answers=0 if name == FILE_RUN else len(list_keys(locate_run(generated_dir, name))),
        evaluations=len(rows),
        correct=sum(row.outcome == Outcome.CORRECT for row in rows),
        note=notes.note,
        tags=notes.tags,
        error=error,
    )


def _read_files(name: str, generated_dir: Path) -> tuple[RunManifest | None, RunNotes, str]:
    """Return the manifest, the notes, and why one of them is missing."""
    manifest, notes = None, RunNotes()
    if name not in list_runs(generated_dir):
        return manifest, notes, ""
    try:
        manifest = read_manifest(locate_run(generated_dir, name))
        notes = read_notes(locate_run(generated_dir, name))
    except StoreError as error:
        return manifest, notes, str(error)
    return manifest, notes, ""
