"""Finds the problems of a stored run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.domain import Problem, RunManifest, StoreError, Subject
from harness.pipeline.data_folders import find_suite_folder
from harness.problems.discovery import find_problem, list_files, read_problem
from harness.store.runs import list_runs, locate_reference, read_manifest


def find_run_problem(run_dir: Path, manifest: RunManifest, name: str, problems_dir: Path | None) -> Problem:
    """Raises UsageError, or StoreError for a changed file."""
    file = manifest.find_file(name)
    if file is None:
        return _take_dtype(find_problem(name, find_suite_folder(manifest.suite, problems_dir)), manifest)
    path = locate_reference(run_dir, name)
    problem = read_problem(path, manifest.suite)
    if problem.digest != file.digest:
        raise StoreError(
            f"{path} has digest {problem.digest}, expected {file.digest}: it was changed after the run was made. "
            "Restore it, or generate another run"
        )
    return _take_dtype(replace(problem, requires_kernel=file.requires_kernel), manifest)


def _take_dtype(problem: Problem, manifest: RunManifest) -> Problem:
    return problem.in_precision(manifest.dtype) if manifest.dtype else problem


def find_evaluated_problem(subject: Subject, generated_dir: Path, problems_dir: Path | None) -> Problem:
    if subject.run in list_runs(generated_dir):
        run_dir = generated_dir / subject.run
        manifest = read_manifest(run_dir)
        if manifest.find_file(subject.problem):
            return find_run_problem(run_dir, manifest, subject.problem, problems_dir)
    return find_problem(subject.problem, find_suite_folder(subject.suite, problems_dir))


def list_run_problems(manifest: RunManifest, problems_dir: Path | None) -> tuple[str, ...]:
    files = [file.name for file in manifest.files]
    if set(manifest.problems) <= set(files):
        return tuple(files)
    suite = list_files(find_suite_folder(manifest.suite, problems_dir))
    return (*files, *(path.stem for path in suite if path.stem not in files))
