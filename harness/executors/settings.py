from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from harness.builder.cache import DEFAULT_LIMIT_BYTES, read_cache_size
from harness.builder.toolchain import Toolchain
from harness.domain.options import option
from harness.evaluation.settings import EvaluationSettings
from harness.hardware.gpus import find_gpu_model
from harness.problems.watched_process import DEFAULT_LIMIT_S
from harness.sandbox.policy import Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings(EvaluationSettings):
    """`memory_bytes`: to plan with (None: all free). `measurements`: folder of peaks and floors (None: usual)."""

    title: ClassVar[str] = "Sandbox and builds"

    device: str = option(
        "auto",
        "auto, cpu, emulated, cuda or cuda:0,1. auto: the CPU for cpp, else all GPUs, or emulated.",
        panel="Evaluation",
        metavar="DEVICES",
    )
    gpu: str | None = option(None, "GPU to emulate. [default: A100]", panel="Evaluation", metavar="NAME")
    check_kernels: bool | None = option(
        None,
        "Check kernels for races, out-of-bounds accesses and barrier misuse. [default: if emulated]",
        key="check",
        panel="Evaluation",
    )
    reference_timeout_s: float = option(
        DEFAULT_LIMIT_S,
        "Limit for each step of a reference: import, construction, inputs, call.",
        key="reference_timeout",
        panel="Evaluation",
        min=0.1,
        metavar="SECONDS",
    )
    build_timeout_s: float = option(600.0, "Limit for one build.", key="build_timeout", min=1.0, metavar="SECONDS")
    architecture: str | None = option(
        None, "CUDA architecture. [default: the GPU's, or 9.0a]", key="arch", metavar="X.Y"
    )
    jobs: int | None = option(None, "Builds at a time. [default: one per core]", min=1, metavar="N")
    isolation: Literal["auto", "none"] = option(
        "auto", "none disables the sandbox; only for trusted code.", key="confinement"
    )
    max_cache_bytes: int = option(
        DEFAULT_LIMIT_BYTES,
        "Limit of the build cache. [default: 20G]",
        key="cache_size",
        kind=str | None,
        parse=read_cache_size,
        metavar="SIZE",
    )
    cache: Path | None = option(
        None, "Build cache. [default: ~/.cache/harness/builds]", key="cache_dir", panel="Paths", metavar="DIR"
    )
    memory_bytes: int | None = None
    measurements: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown GPU, even if none is emulated."""
        EvaluationSettings.__post_init__(self)
        if self.gpu is not None:
            find_gpu_model(self.gpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    settings: LocalSettings
    toolchain: Toolchain
    isolation: Isolation
