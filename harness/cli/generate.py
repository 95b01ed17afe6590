"""`harness generate`: asks a model (or replays a recording) and stores what it answers under generated/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.completion import complete_problem, complete_suite
from harness.domain import Language

if TYPE_CHECKING:
    from harness.generate.sampler import SessionReport

FAILED_EXIT_CODE = 1
INTERRUPTED_EXIT_CODE = 130

SuiteOption = Annotated[
    str,
    typer.Option(
        envvar="HARNESS_SUITE",
        help="Suite: one of your own in reference_models/, or a shipped one.",
        autocompletion=complete_suite,
    ),
]
ProblemOption = Annotated[
    list[str] | None,
    typer.Option(
        envvar="HARNESS_PROBLEM",
        help="Only this problem: a name or a file. May be repeated.",
        autocompletion=complete_problem,
    ),
]
ModelOption = Annotated[str | None, typer.Option(envvar="HARNESS_MODEL", help="The model, as its endpoint calls it.")]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        envvar=["HARNESS_BASE_URL", "OPENAI_BASE_URL"], help="An OpenAI-compatible endpoint; most end in /v1."
    ),
]
ProviderOption = Annotated[
    Literal["openai", "recorded"],
    typer.Option(envvar="HARNESS_PROVIDER", help="Ask an endpoint, or replay a recording."),
]
RecordingOption = Annotated[
    Path | None,
    typer.Option(envvar="HARNESS_RECORDING", help="The folder to replay, or any run's. [default: recordings/demo]"),
]
SamplesOption = Annotated[int, typer.Option(envvar="HARNESS_SAMPLES", min=1, help="Draws per problem.")]
TemperatureOption = Annotated[
    float | None, typer.Option(envvar="HARNESS_TEMPERATURE", min=0.0, help="[default: the endpoint's]")
]
MaxTokensOption = Annotated[
    int | None, typer.Option(envvar="HARNESS_MAX_TOKENS", min=1, help="[default: the endpoint's]")
]
LanguageOption = Annotated[
    Language, typer.Option(envvar="HARNESS_LANGUAGE", help="What the kernels are written in; cpp is for the CPU.")
]
PromptOption = Annotated[
    str, typer.Option(envvar="HARNESS_PROMPT", help="Prompt: a name in the prompts folder, or a folder of your own.")
]
GpuOption = Annotated[
    str | None, typer.Option(envvar="HARNESS_GPU", help="The GPU that the prompt states. [default: this machine's]")
]
RunOption = Annotated[
    str | None,
    typer.Option(
        envvar="HARNESS_RUN",
        help="Name of the run; one that exists is continued. [default: the last with these settings if unfinished]",
    ),
]
ConcurrencyOption = Annotated[
    int, typer.Option(envvar="HARNESS_CONCURRENCY", min=1, help="Requests under way at the same time.")
]
RequestTimeoutOption = Annotated[
    float, typer.Option(envvar="HARNESS_REQUEST_TIMEOUT", min=0.1, help="Seconds for one answer.")
]
MaxWaitOption = Annotated[
    float, typer.Option(envvar="HARNESS_MAX_WAIT", min=0.0, help="Seconds to retry while the endpoint fails.")
]
GeneratedDirOption = Annotated[Path, typer.Option(envvar="HARNESS_GENERATED_DIR", help="Where runs are kept.")]
ProblemsDirOption = Annotated[
    Path | None,
    typer.Option(
        envvar="HARNESS_PROBLEMS_DIR",
        help="Your suites: one is taken instead of a shipped one of its name. [default: reference_models]",
    ),
]
PromptsDirOption = Annotated[
    Path | None, typer.Option(envvar="HARNESS_PROMPTS_DIR", help="Folder of prompts. [default: prompts]")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", envvar="HARNESS_DRY_RUN", help="Print the exact prompts; ask nobody.")
]
JsonOption = Annotated[bool, typer.Option("--json", envvar="HARNESS_JSON", help="Print one JSON record on stdout.")]


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
    """Ask a model for kernels, and keep all that it answers.

    Interrupt it at any time; the same command again asks only for what is missing.

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
        typer.echo("interrupted: every answer that came is stored; the same command again asks for the rest", err=True)
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
