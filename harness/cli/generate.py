"""`harness generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.cli.options import (
    BaseUrlOption,
    ConcurrencyOption,
    DryRunOption,
    DtypeOption,
    GeneratedDirOption,
    GpuOption,
    JsonOption,
    LanguageOption,
    MaxTokensOption,
    MaxWaitOption,
    ModelOption,
    ProblemOption,
    ProblemsDirOption,
    PromptOption,
    PromptsDirOption,
    ProviderOption,
    RecordingOption,
    RequestTimeoutOption,
    RunOption,
    SamplesOption,
    SuiteOption,
    TemperatureOption,
)

if TYPE_CHECKING:
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
INTERRUPTED_EXIT_CODE = 130


def generate(
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
    dtype: DtypeOption = None,
    run: RunOption = None,
    concurrency: ConcurrencyOption = 16,
    request_timeout: RequestTimeoutOption = 1200.0,
    max_wait: MaxWaitOption = 600.0,
    generated_dir: GeneratedDirOption = Path("generated"),
    problems_dir: ProblemsDirOption = None,
    prompts_dir: PromptsDirOption = None,
    dry_run: DryRunOption = False,
    json_output: JsonOption = False,
) -> None:
    """Ask a model for kernels and store its answers.

    Interrupt it at any time; the same command resumes.

    Example: harness generate --model gpt-5 --problem softmax --samples 4 --prompt tips

    A local server: harness generate --model qwen3 --base-url http://localhost:8000/v1
    """
    from harness.pipeline.generate import GenerateOptions, describe_report, generate_run, print_dry_run, print_notes

    options = GenerateOptions(
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
    )
    if dry_run:
        print_dry_run(options, as_json=json_output)
        return
    try:
        report = generate_run(options)
    except KeyboardInterrupt:
        typer.echo("interrupted: received answers are stored; repeat the command to resume", err=True)
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    print_notes(report)
    if json_output:
        typer.echo(json.dumps(describe_report(report)))
    else:
        _print_report(report)
    if report.failed:
        raise typer.Exit(FAILED_EXIT_CODE)


def _print_report(report: SessionReport) -> None:
    typer.echo(
        f"run {report.run}: {report.stored} stored ({report.without_code} without code), "
        f"{report.already_there} already there, {len(report.failed)} failed"
    )
    if report.run_dir.is_dir():
        typer.echo(f"{report.run_dir}")
