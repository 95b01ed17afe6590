"""Options shared by several commands, by panel of `--help`, and the pipeline's settings made from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.completion import complete_problem, complete_run, complete_suite
from harness.cli.panels import Panel, option
from harness.domain import Baseline, Fidelity, Language, Precision, TokenLimitName, UsageError, WorkloadName

if TYPE_CHECKING:
    from harness.analysis.prices import Price
    from harness.generate.planning import GenerateOptions
    from harness.pipeline.evaluate import EvaluateOptions
    from harness.pipeline.improve import SearchOptions
    from harness.search.strategy import Target

RunsArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Runs in generated/. [default: all of them]", metavar="RUN", autocompletion=complete_run),
]
SuiteOption = Annotated[
    str,
    typer.Option(
        envvar="HARNESS_SUITE",
        help="Suite of problems: a folder in reference_models/, or a shipped suite.",
        metavar="NAME",
        autocompletion=complete_suite,
    ),
]
ProblemOption = Annotated[
    list[str] | None,
    typer.Option(
        envvar="HARNESS_PROBLEM",
        help="Only this problem of the suite, or a reference file. Repeatable.",
        metavar="NAME|FILE",
        autocompletion=complete_problem,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        envvar="HARNESS_RUN",
        help="Name of the run; an existing one is resumed. [default: the last unfinished run with these settings]",
        metavar="NAME",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", envvar="HARNESS_JSON", help="Print JSON on stdout, one record per line."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPanel(Panel):
    title = "Model"

    model: str | None = option(None, "Model name at its endpoint.", metavar="NAME")
    base_url: str | None = option(
        None,
        "OpenAI-compatible endpoint, most end in /v1. [default: $OPENAI_BASE_URL]",
        envvar=["HARNESS_BASE_URL", "OPENAI_BASE_URL"],
        metavar="URL",
    )
    provider: Literal["openai", "recorded"] = option("openai", "Ask an endpoint, or replay a recording.")
    recording: Path | None = option(None, "Recording or run to replay. [default: recordings/demo]", metavar="DIR")
    samples: int = option(1, "Samples per problem.", min=1, metavar="N")
    temperature: float | None = option(None, "Sampling temperature. [default: the endpoint's]", min=0.0, metavar="T")
    max_tokens: int | None = option(None, "Tokens per answer. [default: the endpoint's]", min=1, metavar="N")
    token_limit_name: TokenLimitName = option(
        "auto", "Field of the request for --max-tokens. auto: what the endpoint accepts."
    )
    language: Language = option("cuda", "Language of the kernels; cpp is for the CPU, torch writes none.")
    prompt: str = option("plain", "Prompt: a name in prompts/, or a folder.", metavar="NAME|DIR")
    gpu: str | None = option(None, "GPU that the prompt describes. [default: this machine's]", metavar="NAME")
    concurrency: int = option(16, "Concurrent requests.", min=1, metavar="N")
    request_timeout: float = option(1200.0, "Limit for one answer.", min=0.1, metavar="SECONDS")
    max_wait: float = option(600.0, "How long to retry a failing endpoint.", min=0.0, metavar="SECONDS")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPanel(Panel):
    title = "Turns"

    turns: int = option(1, "Answers per sample at most, with feedback.", min=1, metavar="N")
    strategy: str = option(
        "auto",
        "repair, optimise, best-of-n, beam, evolve, or a Python file. auto: optimise if timed, else repair.",
        metavar="NAME|FILE",
    )
    width: int | None = option(None, "Programs of a beam, or islands of evolve. [default: 2]", min=2, metavar="N")
    patience: int | None = option(
        None, "Stop after N turns without a gain. [default: 5; evolve 10; best-of-n none]", min=1, metavar="N"
    )
    budget_tokens: int | None = option(None, "Tokens per sample, prompts included.", min=0, metavar="N")
    budget_usd: float | None = option(None, "US dollars per sample; needs --price.", min=0.0, metavar="USD")
    target: str = option("0.95", "Stop at this share of the roofline, or at a speedup such as 2x.", metavar="SHARE|Nx")
    screen: Literal["small", "emulated"] | None = option(
        None, "Pre-check cheaply, untimed, at small sizes or emulated; time only correct candidates."
    )
    deadline: float | None = option(None, "Send no request after this time.", min=0.0, metavar="SECONDS")
    price: list[str] | None = option(
        None, "US dollars per million prompt and answer tokens. Repeatable.", metavar="MODEL=IN/OUT"
    )
    context_tokens: int = option(
        32_000, "Limit of a prompt; the oldest turns are summarised in a line each.", min=1, metavar="N"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPanel(Panel):
    title = "Evaluation"

    device: str = option(
        "auto",
        "auto, cpu, emulated, cuda or cuda:0,1. auto: the CPU for cpp, else all GPUs, or emulated.",
        metavar="DEVICES",
    )
    executor: Literal["local", "ray"] = option("local", "local: devices of this machine; ray: of a Ray cluster.")
    address: str = option("auto", "With --executor ray: the cluster; local starts one.", metavar="ADDRESS")
    chip: str | None = option(None, "With --executor ray: part of the GPU's name.", metavar="NAME")
    gpu: str | None = option(None, "GPU to emulate. [default: A100]", metavar="NAME")
    check: bool | None = option(
        None, "Check kernels for races, out-of-bounds accesses and barrier misuse. [default: if emulated]"
    )
    workload: WorkloadName | None = option(
        None, "Sizes; full is scored. [default: full; if emulated, small or reduced]"
    )
    dtype: Precision | None = option(
        None, "Dtype of floating inputs and weights; tf32: fp32 with TF32 products. [default: the run's or problem's]"
    )
    baseline: Baseline = option("eager", "Baseline to time the candidate against.")
    again: bool = option(False, "Re-evaluate finished candidates.", "--again")
    fidelity: Fidelity = option("full", "correctness: no timing; quick: fewer timed pairs, wider interval.")
    time: bool = option(True, "--no-time: as --fidelity correctness.")
    profile: bool | None = option(
        None, "Read hardware counters of correct GPU programs with ncu. [default: in timed searches]"
    )
    allow_load: bool = option(False, "Allow timing on a busy machine.", "--allow-load")
    call_timeout: float = option(60.0, "Limit for one call.", min=0.1, metavar="SECONDS")
    first_call_timeout: float | None = option(
        None,
        "Limit for the first call in each worker, in which compilers run. [default: 300, or --call-timeout if longer]",
        min=0.1,
        metavar="SECONDS",
    )
    load_timeout: float = option(
        120.0, "Limit for importing and for constructing a candidate, without its builds.", min=0.1, metavar="SECONDS"
    )
    reference_timeout: float = option(
        600.0, "Limit for each step of a reference: import, construction, inputs, call.", min=0.1, metavar="SECONDS"
    )
    known_solutions: Path | None = option(
        None, "Warn of candidates whose program or kernel is in this folder.", metavar="DIR"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPanel(Panel):
    title = "Sandbox and builds"

    build_timeout: float = option(600.0, "Limit for one build.", min=1.0, metavar="SECONDS")
    arch: str | None = option(None, "CUDA architecture. [default: the GPU's, or 9.0a]", metavar="X.Y")
    jobs: int | None = option(None, "Builds at a time. [default: one per core]", min=1, metavar="N")
    confinement: Literal["auto", "none"] = option("auto", "none disables the sandbox; only for trusted code.")
    cache_size: str | None = option(None, "Limit of the build cache. [default: 20G]", metavar="SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsPanel(Panel):
    title = "Paths"

    results_dir: Path = option(Path("results"), "Folder of results.", metavar="DIR")
    generated_dir: Path = option(Path("generated"), "Folder of runs.", metavar="DIR")
    problems_dir: Path | None = option(
        None, "Folder of suites, searched before the shipped ones. [default: reference_models]", metavar="DIR"
    )
    prompts_dir: Path | None = option(None, "Folder of prompts. [default: prompts]", metavar="DIR")
    cache_dir: Path | None = option(None, "Build cache. [default: ~/.cache/harness/builds]", metavar="DIR")


def make_generate_options(
    model: ModelPanel,
    paths: PathsPanel,
    *,
    suite: str,
    problems: Iterable[str],
    run: str | None,
    dtype: Precision | None,
    is_evaluated: bool = True,
) -> GenerateOptions:
    from harness.generate.planning import GenerateOptions

    return GenerateOptions(
        suite=suite,
        problems=tuple(problems),
        model=model.model,
        base_url=model.base_url,
        provider=model.provider,
        recording=model.recording,
        samples=model.samples,
        temperature=model.temperature,
        max_tokens=model.max_tokens,
        token_limit_name=model.token_limit_name,
        language=model.language,
        prompt=model.prompt,
        gpu=model.gpu,
        dtype=dtype,
        run=run,
        concurrency=model.concurrency,
        timeout_s=model.request_timeout,
        max_wait_s=model.max_wait,
        generated_dir=paths.generated_dir,
        problems_dir=paths.problems_dir,
        prompts_dir=paths.prompts_dir,
        results_dir=paths.results_dir if is_evaluated else None,
    )


def make_search_options(turns: TurnsPanel) -> SearchOptions:
    """Raises UsageError."""
    from harness.pipeline.improve import SearchOptions

    return SearchOptions(
        turns=turns.turns,
        strategy=turns.strategy,
        patience=turns.patience,
        width=turns.width,
        budget_tokens=turns.budget_tokens,
        budget_usd=turns.budget_usd,
        target=_parse_target(turns.target),
        screen=turns.screen,
        deadline_s=turns.deadline,
        context_tokens=turns.context_tokens,
        prices=parse_prices(turns.price),
    )


def _parse_target(text: str) -> Target:
    """Raises UsageError."""
    from harness.search.strategy import Target

    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = 0.0
    if text.endswith("x") and value > 0:
        return Target(speedup=value)
    if 0 < value <= 1:
        return Target(roofline=value)
    raise UsageError(f"--target {text}: give a share of the roofline in 0..1, or a speedup with an x, such as 2x")


def make_evaluate_options(evaluation: EvaluationPanel, sandbox: SandboxPanel, paths: PathsPanel) -> EvaluateOptions:
    from harness.pipeline.evaluate import EvaluateOptions

    return EvaluateOptions(
        device=evaluation.device,
        executor=evaluation.executor,
        address=evaluation.address,
        chip=evaluation.chip,
        gpu=evaluation.gpu,
        check_kernels=evaluation.check,
        workload=evaluation.workload,
        dtype=evaluation.dtype,
        baseline=evaluation.baseline,
        again=evaluation.again,
        fidelity=evaluation.fidelity if evaluation.time else "correctness",
        profile=evaluation.profile,
        allow_load=evaluation.allow_load,
        call_timeout_s=evaluation.call_timeout,
        first_call_timeout_s=evaluation.first_call_timeout,
        load_timeout_s=evaluation.load_timeout,
        reference_timeout_s=evaluation.reference_timeout,
        known_solutions=evaluation.known_solutions,
        build_timeout_s=sandbox.build_timeout,
        architecture=sandbox.arch,
        jobs=sandbox.jobs,
        isolation=sandbox.confinement,
        cache_size=sandbox.cache_size,
        results_dir=paths.results_dir,
        generated_dir=paths.generated_dir,
        problems_dir=paths.problems_dir,
        cache_dir=paths.cache_dir,
    )


def parse_prices(texts: list[str] | None) -> tuple[Price, ...]:
    """Raises UsageError."""
    return tuple(map(_parse_price, texts or ()))


def _parse_price(text: str) -> Price:
    from harness.analysis.prices import Price

    model, _, amounts = text.rpartition("=")
    try:
        prompt_usd, completion_usd = map(float, amounts.split("/"))
        if not (model and 0 <= prompt_usd < float("inf") and 0 <= completion_usd < float("inf")):
            raise ValueError(text)
    except ValueError as error:
        raise UsageError(f"--price {text!r}: expected MODEL=IN/OUT in dollars, like 'gpt-5*=1.25/10'") from error
    return Price(model=model, prompt_usd=prompt_usd, completion_usd=completion_usd)
