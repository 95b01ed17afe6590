from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.builder import Toolchain
from harness.builder.cache import DEFAULT_LIMIT_BYTES
from harness.evaluation.settings import EvaluationSettings
from harness.hardware.gpus import find_gpu_model
from harness.problems.steps import DEFAULT_LIMIT_S
from harness.sandbox.policy import Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """`device`: see `find_devices`; `jobs`: concurrent builds; `architecture`: as in TORCH_CUDA_ARCH_LIST; `gpu`: to
    emulate; `check_kernels` None: if emulated; `memory_bytes`: to plan with (None: all free). `reference_timeout_s`:
    per step of a problem file, process-wide; `measurements`: folder of the device's peaks and noise floors (None: the
    machine's)."""

    device: str = "auto"
    gpu: str | None = None
    memory_bytes: int | None = None
    check_kernels: bool | None = None
    architecture: str | None = None
    jobs: int | None = None
    cache: Path | None = None
    measurements: Path | None = None
    isolation: str = "auto"
    build_timeout_s: float = 600.0
    reference_timeout_s: float = DEFAULT_LIMIT_S
    max_cache_bytes: int = DEFAULT_LIMIT_BYTES
    judge: EvaluationSettings = field(default_factory=EvaluationSettings)

    def __post_init__(self) -> None:
        """Raises UsageError for an unknown GPU, whether or not one is emulated."""
        if self.gpu is not None:
            find_gpu_model(self.gpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Sent to the evaluator processes."""

    settings: LocalSettings
    toolchain: Toolchain
    isolation: Isolation
