"""`harness run`."""

from __future__ import annotations

from pathlib import Path

import typer

from harness.cli.options import (
    AgainOption,
    AllowLoadOption,
    ArchOption,
    BaselineOption,
    BaseUrlOption,
    BudgetTokensOption,
    BuildTimeoutOption,
    CacheDirOption,
    CacheSizeOption,
    CallTimeoutOption,
    CheckOption,
    ConcurrencyOption,
    ConfinementOption,
    ContextTokensOption,
    DeadlineOption,
    DeviceOption,
    DtypeOption,
    FidelityOption,
    GeneratedDirOption,
    GpuOption,
    JobsOption,
    JsonOption,
    KnownSolutionsOption,
    LanguageOption,
    LoadTimeoutOption,
    MaxTokensOption,
    MaxWaitOption,
    ModelOption,
    PatienceOption,
    PriceOption,
    ProblemOption,
    ProblemsDirOption,
    ProfileOption,
    PromptOption,
    PromptsDirOption,
    ProviderOption,
    RecordingOption,
    ReferenceTimeoutOption,
    RequestTimeoutOption,
    ResultsDirOption,
    RunOption,
    SamplesOption,
    StrategyOption,
    SuiteOption,
    TargetOption,
    TemperatureOption,
    TimeOption,
    TurnsOption,
    WorkloadOption,
    choose_fidelity,
    parse_prices,
)
from harness.domain import HarnessError


def run(
    *,
    suite: SuiteOption = "core",
    problem: ProblemOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    provider: ProviderOption = "openai",
    recording: RecordingOption = None,
    samples: SamplesOption = 1,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    language: LanguageOption = "cuda",
    prompt: PromptOption = "plain",
    gpu: GpuOption = None,
    run: RunOption = None,
    concurrency: ConcurrencyOption = 16,
    request_timeout: RequestTimeoutOption = 1200.0,
    max_wait: MaxWaitOption = 600.0,
    turns: TurnsOption = 1,
    strategy: StrategyOption = "auto",
    patience: PatienceOption = None,
    budget_tokens: BudgetTokensOption = None,
    target: TargetOption = None,
    deadline: DeadlineOption = None,
    price: PriceOption = None,
    context_tokens: ContextTokensOption = 32_000,
    device: DeviceOption = "auto",
    check: CheckOption = None,
    workload: WorkloadOption = None,
    dtype: DtypeOption = None,
    baseline: BaselineOption = "eager",
    again: AgainOption = False,
    fidelity: FidelityOption = "full",
    time: TimeOption = True,
    profile: ProfileOption = None,
    allow_load: AllowLoadOption = False,
    call_timeout: CallTimeoutOption = 60.0,
    load_timeout: LoadTimeoutOption = 120.0,
    reference_timeout: ReferenceTimeoutOption = 600.0,
    build_timeout: BuildTimeoutOption = 600.0,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    confinement: ConfinementOption = "auto",
    known_solutions: KnownSolutionsOption = None,
    results_dir: ResultsDirOption = Path("results"),
    generated_dir: GeneratedDirOption = Path("generated"),
    problems_dir: ProblemsDirOption = None,
    prompts_dir: PromptsDirOption = None,
    cache_dir: CacheDirOption = None,
    cache_size: CacheSizeOption = None,
    json_output: JsonOption = False,
) -> None:
    """Generate candidates, evaluate them, and print the leaderboard.

    Interrupt it at any time; the same command resumes.

    Example: harness run --suite core --model gpt-5 --samples 4

    Errors and times fed back: harness run --model gpt-5 --turns 4

    Without a model or a key: harness run --provider recorded --language cpp --workload small
    """
    from harness.cli.evaluate import print_json, print_paths, print_report
    from harness.cli.improve import print_search
    from harness.cli.leaderboard import leaderboard
    from harness.pipeline.evaluate import EvaluateOptions, check_plan, evaluate_tasks, sample_tasks
    from harness.pipeline.generate import GenerateOptions, generate_run, print_notes
    from harness.pipeline.improve import SearchOptions, improve

    options = EvaluateOptions(
        device=device,
        gpu=gpu,
        check_kernels=check,
        workload=workload,
        dtype=dtype,
        baseline=baseline,
        again=again,
        fidelity=choose_fidelity(fidelity, time),
        profile=profile,
        allow_load=allow_load,
        call_timeout_s=call_timeout,
        load_timeout_s=load_timeout,
        reference_timeout_s=reference_timeout,
        build_timeout_s=build_timeout,
        architecture=arch,
        jobs=jobs,
        confinement=confinement,
        known_solutions=known_solutions,
        results_dir=results_dir,
        generated_dir=generated_dir,
        problems_dir=problems_dir,
        cache_dir=cache_dir,
        cache_size=cache_size,
    )
    asked = GenerateOptions(
        suite=suite,
        problems=tuple(problem or ()),
        model=model,
        base_url=base_url,
        provider=provider,
        recording=recording,
        samples=samples,
        temperature=temperature,
        max_tokens=max_tokens,
        language=language,
        prompt=prompt,
        gpu=gpu,
        dtype=dtype,
        run=run,
        concurrency=concurrency,
        timeout_s=request_timeout,
        max_wait_s=max_wait,
        generated_dir=generated_dir,
        problems_dir=problems_dir,
        prompts_dir=prompts_dir,
        results_dir=results_dir,
    )
    if turns > 1:
        search = SearchOptions(
            turns=turns,
            strategy=strategy,
            patience=patience,
            budget_tokens=budget_tokens,
            target=target,
            deadline_s=deadline,
            context_tokens=context_tokens,
            prices=parse_prices(price),
        )
        print_search(improve(asked, options, search), options, as_json=json_output, ranked=True)
        return
    report = generate_run(asked, check=lambda plan: check_plan(plan, options))
    print_notes(report)
    if not report.stored + report.already_there:
        raise HarnessError("no sample was generated: nothing to evaluate")
    evaluated = evaluate_tasks(sample_tasks([report.run], options), options)
    if json_output:
        print_json(evaluated, options)
        return
    print_report(evaluated, options)
    typer.echo()
    leaderboard(results_dir=results_dir, generated_dir=generated_dir)
    print_paths(options)
    if report.failed:
        raise typer.Exit(1)
