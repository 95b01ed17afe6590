"""The API for notebooks and scripts. Importing `harness` loads no heavy package.

    harness.load_results()                              evaluations as a DataFrame
    harness.load_claims("run")                          reported results of an imported run, as a DataFrame
    harness.evaluate(source, "softmax")                 evaluates one candidate
    harness.Evaluator()                                 evaluates many, in persistent processes
    harness.improve("softmax", model="gpt-5")           asks a model turn after turn
    harness.render_report("report.html")                writes the HTML report
    harness.apply(model, "captured/net", calls)         puts verified kernels into a captured model

All raise `harness.domain.HarnessError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

from harness.builder.cache import read_cache_size
from harness.domain import FILE_RUN, Evaluation, Fidelity, Language, Precision, UsageError, WorkloadName
from harness.domain.errors import explain_unknown
from harness.domain.files import explain_failure, read_python
from harness.languages import GPU_LANGUAGE, LANGUAGES, detect_language
from harness.search.history import History
from harness.search.strategy import SearchOptions, Strategy
from harness.store.columns import COLUMNS
from harness.store.runs import find_run

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from harness.capture.apply import ApplyReport
    from harness.executors.executor import Task
    from harness.executors.settings import LocalSettings
    from harness.pipeline.options import EvaluateOptions

StrPath = str | os.PathLike[str]
Result = TypeVar("Result")

__all__ = ["Evaluator", "apply", "evaluate", "improve", "load_claims", "load_results", "render_report"]


def load_results(results_dir: StrPath = "results", *, history: bool = False) -> pd.DataFrame:
    """Columns are those of `evaluations.csv`. Without `history`, return only the latest evaluation per candidate."""
    import pandas as pd

    from harness.store.results import ResultStore

    with ResultStore.open(Path(results_dir), read_only=True) as store:
        return pd.DataFrame(list(store.rows(history=history)), columns=list(COLUMNS))


def load_claims(run: str, generated_dir: StrPath = "generated") -> pd.DataFrame:
    """Return results reported with a run: number, sample, compiled, correct, claimed_ms, claimed_speedup, hardware."""
    import pandas as pd

    from harness.formats.kernelbench.format import list_claims, read_claims

    stored = read_claims(find_run(Path(generated_dir), run))
    claims = list_claims(stored.results, stored.baseline, stored.level) if stored else ()
    columns = ("number", "sample", "compiled", "correct", "claimed_ms", "claimed_speedup", "hardware")
    rows = [
        (one.number, one.sample, one.compiled, one.correct, one.runtime_ms, one.speedup, one.hardware) for one in claims
    ]
    return pd.DataFrame(rows, columns=list(columns))


class Evaluator:
    """Evaluates candidates in persistent processes on this machine's devices. Thread-safe.

    `device` is "auto", "cpu", "emulated", "cuda" (all GPUs) or "cuda:0,1". `fidelity` is "correctness", "quick" or
    "full", as in `harness evaluate --fidelity`; `time` False selects "correctness". `settings` are limits and cache
    (default: HARNESS_CACHE_DIR).
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        time: bool = True,
        fidelity: Fidelity | None = None,
        settings: LocalSettings | None = None,
        suite: str = "core",
        problems_dir: StrPath | None = None,
    ) -> None:
        from harness.executors.local import LocalExecutor
        from harness.executors.settings import LocalSettings

        if fidelity is not None:
            _require_known("fidelity", fidelity, get_args(Fidelity))
        cache = os.environ.get("HARNESS_CACHE_DIR")
        chosen = settings or LocalSettings(cache=Path(cache) if cache else None)
        self._executor = LocalExecutor(
            replace(
                chosen, device=device or chosen.device, fidelity=fidelity or chosen.fidelity, time=time and chosen.time
            )
        )
        self._suite = suite
        self._problems_dir = None if problems_dir is None else Path(problems_dir)

    def evaluate(
        self,
        candidate: StrPath,
        problem: StrPath,
        *,
        language: Language | None = None,
        workload: WorkloadName = "full",
        baseline: str = "eager",
        dtype: Precision | None = None,
    ) -> Evaluation:
        """`candidate` is source or a path; `problem` is a name, SUITE/NAME or a path; `language` None is detected;
        `dtype` None keeps the problem's; `baseline` is as in `--baseline`. A failing candidate is an outcome.
        """
        future = self.submit(candidate, problem, language=language, workload=workload, baseline=baseline, dtype=dtype)
        return future.result()

    def submit(
        self,
        candidate: StrPath,
        problem: StrPath,
        *,
        language: Language | None = None,
        workload: WorkloadName = "full",
        baseline: str = "eager",
        dtype: Precision | None = None,
    ) -> Future[Evaluation]:
        options = _make_options(workload=workload, baseline=baseline, dtype=dtype)
        return self._executor.submit(self._make_task(candidate, problem, language, options))

    def _make_task(
        self, candidate: StrPath, problem: StrPath, language: Language | None, options: EvaluateOptions
    ) -> Task:
        from harness.executors.executor import Origin
        from harness.pipeline.data_folders import find_named_problem
        from harness.pipeline.evaluate import make_candidate_task, read_submission

        if language is not None:
            _require_known("language", language, LANGUAGES)
        source = read_source(candidate)
        if not isinstance(problem, str | os.PathLike):
            raise UsageError(f"no problem {problem!r}: give its name, SUITE/NAME, or the path of a file")
        found = find_named_problem(os.fspath(problem), self._suite, self._problems_dir)
        chosen = language or detect_language(source)
        program, notes = read_submission(source, chosen)
        origin = Origin(run=FILE_RUN, model="api")
        return make_candidate_task(found, program, origin, options, language=chosen, notes=notes)

    def close(self) -> None:
        """Running evaluations raise."""
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def evaluate(
    candidate: StrPath,
    problem: StrPath,
    *,
    suite: str = "core",
    language: Language | None = None,
    workload: WorkloadName = "full",
    baseline: str = "eager",
    dtype: Precision | None = None,
    time: bool = True,
    fidelity: Fidelity | None = None,
    settings: LocalSettings | None = None,
    problems_dir: StrPath | None = None,
    store: bool = False,
    results_dir: StrPath = "results",
) -> Evaluation:
    """Make one evaluation; `Evaluator` is faster for many. `store` records it in `results_dir`."""
    with Evaluator(
        time=time, fidelity=fidelity, settings=settings, suite=suite, problems_dir=problems_dir
    ) as evaluator:
        options = _make_options(workload=workload, baseline=baseline, dtype=dtype, results_dir=Path(results_dir))
        task = evaluator._make_task(candidate, problem, language, options)
        verdict = evaluator._executor.submit(task).result()
    if store:
        from harness.pipeline.evaluations import open_results

        with open_results(options) as results:
            results.provenance.record(verdict, task)
    return verdict


