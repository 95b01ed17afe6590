"""Asks a model and evaluates its answers for `harness run` and `harness improve`."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace

from harness.analysis.prices import Price, find_price
from harness.domain import EMULATED, FROM_FILE, Language, Problem, UsageError
from harness.generate.options import GenerateOptions
from harness.generate.sampler import Plan
from harness.pipeline.chains import ONCE, Session, ShowSearch, follow_all
from harness.pipeline.data_folders import find_folder
from harness.pipeline.evaluate import check_plan
from harness.pipeline.generate import open_asker, open_run, prepare_run
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.run_problems import find_run_problem
from harness.pipeline.screening import open_screening
from harness.pipeline.search_report import SearchReport
from harness.report.terminal.search_progress import SearchProgress
from harness.search.options import ONE_TURN, SearchOptions
from harness.search.strategies import find_strategy
from harness.search.strategy import Strategy
from harness.store.runs import read_manifest


def choose_strategy(search: SearchOptions, language: Language, options: EvaluateOptions) -> Strategy:
    """Raises UsageError, also if the strategy needs timing and there is none."""
    from harness.languages.devices import find_devices

    names = find_devices(options.device, language)
    is_timed = options.fidelity != "correctness" and bool(names) and names[0] != EMULATED
    return find_strategy(search.strategy, is_timed=is_timed, width=search.width)


def find_model_price(search: SearchOptions, model: str) -> Price | None:
    """Raises UsageError if a budget needs one."""
    price = find_price(search.prices, model)
    if search.budget_usd is not None and price is None:
        raise UsageError(f"--budget-usd needs the price of the model: --price '{model}=IN/OUT'")
    return price


def _profile_in(strategy: Strategy, options: EvaluateOptions) -> EvaluateOptions:
    """Keep the user's choice. Stored verdicts without counters stay valid."""
    return replace(options, profile=strategy.needs_timing) if options.profile is None else options


def improve(
    generate: GenerateOptions, options: EvaluateOptions, search: SearchOptions, show: ShowSearch = nullcontext
) -> SearchReport:
    """Raises HarnessError and KeyboardInterrupt; stored turns and verdicts stay."""
    strategy = choose_strategy(search, generate.language, options)
    generate = replace(generate, turns=search.turns, strategy=strategy.name)
    return _run(generate, options, search, strategy, show)


def run_once(generate: GenerateOptions, options: EvaluateOptions, show: ShowSearch = nullcontext) -> SearchReport:
    """Evaluate one answer per sample while later ones are requested. Raises HarnessError and KeyboardInterrupt."""
    return _run(generate, options, ONE_TURN, ONCE, show)


def _run(
    generate: GenerateOptions, options: EvaluateOptions, search: SearchOptions, strategy: Strategy, show: ShowSearch
) -> SearchReport:
    from harness.executors.local import LocalExecutor
    from harness.pipeline.evaluations import Evaluations, open_results

    lacking: list[str] = []
    generate = replace(generate, results_dir=options.results_dir)
    plan, open_provider = prepare_run(generate, lambda plan: lacking.extend(check_plan(plan, options)))
    price = find_model_price(search, plan.manifest.model)
    if search.start is not None:
        plan = replace(plan, prompts=tuple(replace(one, name=f"{one.name}{FROM_FILE}") for one in plan.prompts))
    with (
        open_run(plan),
        open_results(options) as results,
        open_screening(search.screen, options, generate.language) as screening,  # refuses before processes start
        LocalExecutor(_profile_in(strategy, options)) as executor,
    ):
        evaluations = Evaluations(options, executor, results, screening=screening, same_inputs=strategy is ONCE)

        async def follow() -> SearchReport:
            asker = open_asker(plan, open_provider, generate.concurrency)
            run, turns = plan.manifest.run, f"{strategy.name}, up to {search.turns} turns a sample"
            head = f"run {run}: {turns}" if strategy.name else f"run {run}{asker.report.describe_resumed()}"
            progress = SearchProgress(plan.list_keys(), head=head, price=price, read_status=executor.status)
            session = Session(
                plan=plan, asker=asker, progress=progress, search=search, strategy=strategy, evaluations=evaluations,
                problems=_find_problems(plan, options), lacking=lacking, prompt=generate.prompt, price=price,
                prompts_dir=find_folder("prompts", generate.prompts_dir, option="--prompts-dir"),
            )  # fmt: skip
            report = SearchReport(strategy=strategy.name, asked=asker.report, evaluated=evaluations.report)
            with show(progress):
                report.samples = await follow_all(session)
            return report

        report = asyncio.run(follow())
        evaluations.require_devices()
    report.ranking = results.ranking
    return report


def _find_problems(plan: Plan, options: EvaluateOptions) -> dict[str, Problem]:
    """Use the run's versions: a changed file is an error."""
    manifest = read_manifest(plan.run_dir)
    names = [prompt.problem for prompt in plan.prompts]
    return {name: find_run_problem(plan.run_dir, manifest, name, options.problems_dir) for name in names}
