"""`harness improve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
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
    LoadTimeoutOption,
    MaxTokensOption,
    MaxWaitOption,
    ModelOption,
    PatienceOption,
    PriceOption,
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
from harness.domain import UsageError

if TYPE_CHECKING:
    from harness.pipeline.evaluate import EvaluateOptions
    from harness.pipeline.search_report import SearchReport


def improve(
    target: Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run in generated/, or a program of your own.")],
    *,
    problem: Annotated[str | None, typer.Option(help="Of FILE: a problem's name, or a reference file.")] = None,
    suite: SuiteOption = "core",
    run: RunOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    provider: ProviderOption = "openai",
    recording: RecordingOption = None,
    samples: SamplesOption = 1,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    prompt: PromptOption = "plain",
    gpu: GpuOption = None,
    concurrency: ConcurrencyOption = 16,
    request_timeout: RequestTimeoutOption = 1200.0,
    max_wait: MaxWaitOption = 600.0,
    turns: TurnsOption = 4,
    strategy: StrategyOption = "auto",
    patience: PatienceOption = None,
    budget_tokens: BudgetTokensOption = None,
    target_speedup: TargetOption = None,
    deadline: DeadlineOption = None,
    price: PriceOption = None,
    context_tokens: ContextTokensOption = 32_000,
    device: DeviceOption = "auto",
    check: CheckOption = None,
    workload: WorkloadOption = None,
    dtype: DtypeOption = None,
    baseline: BaselineOption = "eager",
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
    results_dir: ResultsDirOption = Path("results"),
    generated_dir: GeneratedDirOption = Path("generated"),
    problems_dir: ProblemsDirOption = None,
    prompts_dir: PromptsDirOption = None,
    cache_dir: CacheDirOption = None,
    cache_size: CacheSizeOption = None,
    json_output: JsonOption = False,
) -> None:
    """Ask the model again, with errors and times fed back.

    Of a run every sample goes on, with the model and settings of the run. Of a file the best verified program is
    written to FILE.best.py.

    Interrupt it at any time; the same command resumes.

    Example: harness improve my-run --turns 4

    One program: harness improve kernel.py --problem softmax --model gpt-5 --turns 8

    Exit code with FILE: 0 if a correct program was found, else 1.
    """
    from harness.pipeline.evaluate import EvaluateOptions
    from harness.pipeline.generate import GenerateOptions
    from harness.pipeline.improve import SearchOptions
    from harness.pipeline.improve_file import improve_file, improve_run

    options = EvaluateOptions(
        device=device,
        gpu=gpu,
        check_kernels=check,
        workload=workload,
        dtype=dtype,
        baseline=baseline,
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
        results_dir=results_dir,
        generated_dir=generated_dir,
        problems_dir=problems_dir,
        cache_dir=cache_dir,
        cache_size=cache_size,
    )
    search = SearchOptions(
        turns=turns,
        strategy=strategy,
        patience=patience,
        budget_tokens=budget_tokens,
        target=target_speedup,
        deadline_s=deadline,
        context_tokens=context_tokens,
        prices=parse_prices(price),
    )
    asked = GenerateOptions(
        suite=suite,
        problems=() if problem is None else (problem,),
        model=model,
        base_url=base_url,
        provider=provider,
        recording=recording,
        samples=samples,
        temperature=temperature,
        max_tokens=max_tokens,
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
    )
    if not target.endswith(".py"):
        if problem is not None:
            raise UsageError("--problem is for a FILE (.py): a run has its own problems")
        print_search(improve_run(target, asked, options, search), options, as_json=json_output)
        return
    if problem is None:
        raise UsageError("improving a file needs --problem NAME (or a reference file's path)")
    report, best = improve_file(Path(target), asked, options, search)
    print_search(report, options, as_json=json_output)
    if best is None:
        typer.echo("no correct program was found", err=True)
        raise typer.Exit(1)
    typer.echo(f"{best}", err=json_output)


def print_search(report: SearchReport, options: EvaluateOptions, *, as_json: bool, ranked: bool = False) -> None:
    """`ranked`: the leaderboard follows. Exits with 1 if the endpoint failed."""
    from harness.cli.evaluate import print_paths
    from harness.cli.leaderboard import leaderboard
    from harness.pipeline.search_report import describe_search, note_turns
    from harness.report.export.json_records import dump_json

    if as_json:
        typer.echo(dump_json(*describe_search(report)), nl=False)
    else:
        note_turns(report)
        if ranked:
            typer.echo()
            leaderboard(results_dir=options.results_dir, generated_dir=options.generated_dir)
            print_paths(options)
    if report.failed:
        raise typer.Exit(1)
