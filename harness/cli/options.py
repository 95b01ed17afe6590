"""Options shared by several commands, in groups. Also read from HARNESS_<OPTION> and `harness.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.completion import complete_problem, complete_run, complete_suite
from harness.domain import Baseline, Fidelity, Language, Precision, UsageError, WorkloadName

if TYPE_CHECKING:
    from harness.analysis.prices import Price

MODEL, TURNS, EVALUATION, SANDBOX, PATHS = "Model", "Turns", "Evaluation", "Sandbox and builds", "Paths"


def in_group(group: str, *names: str, env: str | list[str], help: str, **more: Any) -> Any:
    """`env`: the variable's name without HARNESS_, or several full names."""
    variables = f"HARNESS_{env}" if isinstance(env, str) else env
    return typer.Option(*names, envvar=variables, show_envvar=False, help=help, rich_help_panel=group, **more)


RunsArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Runs in generated/. [default: all of them]", metavar="RUN", autocompletion=complete_run),
]
SuiteOption = Annotated[
    str,
    typer.Option(
        envvar="HARNESS_SUITE",
        show_envvar=False,
        help="Suite of problems: a folder in reference_models/, or a shipped suite.",
        metavar="NAME",
        autocompletion=complete_suite,
    ),
]
ProblemOption = Annotated[
    list[str] | None,
    typer.Option(
        envvar="HARNESS_PROBLEM",
        show_envvar=False,
        help="Only this problem of the suite, or a reference file. Repeatable.",
        metavar="NAME|FILE",
        autocompletion=complete_problem,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        envvar="HARNESS_RUN",
        show_envvar=False,
        help="Name of the run; an existing one is resumed. [default: the last unfinished run with these settings]",
        metavar="NAME",
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", envvar="HARNESS_JSON", show_envvar=False, help="Print JSON on stdout, one record per line."),
]

ModelOption = Annotated[str | None, in_group(MODEL, env="MODEL", help="Model name at its endpoint.", metavar="NAME")]
BaseUrlOption = Annotated[
    str | None,
    in_group(
        MODEL,
        env=["HARNESS_BASE_URL", "OPENAI_BASE_URL"],
        help="OpenAI-compatible endpoint, most end in /v1. [default: $OPENAI_BASE_URL]",
        metavar="URL",
    ),
]
ProviderOption = Annotated[
    Literal["openai", "recorded"], in_group(MODEL, env="PROVIDER", help="Ask an endpoint, or replay a recording.")
]
RecordingOption = Annotated[
    Path | None,
    in_group(MODEL, env="RECORDING", help="Recording or run to replay. [default: recordings/demo]", metavar="DIR"),
]
SamplesOption = Annotated[int, in_group(MODEL, env="SAMPLES", min=1, help="Samples per problem.", metavar="N")]
TemperatureOption = Annotated[
    float | None,
    in_group(MODEL, env="TEMPERATURE", min=0.0, help="Sampling temperature. [default: the endpoint's]", metavar="T"),
]
MaxTokensOption = Annotated[
    int | None,
    in_group(MODEL, env="MAX_TOKENS", min=1, help="Tokens per answer. [default: the endpoint's]", metavar="N"),
]
LanguageOption = Annotated[
    Language, in_group(MODEL, env="LANGUAGE", help="Language of the kernels; cpp is for the CPU, torch writes none.")
]
PromptOption = Annotated[
    str, in_group(MODEL, env="PROMPT", help="Prompt: a name in prompts/, or a folder.", metavar="NAME|DIR")
]
GpuOption = Annotated[
    str | None,
    in_group(MODEL, env="GPU", help="GPU that the prompt describes. [default: this machine's]", metavar="NAME"),
]
ConcurrencyOption = Annotated[int, in_group(MODEL, env="CONCURRENCY", min=1, help="Concurrent requests.", metavar="N")]
RequestTimeoutOption = Annotated[
    float, in_group(MODEL, env="REQUEST_TIMEOUT", min=0.1, help="Limit for one answer.", metavar="SECONDS")
]
MaxWaitOption = Annotated[
    float,
    in_group(MODEL, env="MAX_WAIT", min=0.0, help="How long to retry a failing endpoint.", metavar="SECONDS"),
]
DryRunOption = Annotated[
    bool, in_group(MODEL, "--dry-run", env="DRY_RUN", help="Print the prompts without sending them.")
]

TurnsOption = Annotated[
    int,
    in_group(TURNS, env="TURNS", min=1, help="Answers per sample at most, with feedback.", metavar="N"),
]
StrategyOption = Annotated[
    str,
    in_group(
        TURNS,
        env="STRATEGY",
        help="repair, optimise, best-of-n, beam, or a Python file. auto: optimise if timed, else repair.",
        metavar="NAME|FILE",
    ),
]
PatienceOption = Annotated[
    int | None,
    in_group(TURNS, env="PATIENCE", min=1, help="Stop after N turns without a gain. [default: 5]", metavar="N"),
]
BudgetTokensOption = Annotated[
    int | None,
    in_group(TURNS, env="BUDGET_TOKENS", min=0, help="Tokens per sample, prompts included.", metavar="N"),
]
TargetOption = Annotated[
    float | None, in_group(TURNS, "--target", env="TARGET", min=0.0, help="Stop at this speedup.", metavar="X")
]
DeadlineOption = Annotated[
    float | None, in_group(TURNS, env="DEADLINE", min=0.0, help="Ask nothing more after this time.", metavar="SECONDS")
]
ContextTokensOption = Annotated[
    int,
    in_group(TURNS, env="CONTEXT_TOKENS", min=1, help="Limit of a prompt; older turns become a line.", metavar="N"),
]

PriceOption = Annotated[
    list[str] | None,
    in_group(
        TURNS,
        env="PRICE",
        help="US dollars per million prompt and answer tokens, for the cost shown. Repeatable.",
        metavar="MODEL=IN/OUT",
    ),
]

DeviceOption = Annotated[
    str,
    in_group(
        EVALUATION,
        env="DEVICE",
        help="auto, cpu, emulated, cuda or cuda:0,1. auto: the CPU for cpp, else all GPUs, or emulated.",
        metavar="DEVICES",
    ),
]
EmulatedGpuOption = Annotated[
    str | None, in_group(EVALUATION, "--gpu", env="GPU", help="GPU to emulate. [default: A100]", metavar="NAME")
]
CheckOption = Annotated[
    bool | None,
    in_group(
        EVALUATION,
        "--check/--no-check",
        env="CHECK",
        help="Check kernels for races, out-of-bounds accesses and barrier misuse. [default: if emulated]",
    ),
]
WorkloadOption = Annotated[
    WorkloadName | None,
    in_group(EVALUATION, env="WORKLOAD", help="Sizes; full is scored. [default: full; if emulated, small or reduced]"),
]
DtypeOption = Annotated[
    Precision | None,
    in_group(
        EVALUATION,
        env="DTYPE",
        help="Dtype of floating inputs and weights; tf32: fp32 with TF32 products. [default: the run's or problem's]",
    ),
]
BaselineOption = Annotated[
    Baseline, in_group(EVALUATION, env="BASELINE", help="Baseline to time the candidate against.")
]
ExecutorOption = Annotated[
    Literal["local", "ray"],
    in_group(EVALUATION, env="EXECUTOR", help="local: devices of this machine; ray: of a Ray cluster."),
]
AddressOption = Annotated[
    str,
    in_group(EVALUATION, env="ADDRESS", help="With --executor ray: the cluster; local starts one.", metavar="ADDRESS"),
]
ChipOption = Annotated[
    str | None,
    in_group(EVALUATION, env="CHIP", help="With --executor ray: part of the GPU's name.", metavar="NAME"),
]
AgainOption = Annotated[bool, in_group(EVALUATION, "--again", env="AGAIN", help="Re-evaluate finished candidates.")]
TimeOption = Annotated[
    bool, in_group(EVALUATION, "--time/--no-time", env="TIME", help="--no-time: as --fidelity correctness.")
]
FidelityOption = Annotated[
    Fidelity,
    in_group(EVALUATION, env="FIDELITY", help="correctness: no timing; quick: fewer timed pairs, wider interval."),
]
ProfileOption = Annotated[
    bool | None,
    in_group(
        EVALUATION,
        "--profile/--no-profile",
        env="PROFILE",
        help="Read hardware counters of correct GPU programs with ncu. [default: in turns by optimise or beam]",
    ),
]
AllowLoadOption = Annotated[
    bool, in_group(EVALUATION, "--allow-load", env="ALLOW_LOAD", help="Allow timing on a busy machine.")
]
CallTimeoutOption = Annotated[
    float, in_group(EVALUATION, env="CALL_TIMEOUT", min=0.1, help="Limit for one call.", metavar="SECONDS")
]
LoadTimeoutOption = Annotated[
    float,
    in_group(
        EVALUATION,
        env="LOAD_TIMEOUT",
        min=0.1,
        help="Limit for importing and for constructing a candidate, without its builds.",
        metavar="SECONDS",
    ),
]
ReferenceTimeoutOption = Annotated[
    float,
    in_group(
        EVALUATION,
        env="REFERENCE_TIMEOUT",
        min=0.1,
        help="Limit for each step of a reference: import, construction, inputs, call.",
        metavar="SECONDS",
    ),
]

BuildTimeoutOption = Annotated[
    float, in_group(SANDBOX, env="BUILD_TIMEOUT", min=1.0, help="Limit for one build.", metavar="SECONDS")
]
ArchOption = Annotated[
    str | None,
    in_group(SANDBOX, env="ARCH", help="CUDA architecture. [default: the GPU's, or 9.0]", metavar="X.Y"),
]
JobsOption = Annotated[
    int | None, in_group(SANDBOX, env="JOBS", min=1, help="Builds at a time. [default: one per core]", metavar="N")
]
ConfinementOption = Annotated[
    Literal["auto", "none"],
    in_group(SANDBOX, env="CONFINEMENT", help="none disables the sandbox; only for trusted code."),
]
CacheSizeOption = Annotated[
    str | None,
    in_group(
        SANDBOX, "--cache-size", env="CACHE_SIZE", help="Limit of the build cache. [default: 20G]", metavar="SIZE"
    ),
]

ResultsDirOption = Annotated[Path, in_group(PATHS, env="RESULTS_DIR", help="Folder of results.", metavar="DIR")]
KnownSolutionsOption = Annotated[
    Path | None,
    in_group(
        EVALUATION,
        "--known-solutions",
        env="KNOWN_SOLUTIONS",
        help="Warn of candidates whose program or kernel is in this folder.",
        metavar="DIR",
    ),
]
GeneratedDirOption = Annotated[Path, in_group(PATHS, env="GENERATED_DIR", help="Folder of runs.", metavar="DIR")]
ProblemsDirOption = Annotated[
    Path | None,
    in_group(
        PATHS,
        env="PROBLEMS_DIR",
        help="Folder of suites, searched before the shipped ones. [default: reference_models]",
        metavar="DIR",
    ),
]
PromptsDirOption = Annotated[
    Path | None, in_group(PATHS, env="PROMPTS_DIR", help="Folder of prompts. [default: prompts]", metavar="DIR")
]
CacheDirOption = Annotated[
    Path | None,
    in_group(PATHS, env="CACHE_DIR", help="Build cache. [default: ~/.cache/harness/builds]", metavar="DIR"),
]


def choose_fidelity(fidelity: Fidelity, time: bool) -> Fidelity:
    return fidelity if time else "correctness"


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
