"""Asks a model turn after turn for `harness run --turns` and `harness improve`. Requests, builds and evaluations of
different samples overlap; each turn is stored before its evaluation starts, so an interrupted search resumes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.prices import Price, find_price
from harness.copies.duplicates import is_reference_copy, normalise
from harness.domain import (
    EMULATED,
    FROM_FILE,
    Candidate,
    Completion,
    Evaluation,
    Language,
    Problem,
    Prompt,
    ProviderError,
    Rival,
    Sample,
    SampleKey,
    UsageError,
)
from harness.generate.extraction.extractor import extract_candidate
from harness.generate.options import GenerateOptions
from harness.generate.prompting import render_feedback
from harness.generate.providers.base import CompletionRequest, Provider
from harness.generate.providers.retries import RunRefused
from harness.generate.sampler import Plan, describe_provenance
from harness.pipeline.data_folders import find_folder
from harness.pipeline.evaluate import check_plan, make_sample_task, open_provenance
from harness.pipeline.generate import open_run, prepare_run, read_clock
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.run_problems import find_run_problem
from harness.pipeline.screening import open_screening
from harness.pipeline.search_report import SampleSearch, SearchReport
from harness.pipeline.single_evaluations import SingleEvaluations
from harness.report.terminal.search_progress import OTHER_PROCESS, SearchProgress, show_search
from harness.search.conversation import count_tokens, make_prompt
from harness.search.feedback import Feedback
from harness.search.history import History, Turn
from harness.search.options import SearchOptions
from harness.search.strategies import find_strategy
from harness.search.strategy import Ask, Stop, Strategy, decide
from harness.store.completions import read_prompt
from harness.store.reservations import Reservations
from harness.store.runs import (
    has_sample,
    load_sample,
    locate_sample,
    read_manifest,
    require_unedited,
    write_sample,
    write_search,
)

if TYPE_CHECKING:
    from harness.executors.executor import ExecutorStatus

MEASUREMENTS_OF_BEST = 2  # the second one on fresh seeds, after the choice


def choose_strategy(search: SearchOptions, language: Language, options: EvaluateOptions) -> Strategy:
    """Raises UsageError, also where the strategy needs timing and there is none."""
    from harness.languages.devices import find_devices

    names = find_devices(options.device, language)
    is_timed = options.fidelity != "correctness" and bool(names) and names[0] != EMULATED
    return find_strategy(search.strategy, is_timed=is_timed, width=search.width)


def _profile_in(strategy: Strategy, options: EvaluateOptions) -> EvaluateOptions:
    """Unless the user chose. Stored verdicts without counters still hold."""
    return replace(options, profile=strategy.needs_timing) if options.profile is None else options


def improve(generate: GenerateOptions, options: EvaluateOptions, search: SearchOptions) -> SearchReport:
    """Raises HarnessError and KeyboardInterrupt; stored turns and verdicts stay."""
    from harness.executors.local import LocalExecutor
    from harness.report.export.csv_files import write_csvs
    from harness.store.results import ResultStore

    strategy = choose_strategy(search, generate.language, options)
    generate = replace(generate, turns=search.turns, strategy=strategy.name, results_dir=options.results_dir)
    plan, open_provider = prepare_run(generate, lambda plan: check_plan(plan, options))
    price = find_price(search.prices, plan.manifest.model)
    if search.budget_usd is not None and price is None:
        raise UsageError(f"--budget-usd needs the price of the model: --price '{plan.manifest.model}=IN/OUT'")
    if search.start is not None:
        plan = replace(plan, prompts=tuple(replace(one, name=f"{one.name}{FROM_FILE}") for one in plan.prompts))
    with (
        open_run(plan),
        ResultStore.open(options.results_dir) as store,
        LocalExecutor(_profile_in(strategy, options)) as executor,
        Reservations(options.results_dir) as reservations,
        open_screening(search.screen, options, generate.language) as screening,
    ):
        provenance = open_provenance(store, options)
        session = _Session(
            plan=plan,
            problems=_find_problems(plan, options),
            prompt=generate.prompt,
            prompts_dir=find_folder("prompts", generate.prompts_dir, option="--prompts-dir"),
            concurrency=generate.concurrency,
            search=search,
            strategy=strategy,
            price=price,
            evaluations=SingleEvaluations(options, executor, provenance, reservations, screening),
            report=SearchReport(run=plan.manifest.run, strategy=strategy.name, turns=search.turns),
            read_status=executor.status,
        )
        try:
            return asyncio.run(_search_all(session, open_provider))
        finally:
            write_csvs(store, options.results_dir, generated_dir=options.generated_dir)


def _find_problems(plan: Plan, options: EvaluateOptions) -> dict[str, Problem]:
    """As the run has them: a changed file is an error."""
    manifest = read_manifest(plan.run_dir)
    names = [prompt.problem for prompt in plan.prompts]
    return {name: find_run_problem(plan.run_dir, manifest, name, options.problems_dir) for name in names}


async def _search_all(session: _Session, open_provider: Callable[[], Provider]) -> SearchReport:
    keys, report, provider = session.plan.list_keys(), session.report, open_provider()
    progress = SearchProgress(keys, price=session.price, read_status=session.read_status)
    asking = asyncio.Semaphore(session.concurrency)
    try:
        with show_search(progress, head=f"run {report.run}: {report.strategy}, up to {report.turns} turns a sample"):
            async with asyncio.TaskGroup() as group:
                chains = [_Chain(session, key, provider, asking, progress) for key in keys]
                tasks = [group.create_task(chain.follow()) for chain in chains]
    except BaseExceptionGroup as errors:
        # The other exceptions are cancellations, or the same failure in a concurrent task.
        raise errors.exceptions[0] from None
    finally:
        await provider.close()
    report.samples = [task.result() for task in tasks]
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    plan: Plan
    problems: dict[str, Problem]
    prompt: str
    prompts_dir: Path
    concurrency: int
    search: SearchOptions
    strategy: Strategy
    evaluations: SingleEvaluations
    report: SearchReport
    price: Price | None = None
    read_status: Callable[[], ExecutorStatus | None] = lambda: None
    began_s: float = field(default_factory=time.monotonic)


class _Chain:
    """The turns of one sample."""

    def __init__(
        self,
        session: _Session,
        key: SampleKey,
        provider: Provider,
        asking: asyncio.Semaphore,
        progress: SearchProgress,
    ) -> None:
        self._session, self._provider, self._asking, self._progress = session, provider, asking, progress
        self._key = key
        self._run_dir = session.plan.run_dir
        self._problem = session.problems[key.problem]
        self._first = next(prompt for prompt in session.plan.prompts if prompt.problem == key.problem)
        self._history = History()
        self._seen: dict[str, int] = {}  # turns by normalised program

    async def follow(self) -> SampleSearch:
        """Stored turns first, then new ones until the strategy or a limit stops."""
        language = self._session.plan.manifest.language
        obstacle = self._session.evaluations.find_obstacle(self._problem, language)
        if obstacle:
            self._progress.end(self._key)
            return SampleSearch(key=self._key, history=self._history, stopped=obstacle)
        if self._session.search.start is not None:
            start = Ask(parent=None)
            self._write(self._key, self._first, Completion(text=None), self._session.search.start, start)
        try:
            stopped, is_final = await self._take_turns()
            while await self._measure_best_again():
                stopped, is_final = await self._take_turns()
        except RunRefused:
            raise
        except ProviderError as error:
            return SampleSearch(key=self._key, history=self._history, stopped=str(error), failure=True)
        finally:
            self._progress.end(self._key)
        if is_final:
            self._record_end(stopped)
        return SampleSearch(key=self._key, history=self._history, stopped=stopped)

    async def _take_turns(self) -> tuple[str, bool]:
        """(the reason to stop, whether the same command has nothing left to do)."""
        search = self._session.search
        for number in count(len(self._history.turns)):
            key = replace(self._key, turn=number)
            if not has_sample(self._run_dir, key):
                decision = decide(self._session.strategy, self._history, search.limits)
                if isinstance(decision, Stop):
                    return decision.reason, True
                if search.deadline_s is not None and time.monotonic() - self._session.began_s >= search.deadline_s:
                    return f"the deadline of {search.deadline_s:g} s has passed", False
                if not self._provider.can_answer(key):
                    return f"turn {number} is not in the recording", True
                await self._ask(key, decision)
            await self._evaluate(load_sample(self._run_dir, key))
        raise AssertionError

    async def _ask(self, key: SampleKey, asked: Ask) -> None:
        """Stores the answer without a wait in between, so that cancellation does not lose it."""
        manifest, tokens = self._session.plan.manifest, self._session.search.context_tokens
        prompt = make_prompt(self._first, self._history, asked, self._render, context_tokens=tokens)
        request = CompletionRequest(
            key=key, prompt=prompt, model=manifest.model, temperature=manifest.temperature,
            max_tokens=manifest.max_tokens,
        )  # fmt: skip
        with self._progress.at(self._key, "waiting to ask"):
            async with self._asking:
                with self._progress.at(self._key, "asking"):
                    completion = await self._provider.complete(request)
        self._write(key, prompt, completion, extract_candidate(completion, prompt.language), asked)
        self._session.report.asked += 1

    def _render(self, feedback: Feedback) -> str:
        manifest = self._session.plan.manifest
        return render_feedback(
            feedback,
            self._problem,
            prompt=self._session.prompt,
            language=manifest.language,
            prompts_dir=self._session.prompts_dir,
        )

    def _write(
        self, key: SampleKey, prompt: Prompt, completion: Completion, candidate: Candidate | None, asked: Ask
    ) -> None:
        provenance = describe_provenance(self._session.plan.manifest, self._problem.digest, read_clock())
        provenance |= {"parent": asked.parent, "strategy": self._session.strategy.name}
        if asked.partner is not None:
            provenance["partner"] = asked.partner
        write_sample(
            self._run_dir, key=key, prompt=prompt, completion=completion, candidate=candidate, provenance=provenance
        )

    async def _evaluate(self, sample: Sample) -> None:
        require_unedited(self._run_dir, sample)
        source = sample.candidate.source if sample.candidate else None
        digest = "" if source is None else normalise(source)
        same_as = self._seen.get(digest)
        asked, written = _count_tokens(self._run_dir, sample)
        self._progress.add_answer(sample.completion, (asked, written))
        price, number, tokens = self._session.price, sample.key.turn, asked + written
        usd = price.compute_usd(asked, written) if price else 0.0
        if same_as is not None:
            original = self._history.find(same_as)
            turn = replace(original, number=number, parent=sample.parent, same_as=same_as, tokens=tokens, usd=usd)
        else:
            evaluation, measurements = await self._evaluate_sample(sample)
            self._session.report.evaluated += 1
            is_copy = source is not None and is_reference_copy(source, self._problem.source)
            turn = Turn(
                number=number, evaluation=evaluation, source=source, parent=sample.parent, is_copy=is_copy,
                measurements=measurements, tokens=tokens, usd=usd,
            )  # fmt: skip
        self._record_turns((*self._history.turns, turn))
        if digest:
            self._seen.setdefault(digest, number)

    async def _measure_best_again(self) -> bool:
        """The best of several times was chosen by its time, so its number is too good: a fresh measurement counts, also
        for the next decision. False: nothing was measured."""
        best = self._history.best
        if best is None or best.evaluation.timing is None or best.measurements >= MEASUREMENTS_OF_BEST:
            return False
        if sum(one.result.is_correct and one.same_as is None for one in self._history.turns) < 2:
            return False
        sample = load_sample(self._run_dir, replace(self._key, turn=best.number))
        evaluation, measurements = await self._evaluate_sample(sample, again=True)
        measurements = max(measurements, MEASUREMENTS_OF_BEST)
        self._record_turns(
            replace(one, evaluation=evaluation, measurements=measurements)
            if best.number in (one.number, one.same_as)
            else one
            for one in self._history.turns
        )
        return True

    def _record_turns(self, turns: Iterable[Turn]) -> None:
        self._history = History(turns=tuple(turns))
        self._progress.update(self._key, self._history)

    async def _evaluate_sample(self, sample: Sample, *, again: bool = False) -> tuple[Evaluation, int]:
        task = make_sample_task(sample, self._problem, self._session.evaluations.options)
        task = replace(task, rival=self._find_rival(sample.key.turn))
        with self._progress.at(self._key, "evaluating"):
            evaluation, measurements = await self._session.evaluations.evaluate(
                task, again=again, show_wait=lambda: self._progress.at(self._key, OTHER_PROCESS)
            )
        self._progress.add_verdict(evaluation)
        return evaluation, measurements

    def _find_rival(self, turn: int) -> Rival | None:
        """The best program before this turn, if its time is confirmed."""
        best = History(turns=tuple(one for one in self._history.turns if one.number < turn)).best
        if best is None or best.evaluation.timing is None or best.result.speedup is None:
            return None
        candidate = load_sample(self._run_dir, replace(self._key, turn=best.number)).candidate
        assert candidate is not None  # its program was timed
        lows = {one.name: one.timing.speedup_low for one in best.evaluation.cases if one.timing is not None}
        return Rival(
            turn=best.number, candidate=candidate, speedup_lows=lows or {"": best.evaluation.timing.speedup_low}
        )

    def _record_end(self, stopped: str) -> None:
        if not self._history.turns:
            return
        best, search = self._history.best, self._session.search
        record = {
            "strategy": self._session.strategy.name,
            "turns": search.turns,
            "stopped": stopped,
            "best": None if best is None else best.number,
            "tokens": self._history.tokens,
            "usd": self._history.usd if self._session.price else None,
        }
        write_search(self._run_dir, self._key, record)


def _count_tokens(run_dir: Path, sample: Sample) -> tuple[int, int]:
    """Of the prompt and of the answer, as the endpoint counted them, else estimated."""
    completion = sample.completion
    if completion is None or (completion.text is None and completion.usage.completion_tokens is None):
        return 0, 0
    asked, written = completion.usage.prompt_tokens, completion.usage.completion_tokens
    if asked is None:
        asked = count_tokens(read_prompt(locate_sample(run_dir, sample.key)) or "")
    if written is None:
        written = count_tokens((completion.text or "") + (completion.reasoning or ""))
    return asked, written
