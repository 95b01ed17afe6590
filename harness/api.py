"""The small API for notebooks and scripts: `import harness`, then these functions. Importing it loads nothing heavy.

    harness.load_results()                              evaluations as a DataFrame
    harness.load_claims("run")                          what others say of an imported run, as a DataFrame
    harness.evaluate(source, "softmax")                 the verdict on one candidate
    harness.render_report("report.html")                everything as one page

They do what the commands of the same kind do, and raise what those print: `harness.domain.HarnessError`.
"""

from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.domain import FILE_RUN, NO_PROMPT, Baseline, Candidate, Evaluation, Language, Subject, WorkloadName
from harness.evaluation.timing.threads import WAIT_POLICY, wait_passively

if TYPE_CHECKING:
    import pandas as pd

    from harness.domain import Problem
    from harness.executors.local import LocalSettings, Task

StrPath = str | os.PathLike[str]

_TORCH_CAME_FIRST = (
    f"torch was imported before harness.evaluate and {WAIT_POLICY} is not set: torch's threads in this process spin "
    "after each operation and disturb the timing. Set OMP_WAIT_POLICY=PASSIVE in the environment before Python starts"
)

__all__ = ["evaluate", "load_claims", "load_results", "render_report"]


def load_results(results_dir: StrPath = "results", *, history: bool = False) -> pd.DataFrame:
    """One row per evaluation, with the columns of `evaluations.csv`: the latest of each candidate, or all with
    `history`. An empty folder gives no rows. Claims of others are never among them."""
    import pandas as pd

    from harness.store.results import ResultRow, ResultStore

    with ResultStore.open(Path(results_dir), read_only=True) as store:
        return pd.DataFrame(list(store.rows(history=history)), columns=list(ResultRow._fields))


def load_claims(run: str, generated_dir: StrPath = "generated") -> pd.DataFrame:
    """One row per kernel of an imported run with what others say of it: problem's number, sample, compiled, correct,
    claimed_ms, claimed_speedup, hardware. Nothing of it was measured here."""
    import pandas as pd

    from harness.kernelbench.claims import read_claims
    from harness.kernelbench.format import list_claims
    from harness.store.runs import find_run

    stored = read_claims(find_run(Path(generated_dir), run))
    claims = list_claims(stored.results, stored.baseline, stored.level) if stored else ()
    columns = ("number", "sample", "compiled", "correct", "claimed_ms", "claimed_speedup", "hardware")
    rows = [
        (one.number, one.sample, one.compiled, one.correct, one.runtime_ms, one.speedup, one.hardware) for one in claims
    ]
    return pd.DataFrame(rows, columns=list(columns))


def evaluate(
    candidate: StrPath,
    problem: StrPath,
    *,
    suite: str = "core",
    language: Language | None = None,
    workload: WorkloadName = "full",
    baseline: Baseline = "eager",
    time: bool = True,
    settings: LocalSettings | None = None,
    problems_dir: StrPath | None = None,
    store: bool = False,
    results_dir: StrPath = "results",
) -> Evaluation:
    """Builds, checks and times one candidate on this machine, and returns the verdict; with `store` it is also
    recorded in `results_dir`, as `harness evaluate --candidate` does, where `load_results` and `render_report` find it.

    `candidate` is the program's text, or the path of its file; `problem` the name of one of `suite`, or the path of a
    reference file. `language` is seen from the source where it is not given. `settings` chooses device, cache (else
    HARNESS_CACHE_DIR's) and limits; `time` False stops after correctness. A candidate that fails is a verdict, not an
    exception.
    """
    from dataclasses import replace

    from harness.pipeline.data_folders import find_suite_folder
    from harness.pipeline.evaluate import guess_language
    from harness.problems.discovery import find_problem

    if time and not wait_passively():
        warnings.warn(_TORCH_CAME_FIRST, stacklevel=2)
    source = read_source(candidate)
    found = find_problem(
        os.fspath(problem), find_suite_folder(suite, None if problems_dir is None else Path(problems_dir))
    )
    task = _make_task(source, found, language or guess_language(source), workload, baseline)

    from harness.executors.local import LocalExecutor, LocalSettings

    cache = os.environ.get("HARNESS_CACHE_DIR")
    chosen = settings or LocalSettings(cache=Path(cache) if cache else None)
    chosen = replace(chosen, judge=replace(chosen.judge, measure_time=time and chosen.judge.measure_time))
    verdicts: list[Evaluation] = []
    with LocalExecutor(chosen) as executor:
        executor.run([task], lambda stage, task, verdict: None if verdict is None else verdicts.append(verdict))
    if store:
        _record(verdicts[-1], source, Path(results_dir))
    return verdicts[-1]


def render_report(
    output: StrPath = "report.html",
    *,
    results_dir: StrPath = "results",
    generated_dir: StrPath = "generated",
    runs: tuple[str, ...] = (),
    title: str = "",
) -> Path:
    """Writes the report of all evaluations, or of some runs, as one page that opens offline; returns its path."""
    from harness.report.html.page import render_report as render
    from harness.store.results import ResultStore

    path = Path(output)
    with ResultStore.open(Path(results_dir), read_only=True) as store:
        render(store, path, now=datetime.now(UTC), runs=runs, generated_dir=Path(generated_dir), title=title)
    return path


def read_source(candidate: StrPath) -> str:
    """The text itself, or the text of the file that it names: a program has more than one line, a path has not."""
    from harness.domain import UsageError

    if isinstance(candidate, str) and "\n" in candidate:
        return candidate
    try:
        return Path(candidate).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the candidate {os.fspath(candidate)!r}: {error}") from error


def _record(verdict: Evaluation, source: str, results_dir: Path) -> None:
    from harness.report.export.csv_files import write_csvs
    from harness.store.results import ResultStore

    with ResultStore.open(results_dir) as store:
        store.record(verdict, source)
        write_csvs(store, results_dir)


def _make_task(source: str, problem: Problem, language: Language, workload: WorkloadName, baseline: Baseline) -> Task:
    from harness.executors.local import NO_DEVICE, Task

    candidate = Candidate(source=source, language=language, rule="file")
    subject = Subject(
        run=FILE_RUN,
        sample=0,
        turn=0,
        model="api",
        prompt=NO_PROMPT,
        suite=problem.suite,
        problem=problem.name,
        problem_digest=problem.digest,
        candidate_digest=candidate.digest,
        language=language,
        device=NO_DEVICE,
        workload=workload,
        baseline=baseline,
    )
    return Task(subject=subject, problem=problem, candidate=candidate)
