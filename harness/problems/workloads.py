"""Adds the workloads that a problem needs for an evaluation."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from harness.domain import Language, Problem, ProblemError, ReferenceStopped, Workload, WorkloadName
from harness.languages import LANGUAGES
from harness.problems.discovery import parse_problem
from harness.problems.watched_process import run_apart


@lru_cache(maxsize=1024)  # an evaluation service sees ever more problems
def provide_workload(problem: Problem, workload: WorkloadName, language: Language) -> Problem | None:
    """Return None if the problem has no such workload. Execute the problem file to find reduced sizes."""
    if workload != "reduced":
        return problem if problem.workload(workload) is not None else None
    try:
        return run_apart(_fit, problem, language)
    except ReferenceStopped:  # again in the evaluation, which records it
        return replace(problem, workloads=(*problem.workloads, Workload(name=workload)))


def _fit(problem: Problem, language: Language) -> Problem | None:
    from harness.problems.shrink import fit_problem

    return fit_problem(problem, LANGUAGES[language].emulation_cost)


def complete_problem(problem: Problem, workload: WorkloadName, language: Language) -> Problem:
    """Add cases of `get_cases` and reduced sizes to a problem parsed without execution. Raises ProblemError."""
    cases = parse_problem(problem.source, Path(f"{problem.name}.py"), problem.suite).cases
    complete = replace(problem, cases=cases)
    if problem.precision:
        complete = complete.in_precision(problem.precision)
    provided = provide_workload(complete, workload, language)
    if provided is None:
        raise ProblemError(describe_lacking_workload(problem.name, None))
    return provided


def describe_lacking_workload(problem: str, asked: WorkloadName | None) -> str:
    if asked:
        reduced = ", or leave out the option for reduced sizes" if asked == "small" else ""
        return f"{problem} has no {asked} workload: write {asked.upper()} = {{...}} into its file{reduced}"
    return (
        f"{problem} has no reduced workload: its sizes cannot be found; name them at the top of its file "
        "(rows = 256), or write SMALL = {...} with smaller ones, or choose --workload full"
    )
