"""Estimates what `harness run` would ask, spend and evaluate, from files, without requests."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import mean
from typing import Any

from harness.domain import EMULATED, NO_DEVICE, UNTIMED, Outcome, Problem, Prompt, SampleKey, UsageError, WorkloadName
from harness.generate.options import GenerateOptions
from harness.generate.providers import RecordedProvider
from harness.generate.sampler import Plan
from harness.hardware.host import cpu_name, list_gpus
from harness.languages import find_devices
from harness.pipeline.evaluate import choose_workload
from harness.pipeline.generate import plan_dry_run
from harness.pipeline.improve import choose_strategy, find_model_price
from harness.pipeline.options import EvaluateOptions
from harness.problems.workloads import describe_lacking_workload
from harness.search.strategy import BEST_OF_N, CHARACTERS_PER_TOKEN, SearchOptions, count_tokens
from harness.store.completions import Spent, list_spent
from harness.store.results import ResultFilter, ResultStore
from harness.store.runs import MANIFEST, list_keys, merge_manifest, read_search


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemEstimate:
    """`stored` answers of the run, of them `evaluated`, and at most what would follow; None is unknown."""

    problem: str
    stored: int
    evaluated: int
    requests: int
    prompt_tokens: int
    answer_tokens: int | None
    usd: float | None
    evaluations: int
    minutes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """`notes` say how each number was made, and what is missing for an unknown one."""

    run: str
    is_new: bool
    problems: tuple[ProblemEstimate, ...]
    notes: tuple[str, ...]

    @property
    def total(self) -> ProblemEstimate:
        names = [field.name for field in fields(ProblemEstimate) if field.name != "problem"]
        sums = {name: _add([getattr(one, name) for one in self.problems]) for name in names}
        return ProblemEstimate(problem="total", **sums)


def estimate_run(generate: GenerateOptions, options: EvaluateOptions, search: SearchOptions) -> RunEstimate:
    """Raises UsageError where the run would."""
    strategy = choose_strategy(search, generate.language, options).name if search.turns > 1 else ""
    asked = replace(generate, results_dir=options.results_dir, turns=search.turns, strategy=strategy)
    plan, replay = plan_dry_run(asked)
    merge_manifest(plan.run_dir, plan.manifest)
    return _Estimator(asked, options, search, plan, replay).estimate()


class _Estimator:
    def __init__(
        self,
        generate: GenerateOptions,
        options: EvaluateOptions,
        search: SearchOptions,
        plan: Plan,
        replay: RecordedProvider | None,
    ) -> None:
        self._generate, self._options, self._search, self._plan, self._replay = generate, options, search, plan, replay
        self._verdicts = _Verdicts(plan, options)
        self._stored = set(list_keys(plan.run_dir))
        self._answers = _read_answers(generate, plan.manifest.model)
        self._price = find_model_price(search, plan.manifest.model)

    def estimate(self) -> RunEstimate:
        problems, lacking = self._plan.problems, self._verdicts.list_lacking()
        if len(lacking) == len(problems):
            raise UsageError(describe_lacking_workload(", ".join(lacking), self._options.workload))
        pairs = zip(problems, self._plan.prompts, strict=True)
        found = tuple(self._estimate(*pair) for pair in pairs if pair[0].name not in lacking)
        is_new = not (self._plan.run_dir / MANIFEST).is_file()
        notes = tuple(self._explain(found, lacking))
        return RunEstimate(run=self._plan.manifest.run, is_new=is_new, problems=found, notes=notes)

    def _estimate(self, problem: Problem, prompt: Prompt) -> ProblemEstimate:
        turns = [
            turn for key in self._plan.list_keys() if key.problem == problem.name for turn in self._list_turns(key)
        ]
        stored = self._stored.intersection(turns)
        new = [turn for turn in turns if turn not in stored and (not self._replay or self._replay.can_answer(turn))]
        evaluated = stored & self._verdicts.done
        evaluations = len(new) + len(stored if self._options.again else stored - evaluated)
        requests, answer = [] if self._replay else new, self._answers.get(problem.name, self._answers.get(""))
        asked = sum(self._count_prompt(prompt, key.turn, answer) for key in requests)
        written = 0 if not requests else None if answer is None else answer.total * len(requests)
        return ProblemEstimate(
            problem=problem.name,
            stored=len(stored),
            evaluated=len(evaluated),
            requests=len(requests),
            prompt_tokens=asked,
            answer_tokens=written,
            usd=self._price_tokens(asked, written) if requests else 0.0,
            evaluations=evaluations,
            minutes=self._verdicts.estimate_minutes(problem, evaluations),
        )

    def _price_tokens(self, asked: int, written: int | None) -> float | None:
        return None if self._price is None or written is None else self._price.compute_usd(asked, written)

    def _list_turns(self, key: SampleKey) -> list[SampleKey]:
        """A search that ended with as many turns is not continued."""
        turns = [replace(key, turn=number) for number in range(self._search.turns)]
        has_ended = len(turns) > 1 and read_search(self._plan.run_dir, key).get("turns", 0) >= len(turns)
        return [turn for turn in turns if turn in self._stored] if has_ended else turns

    @property
    def _feeds_back(self) -> bool:
        return self._generate.strategy not in ("", BEST_OF_N.name)

    def _count_prompt(self, prompt: Prompt, turn: int, answer: "_Answer | None") -> int:
        first = count_tokens(prompt.text)
        earlier = turn * answer.shown if answer and self._feeds_back else 0
        return first + min(earlier, max(self._search.context_tokens - first, 0))

    def _explain(self, problems: Sequence[ProblemEstimate], lacking: Sequence[str]) -> Iterator[str]:
        if lacking:
            yield f"not asked, without a {self._options.workload or 'small'} workload: {', '.join(lacking)}"
        if self._replay is not None:
            yield f"requests: none; answers are replayed from {self._replay.folder}"
        elif any(one.requests for one in problems):
            if self._search.turns > 1:
                yield "requests: at most; a sample that ends earlier asks fewer"
            later = ", and earlier answers again in later turns, up to --context-tokens" if self._feeds_back else ""
            yield f"prompt tokens: estimated, characters of the rendered prompts / {CHARACTERS_PER_TOKEN}{later}"
            yield f"answer tokens: {self._explain_answers()}"
            model = self._generate.model
            if model is None:
                yield "cost: unknown; name the model with --model, and its price with --price MODEL=IN/OUT"
            elif self._price is None:
                yield f"cost: unknown; give US dollars per million tokens with --price '{model}=IN/OUT'"
        if any(one.evaluations for one in problems):
            yield self._verdicts.explain_minutes(problems)

    def _explain_answers(self) -> str:
        folder, limit = self._generate.generated_dir, self._generate.max_tokens
        if "" not in self._answers:
            return f"unknown; no answer of this model in {folder} has a count; give a limit with --max-tokens"
        count = self._answers[""].count
        if not count:
            return "at most, by --max-tokens"
        limited = "" if limit is None else "; at most --max-tokens"
        return f"mean of {count} earlier answers of this model in {folder}, of the same problem where possible{limited}"


class _Verdicts:
    """Reads earlier evaluations. A device is the same if kind, chip and language are."""

    def __init__(self, plan: Plan, options: EvaluateOptions) -> None:
        self._plan, self._options = plan, options
        self._devices = find_devices(options.device, plan.manifest.language)
        self._device = self._devices[0] if self._devices else NO_DEVICE
        self._kind, _, number = self._device.partition(":")
        self._chip = list_gpus()[int(number)].name if number else cpu_name()
        self._is_untimed = options.fidelity == "correctness"

    def list_lacking(self) -> list[str]:
        """A run finds reduced sizes by executing the problem."""
        pairs = [(problem, self._choose_workload(problem)) for problem in self._plan.problems]
        return [one.name for one, workload in pairs if workload != "reduced" and one.workload(workload) is None]

    def _choose_workload(self, problem: Problem) -> WorkloadName:
        return choose_workload(problem, self._device, self._options)

    @cached_property
    def done(self) -> set[SampleKey]:
        """Verdicts that the run would not make again."""
        run, found = self._plan.manifest.run, set[SampleKey]()
        baseline = self._options.baselines[0].name
        wanted = {(one.name, self._choose_workload(one), baseline) for one in self._plan.problems}
        columns = ("problem", "workload", "baseline", "device", "outcome", "verdict", "sample", "turn")
        for *same, device, outcome, verdict, sample, turn in self._read(columns, ResultFilter(run=run)):
            lacks_time = outcome == Outcome.CORRECT and verdict == UNTIMED and not self._is_untimed
            is_same = tuple(same) in wanted and device in (*self._devices, NO_DEVICE)
            if is_same and not lacks_time and not Outcome(outcome).is_error:
                found.add(SampleKey(run=run, problem=same[0], sample=sample, turn=turn))
        return found

    def estimate_minutes(self, problem: Problem, evaluations: int) -> float | None:
        durations_s = self._durations_s.get((problem.suite, problem.name, self._choose_workload(problem)))
        return 0.0 if not evaluations else evaluations * mean(durations_s) / 60 if durations_s else None

    @cached_property
    def _durations_s(self) -> Mapping[tuple[str, ...], Sequence[float]]:
        """By suite, problem and workload."""
        found, language = defaultdict[tuple[str, ...], list[float]](list), self._plan.manifest.language
        columns = ("suite", "problem", "workload", "language", "device", "hardware", "verdict", "duration_s")
        for *key, used, device, hardware, verdict, duration_s in self._read(columns, ResultFilter()):
            is_same = (used, device.partition(":")[0]) == (language, self._kind) and hardware.endswith(self._chip)
            if is_same and (self._kind == EMULATED or (verdict == UNTIMED) == self._is_untimed):
                found[tuple(key)].append(duration_s)
        return found

    def _read(self, columns: Sequence[str], where: ResultFilter) -> Iterator[tuple[Any, ...]]:
        with ResultStore.open(self._options.results_dir, read_only=True) as store:
            yield from store.values(columns, where)

    def explain_minutes(self, problems: Sequence[ProblemEstimate]) -> str:
        known = [one.minutes for one in problems if one.minutes is not None]
        folder, unknown = self._options.results_dir, [one.problem for one in problems if one.minutes is None]
        if not any(known):
            return f"minutes: unknown; {folder} has no such evaluation of these problems on this {self._chip}"
        shared = f", shared by {len(self._devices)} devices" if len(self._devices) > 1 else ""
        missing = f"; {sum(known):.1f} without {', '.join(unknown)}, never evaluated here" if unknown else ""
        return f"minutes: mean of earlier evaluations in {folder} on this {self._chip}{shared}{missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Mean tokens of `count` answers; `shown` leaves out reasoning, which later turns do not repeat."""

    total: int
    shown: int
    count: int


def _read_answers(generate: GenerateOptions, model: str) -> dict[str, _Answer]:
    """By problem; of all problems under an empty name."""
    counted, limit = defaultdict[str, list[Spent]](list), generate.max_tokens
    for problem, spent in list_spent(generate.generated_dir, model):
        for name in (problem, "") if spent.completion_tokens is not None else ():
            counted[name].append(spent)
    if not counted:
        return {} if limit is None else {"": _Answer(total=limit, shown=limit, count=0)}
    return {name: _average(answers, limit) for name, answers in counted.items()}


def _average(answers: Sequence[Spent], limit: int | None) -> _Answer:
    total = mean(one.completion_tokens or 0 for one in answers)
    reasoning = mean(one.reasoning_tokens or 0 for one in answers)
    bound = round(total if limit is None else min(total, limit))
    return _Answer(total=bound, shown=min(max(round(total - reasoning), 0), bound), count=len(answers))


def _add(values: Sequence[Any]) -> Any:
    """None if one is unknown."""
    return None if None in values else sum(values)