def improve(
    problem: StrPath,
    program: StrPath | None = None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    recording: StrPath | None = None,
    strategy: str | Strategy = "auto",
    turns: int = 4,
    samples: int = 1,
    language: Language = GPU_LANGUAGE,
    suite: str = "core",
    device: str = "auto",
    workload: WorkloadName | None = None,
    time: bool = True,
    results_dir: StrPath = "results",
    generated_dir: StrPath = "generated",
    problems_dir: StrPath | None = None,
) -> list[History]:
    """Return the turns of each sample, like `harness improve`. `program` is the path of a program to start from (None:
    the problem alone). `recording` is replayed instead. `strategy` is a name or an object. The same call resumes.
    """
    from harness.generate.options import GenerateOptions
    from harness.pipeline.improve import improve as search
    from harness.pipeline.improve import improve_file
    from harness.pipeline.options import EvaluateOptions

    _require_known("language", language, LANGUAGES)
    stored, runs = Path(results_dir), Path(generated_dir)
    references = None if problems_dir is None else Path(problems_dir)
    asked = GenerateOptions(
        suite=suite, problems=(os.fspath(problem),), model=model, samples=samples, language=language,
        base_url=base_url or os.environ.get("OPENAI_BASE_URL"), results_dir=stored, generated_dir=runs,
        problems_dir=references, provider="openai" if recording is None else "recorded",
        recording=None if recording is None else Path(recording),
    )  # fmt: skip
    options = EvaluateOptions(
        device=device, workload=workload, time=time, results_dir=stored, generated_dir=runs, problems_dir=references,
        max_cache_bytes=read_cache_size(os.environ.get("HARNESS_CACHE_SIZE")),
    )  # fmt: skip
    how = SearchOptions(turns=turns, strategy=strategy)
    if program is None:
        report = _run_beside_loop(lambda: search(asked, options, how))
    else:
        report, _ = _run_beside_loop(lambda: improve_file(Path(program), asked, options, how))
    return [one.history for one in report.samples]


