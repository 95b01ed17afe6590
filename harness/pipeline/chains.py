"""Runs the turns of each sample: asks a model, stores its answer, evaluates it, and continues from the verdict.

Turns of different samples overlap. Each answer is stored before its evaluation starts, so an interrupted run
resumes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.leaderboard import LeaderboardRow
from harness.analysis.metrics import Price
from harness.copies import is_reference_copy, normalise
from harness.domain import Completion, Evaluation, Problem, ProviderError, Rival, Sample, SampleKey
from harness.generate.prompting import render_feedback
from harness.generate.providers.endpoint_errors import EndpointRefused, RunRefused
from harness.generate.sampler import Asker, Plan, SampleFailure
from harness.problems.workloads import describe_lacking_workload
from harness.report.terminal.search_progress import OTHER_PROCESS, SearchProgress
from harness.report.terminal.tables import format_speedup
from harness.report.verdict_text import PLAIN_TORCH, lacks_kernel
from harness.search.feedback import Feedback
from harness.search.history import History, Turn
from harness.search.strategy import ONE_TURN, Ask, SearchOptions, Stop, Strategy, count_tokens, decide, make_prompt
from harness.store.completions import read_prompt
from harness.store.runs import has_sample, load_sample, locate_sample, require_unedited, write_search

if TYPE_CHECKING:
    from harness.generate.sampler import SessionReport
    from harness.pipeline.evaluations import EvaluationReport, Evaluations


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSearch:
    """`stopped` is the reason to end. `failure` is the endpoint's; the same command continues."""

    key: SampleKey
    history: History
    stopped: str
    failure: bool = False


@dataclass(slots=True, kw_only=True)
class SearchReport:
    """`strategy` "" means one turn per sample. `ranking` has the sections of the run alone."""

    strategy: str
    asked: SessionReport
    evaluated: EvaluationReport
    samples: list[SampleSearch] = field(default_factory=list)
    ranking: Sequence[LeaderboardRow] = ()


def describe_search(report: SearchReport) -> Sequence[dict[str, object]]:
    return [
        {
            "run": one.key.run,
            "problem": one.key.problem,
            "sample": one.key.sample,
            "strategy": report.strategy,
            "turns": [_describe_turn(turn) for turn in one.history.turns],
            "best": one.history.best.number if one.history.best else None,
            "tokens": one.history.tokens,
            "stopped": one.stopped,
            "failed": one.failure,
        }
        for one in report.samples
    ]


def _describe_turn(turn: Turn) -> dict[str, object]:
    result, pairs = turn.result, turn.evaluation.comparison
    return {
        "turn": turn.number,
        "parent": turn.parent,
        "outcome": turn.outcome.value,
        "same_as": turn.same_as,
        "speedup": result.speedup,
        "speedup_low": result.speedup_low,
        "speedup_high": result.speedup_high,
        "rival": pairs.turn if pairs else None,
        "over_rival": pairs.speedup if pairs else None,
        "over_rival_low": pairs.speedup_low if pairs else None,
        "tokens": turn.tokens,
    }


def describe_turns(one: SampleSearch) -> str:
    path = " > ".join(_name_result(turn) for turn in one.history.turns) or "nothing asked"
    best = one.history.best
    chosen = "" if best is None or len(one.history.turns) == 1 else f"; best: turn {best.number}"
    return f"{one.key.problem}/{one.key.sample}: {path}{chosen} ({one.stopped})"


def explain_failures(report: SearchReport) -> Iterator[str]:
    for turn in (turn for one in report.samples for turn in one.history.turns):
        if turn.evaluation.message:
            yield f"turn {turn.number}: {turn.outcome.value}: {turn.evaluation.message.splitlines()[0]}"
        if turn.number == 0 and lacks_kernel(turn.evaluation):
            yield PLAIN_TORCH


