"""Asks a model and evaluates its answers for `harness run` and `harness improve`, also from a program or stored run."""

import asyncio
import re
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import get_args

from harness.analysis.metrics import Price, find_price
from harness.analysis.samples import find_best
from harness.domain import EMULATED, FROM_FILE, Candidate, Language, Problem, UsageError
from harness.domain.files import replace_text
from harness.generate.options import GenerateOptions, ProviderName
from harness.generate.sampler import Plan
from harness.languages import detect_language, find_devices
from harness.pipeline.chains import ONCE, SampleSearch, SearchReport, Session, ShowSearch, follow_all
from harness.pipeline.data_folders import find_folder, find_run_problem
from harness.pipeline.evaluate import check_plan, read_candidate
from harness.pipeline.evaluations import open_screening
from harness.pipeline.generate import open_asker, open_run, prepare_run
from harness.pipeline.options import EvaluateOptions
from harness.report.terminal.search_progress import SearchProgress
from harness.search.feedback import summarise
from harness.search.history import Turn
from harness.search.strategy import ONE_TURN, SearchOptions, Strategy, find_strategy
from harness.store.runs import find_run, read_manifest


def choose_strategy(search: SearchOptions, language: Language, options: EvaluateOptions) -> Strategy:
    """Raises UsageError, also if the strategy needs timing and there is none."""
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
    sections = {row.group.section for row in results.ranking if plan.manifest.run in row.runs}
    report.ranking = [row for row in results.ranking if row.group.section in sections]
    return report


def _find_problems(plan: Plan, options: EvaluateOptions) -> dict[str, Problem]:
    """Use the run's versions: a changed file is an error."""
    manifest = read_manifest(plan.run_dir)
    names = [prompt.problem for prompt in plan.prompts]
    return {name: find_run_problem(plan.run_dir, manifest, name, options.problems_dir) for name in names}


def improve_run(
    run: str, generate: GenerateOptions, options: EvaluateOptions, search: SearchOptions, show: ShowSearch = nullcontext
) -> SearchReport:
    """Use the stored run's settings; `generate` has those of the endpoint. Raises UsageError."""
    run_dir = find_run(options.generated_dir, run)
    manifest = read_manifest(run_dir)
    provider = next((name for name in get_args(ProviderName) if name == manifest.provider), None)
    if provider is None:
        raise UsageError(f"run {run!r} was imported, so there is no model to ask: improve its files one by one")
    if options.dtype not in (None, manifest.dtype):
        its = f"dtype {manifest.dtype}" if manifest.dtype else "the dtypes of its problems"
        raise UsageError(f"run {run!r} was generated for {its}: leave out --dtype")
    as_written = replace(manifest, dtype="")  # the plan takes the dtype
    files = {one.name: find_run_problem(run_dir, as_written, one.name, options.problems_dir) for one in manifest.files}
    return improve(
        replace(
            generate,
            suite=generate.suite if files.keys() >= set(manifest.problems) else manifest.suite,
            problems=tuple(files.get(name, name) for name in manifest.problems),
            model=manifest.model,
            base_url=manifest.base_url,
            provider=provider,
            samples=manifest.samples,
            temperature=manifest.temperature,
            max_tokens=manifest.max_tokens,
            language=manifest.language,
            prompt=manifest.prompt,
            gpu=manifest.gpu,
            dtype=manifest.dtype or None,
            run=run,
        ),
        options,
        search,
        show,
    )


def improve_file(
    file: Path,
    generate: GenerateOptions,
    options: EvaluateOptions,
    search: SearchOptions,
    *,
    language: Language | None = None,
    show: ShowSearch = nullcontext,
) -> tuple[SearchReport, Path | None]:
    """Turn 0 is the file. Also return the path of the best verified program, or None. Raises UsageError."""
    source = read_candidate(file)
    start = Candidate(source=source, language=language or detect_language(source), rule="file")
    generate = replace(generate, language=start.language)
    generate = replace(generate, run=generate.run or _name_run(file, source, generate))
    report = improve(generate, options, replace(search, start=start), show)
    solved = [(one, best) for one in report.samples if (best := one.history.best) is not None]
    index = find_best([best.result.alone for _, best in solved])
    if index is None:
        return report, None
    path = file.with_name(f"{file.stem}.best.py")
    chosen, best = solved[index]
    replace_text(path, _describe_history(chosen, best) + (best.source or ""))
    return report, path


def _name_run(file: Path, source: str, generate: GenerateOptions) -> str:
    """Equal files, problems and models give equal names, so that a killed command can be repeated."""
    settings = f"{source}\0{generate.problems}\0{generate.suite}\0{generate.model}\0{generate.prompt}"
    settings += f"\0{generate.dtype}" if generate.dtype else ""
    settings += f"\0{generate.language}" if generate.language != detect_language(source) else ""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", file.stem).strip("-.")[:60] or "file"
    return f"improve-{name}-{sha256(settings.encode()).hexdigest()[:8]}"


def _describe_history(chosen: SampleSearch, best: Turn) -> str:
    """Return comments, which may precede any program."""
    device = best.evaluation.subject.device
    lines = [f"harness improve: {chosen.key.problem} on {device}, turn {best.number} of run {chosen.key.run}"]
    lines += [summarise(turn) for turn in chosen.history.turns]
    return "".join(f"# {line}\n" for line in lines) + "\n"