def _run_beside_loop(work: Callable[[], Result]) -> Result:
    """Call `work`, which runs an event loop: in another thread if this one runs a loop, as a notebook's does."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def apply(
    model: nn.Module,
    folder: StrPath,
    calls: Sequence[Any],
    *,
    results_dir: StrPath = "results",
    modes: tuple[str, ...] = ("eager",),
    gradients: bool = False,
) -> ApplyReport:
    """Put kernels that are right in the model and make it faster into it, in place. `folder` is that of `harness
    capture`, where FOLDER/applied is written. `calls` are arguments of calls, to compare and measure: tuples, dicts by
    name, or single ones; with `gradients`, both passes. `modes` are eager, compile and graph.
    """
    from harness.capture.apply import apply_kernels, write_applied

    pairs: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), one) if type(one) is dict else (one if type(one) is tuple else (one,), {}) for one in calls
    ]
    report = apply_kernels(model, Path(folder), pairs, results_dir=Path(results_dir), modes=modes, gradients=gradients)
    write_applied(Path(folder), report)
    return report


def render_report(
    output: StrPath = "report.html",
    *,
    results_dir: StrPath = "results",
    generated_dir: StrPath = "generated",
    runs: tuple[str, ...] = (),
    title: str = "",
) -> Path:
    """Write an offline HTML page of all or some runs."""
    from harness.report.html.page import ReportChoice
    from harness.report.html.page import render_report as render
    from harness.store.results import ResultStore

    path = Path(output)
    with ResultStore.open(Path(results_dir), read_only=True) as store:
        choice = ReportChoice(runs=runs, generated_dir=Path(generated_dir), title=title)
        render(store, path, choice, now=datetime.now(UTC))
    return path


def read_source(candidate: StrPath) -> str:
    """A string with several lines is source, otherwise a path."""
    if isinstance(candidate, str) and not candidate.strip():
        raise _make_unreadable(candidate, "it is empty")
    if not isinstance(candidate, str | os.PathLike):
        raise _make_unreadable(candidate, "it is neither text nor a path")
    if isinstance(candidate, str) and "\n" in candidate:
        return candidate
    try:
        return read_python(Path(candidate))
    except (OSError, ValueError) as error:
        raise _make_unreadable(os.fspath(candidate), explain_failure(error)) from error


def _make_unreadable(candidate: object, cause: object) -> UsageError:
    shown = repr(candidate[:200] if isinstance(candidate, str) else candidate)
    return UsageError(
        f"cannot read the candidate {shown[:250]} ({cause}): give the path of a file, or source of several lines that "
        "defines ModelNew"
    )


def _require_known(what: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise UsageError(explain_unknown(what, value, known))


def _make_options(
    *, workload: WorkloadName, baseline: str, dtype: Precision | None, results_dir: Path = Path("results")
) -> EvaluateOptions:
    from harness.pipeline.options import EvaluateOptions, read_baselines

    _require_known("workload", workload, get_args(WorkloadName))
    if dtype is not None:
        _require_known("dtype", dtype, get_args(Precision))
    return EvaluateOptions(workload=workload, baselines=read_baselines(baseline), dtype=dtype, results_dir=results_dir)