def _name_result(turn: Turn) -> str:
    if turn.same_as is not None:
        return f"same as turn {turn.same_as}"
    if turn.is_copy:
        return "a copy of the reference"
    timing = turn.evaluation.timing
    if timing is None:
        return turn.outcome.value
    if turn.evaluation.speedup is not None:  # as it is ranked: 1 for a tie
        note = f" (a tie, measured {format_speedup(timing.speedup, timing.clock)})" if timing.verdict == "tie" else ""
        return f"{turn.outcome.value} {format_speedup(turn.evaluation.speedup, timing.clock)}{note}"
    return f"{turn.outcome.value}, {timing.verdict} time"


ShowSearch = Callable[[SearchProgress], AbstractContextManager[object]]
MEASUREMENTS_OF_BEST = 2  # the second one on fresh seeds, after the choice
ONCE = Strategy(name="", choose=lambda history: Stop(reason="one answer is asked for"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """With `evaluations` None, first answers are not evaluated. `lacking` problems have no such workload."""

    plan: Plan
    asker: Asker
    progress: SearchProgress
    search: SearchOptions = ONE_TURN
    strategy: Strategy = ONCE
    evaluations: Evaluations | None = None
    problems: Mapping[str, Problem] = field(default_factory=dict)
    lacking: Sequence[str] = ()
    prompt: str = ""
    prompts_dir: Path = Path()
    price: Price | None = None
    began_s: float = field(default_factory=time.monotonic)


async def follow_all(session: Session) -> list[SampleSearch]:
    """Raises HarnessError, also RunRefused if the endpoint refused every sample."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_Chain(session, key).follow()) for key in session.plan.list_keys()]
    except BaseExceptionGroup as errors:
        # The other exceptions are cancellations, or the same failure in a concurrent task.
        raise errors.exceptions[0] from None
    finally:
        await session.asker.close()
    asked = session.asker.report
    if asked.failed and not (asked.stored or asked.already_there) and all(one.is_refused for one in asked.failed):
        raise RunRefused(asked.failed[-1].message)
    return [task.result() for task in tasks]


class _Chain:
    def __init__(self, session: Session, key: SampleKey) -> None:
        self._session, self._asker, self._progress, self._key = session, session.asker, session.progress, key
        self._run_dir = session.plan.run_dir
        self._first = next(prompt for prompt in session.plan.prompts if prompt.problem == key.problem)
        self._history = History()
        self._seen: dict[str, int] = {}  # turns by normalised program

    @property
    def _problem(self) -> Problem:
        return self._session.problems[self._key.problem]

    async def follow(self) -> SampleSearch:
        try:
            stopped, is_final = await self._take_all()
        except RunRefused:
            raise
        except ProviderError as error:
            failure = SampleFailure(key=self._key, message=str(error), is_refused=isinstance(error, EndpointRefused))
            self._asker.report.failed.append(failure)
            return SampleSearch(key=self._key, history=self._history, stopped=str(error), failure=True)
        finally:
            self._progress.end(self._key)
        if is_final and self._session.strategy.name:
            self._record_end(stopped)
        return SampleSearch(key=self._key, history=self._history, stopped=stopped)

    async def _take_all(self) -> tuple[str, bool]:
        """Return (the reason to stop, whether the same command would change nothing)."""
        evaluations, problem = self._session.evaluations, self._key.problem
        if evaluations is not None and problem in self._session.lacking:
            evaluations.report.without_workload.append(problem)
            return describe_lacking_workload(problem, evaluations.options.workload), False
        start = self._session.search.start
        if start is not None:
            origin = self._describe_origin(Ask(parent=None))
            await self._asker.store(self._key, self._first, Completion(text=None), start, origin)
        taken = await self._take_turns()
        while evaluations is not None and await self._measure_best_again(evaluations):
            taken = await self._take_turns()
        return taken

    async def _take_turns(self) -> tuple[str, bool]:
        search, evaluations = self._session.search, self._session.evaluations
        for number in count(len(self._history.turns)):
            key = replace(self._key, turn=number)
            if not has_sample(self._run_dir, key):
                decision = decide(self._session.strategy, self._history, search)
                if isinstance(decision, Stop):
                    return decision.reason, True
                if search.deadline_s is not None and time.monotonic() - self._session.began_s >= search.deadline_s:
                    return f"the deadline of {search.deadline_s:g} s has passed", False
                if not self._asker.provider.can_answer(key):
                    self._asker.report.unrecorded += [key] if number == 0 else []
                    return f"turn {number} is not in the recording", True
                await self._ask(key, decision)
            if evaluations is None:
                return "it is not evaluated", False
            await self._evaluate(evaluations, load_sample(self._run_dir, key))
        raise AssertionError

    async def _ask(self, key: SampleKey, asked: Ask) -> None:
        tokens = self._session.search.context_tokens
        prompt = make_prompt(self._first, self._history, asked, self._render, context_tokens=tokens)
        with self._progress.at(self._key, "waiting to ask"):
            await self._asker.ask(
                key, prompt, self._describe_origin(asked), lambda: self._progress.at(self._key, "asking")
            )

    def _describe_origin(self, asked: Ask) -> dict[str, object]:
        if not self._session.strategy.name:
            return {}
        partner = {} if asked.partner is None else {"partner": asked.partner}
        return {"parent": asked.parent, "strategy": self._session.strategy.name, **partner}

    def _render(self, feedback: Feedback) -> str:
        manifest = self._session.plan.manifest
        return render_feedback(
            feedback,
            self._problem,
            prompt=self._session.prompt,
            language=manifest.language,
            prompts_dir=self._session.prompts_dir,
        )

    async def _evaluate(self, evaluations: Evaluations, sample: Sample) -> None:
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
            evaluation, measurements = await self._evaluate_sample(evaluations, sample)
            is_copy = source is not None and is_reference_copy(source, self._problem.source)
            turn = Turn(
                number=number, evaluation=evaluation, source=source, parent=sample.parent, is_copy=is_copy,
                measurements=measurements, tokens=tokens, usd=usd,
            )  # fmt: skip
        self._record_turns((*self._history.turns, turn))
        if digest:
            self._seen.setdefault(digest, number)

    async def _measure_best_again(self, evaluations: Evaluations) -> bool:
        """The best time was chosen, so it is biased: a new measurement counts. Return False without one."""
        best = self._history.best
        if best is None or best.evaluation.timing is None or best.measurements >= MEASUREMENTS_OF_BEST:
            return False
        if sum(one.result.is_correct and one.same_as is None for one in self._history.turns) < 2:
            return False
        sample = load_sample(self._run_dir, replace(self._key, turn=best.number))
        evaluation, measurements = await self._evaluate_sample(evaluations, sample, again=True)
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

    async def _evaluate_sample(
        self, evaluations: Evaluations, sample: Sample, *, again: bool = False
    ) -> tuple[Evaluation, int]:
        """Return (evaluation, number of evaluations of this program)."""
        from harness.pipeline.evaluate import make_sample_task

        task = make_sample_task(sample, self._problem, evaluations.options)
        task = replace(task, rival=self._find_rival(sample.key.turn))
        with self._progress.at(self._key, "evaluating"):
            stored = await evaluations.evaluate(
                task, again=again, show_wait=lambda: self._progress.at(self._key, OTHER_PROCESS)
            )
        self._progress.add_verdict(stored.evaluation)
        return stored.evaluation, evaluations.count(stored.evaluation)

    def _find_rival(self, turn: int) -> Rival | None:
        """Return the best earlier program, if its time is confirmed."""
        best = History(turns=tuple(one for one in self._history.turns if one.number < turn)).best
        if best is None or best.evaluation.timing is None or best.result.speedup is None:
            return None
        candidate = load_sample(self._run_dir, replace(self._key, turn=best.number)).candidate
        assert candidate is not None  # its program was timed
        return best.evaluation.as_rival(best.number, candidate)

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
    """Count prompt and answer tokens as reported by the endpoint, else estimate them."""
    completion = sample.completion
    if completion is None or (completion.text is None and completion.usage.completion_tokens is None):
        return 0, 0
    asked, written = completion.usage.prompt_tokens, completion.usage.completion_tokens
    if asked is None:
        asked = count_tokens(read_prompt(locate_sample(run_dir, sample.key)) or "")
    if written is None:
        written = count_tokens((completion.text or "") + (completion.reasoning or ""))
    return asked, written
