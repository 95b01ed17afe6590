"""Settings of generation by the commands and the API."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from harness.domain import Language, Precision, Problem, TokenLimitName
from harness.domain.options import RunFolders, option
from harness.languages import GPU_LANGUAGE

ProviderName = Literal["openai", "recorded"]


def _list_names(given: list[str] | str | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(RunFolders):
    """Empty `problems`: the whole suite. `run` None: an unfinished or new run. `results_dir` None: not evaluated."""

    title: ClassVar[str] = "Model"

    model: str | None = option(None, "Model name at its endpoint.", metavar="NAME")
    base_url: str | None = option(
        None,
        "OpenAI-compatible endpoint, most end in /v1. [default: $OPENAI_BASE_URL]",
        envvar=["HARNESS_BASE_URL", "OPENAI_BASE_URL"],
        metavar="URL",
    )
    provider: ProviderName = option("openai", "Ask an endpoint, or replay a recording.")
    recording: Path | None = option(None, "Recording or run to replay. [default: recordings/demo]", metavar="DIR")
    samples: int = option(1, "Samples per problem.", min=1, metavar="N")
    temperature: float | None = option(None, "Sampling temperature. [default: the endpoint's]", min=0.0, metavar="T")
    max_tokens: int | None = option(None, "Tokens per answer. [default: the endpoint's]", min=1, metavar="N")
    token_limit_name: TokenLimitName = option(
        "auto", "Field of the request for --max-tokens. auto: what the endpoint accepts."
    )
    language: Language = option(GPU_LANGUAGE, "Language of the kernels; cpp is for the CPU, torch writes none.")
    prompt: str = option("plain", "Prompt: a name in prompts/, or a folder.", metavar="NAME|DIR")
    gpu: str | None = option(None, "GPU that the prompt describes. [default: this machine's]", metavar="NAME")
    concurrency: int = option(16, "Concurrent requests.", min=1, metavar="N")
    timeout_s: float = option(1200.0, "Limit for one answer.", key="request_timeout", min=0.1, metavar="SECONDS")
    max_wait_s: float = option(
        600.0, "How long to retry a failing endpoint.", key="max_wait", min=0.0, metavar="SECONDS"
    )
    prompts_dir: Path | None = option(None, "Folder of prompts. [default: prompts]", panel="Paths", metavar="DIR")
    suite: str = option("core")
    problems: tuple[str | Problem, ...] = option((), key="problem", parse=_list_names)
    run: str | None = option(None)
    dtype: Precision | None = option(None)
    results_dir: Path | None = option(None)
    turns: int = 1
    strategy: str = ""
