"""Facts about a GPU or this machine's CPU for prompts. Nothing is measured here."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from harness.hardware.cuda_driver import list_gpus
from harness.hardware.gpus import GpuModel, find_gpu_model, match_gpu_model
from harness.languages import LANGUAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU for prompt templates. `arch` is the compute capability; unknown rates are None. GB and GB/s are powers of
    ten, KB of shared memory are KiB, as in datasheets.
    """

    name: str
    arch: str
    memory_gb: float
    sms: int
    shared_per_sm_kb: int
    shared_per_block_kb: int
    l2_mb: float
    bandwidth_gb_s: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    bf16_tflops: float | None = None


def find_gpu(name: str) -> GpuFacts:
    """Raises UsageError with the nearest name."""
    return _describe(find_gpu_model(name))


def _describe(model: GpuModel) -> GpuFacts:
    return GpuFacts(
        name=model.name,
        arch=model.architecture,
        memory_gb=model.total_memory_bytes // 10**9,
        sms=model.multiprocessors,
        shared_per_sm_kb=model.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=model.max_shared_bytes_per_block // 1024,
        l2_mb=model.l2_bytes // 2**20,
        **_list_rates(model),
    )


def read_gpu_facts() -> GpuFacts | None:
    gpus = list_gpus()
    if not gpus:
        return None
    gpu, model = gpus[0], match_gpu_model(gpus[0].name)
    return GpuFacts(
        name=gpu.name,
        arch=gpu.architecture,
        memory_gb=round(gpu.memory_bytes / 1e9),
        sms=gpu.multiprocessors,
        shared_per_sm_kb=gpu.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=gpu.shared_bytes_per_block // 1024,
        l2_mb=round(gpu.l2_bytes / 2**20),
        **(_list_rates(model) if model else {}),
    )


def _list_rates(model: GpuModel) -> dict[str, float | None]:
    return {name: getattr(model, name) for name in ("bandwidth_gb_s", "fp32_tflops", "tf32_tflops", "bf16_tflops")}


UNKNOWN = "not stated"
_SIMD = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


def read_host_facts(cpu_info: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Versions, with those of languages by their names, and the CPU; unknown facts read "not stated"."""
    torch_version, cuda_version = _read_torch_versions()
    cpu = cpu_info.read_text(errors="replace") if cpu_info.is_file() else ""
    flags = _find(r"^(?:flags|Features)\s*:\s*(.+)$", cpu).split()
    return {
        "python": platform.python_version(),
        "torch": torch_version,
        "cuda": cuda_version,
        **{rules.name: rules.version or UNKNOWN for rules in LANGUAGES.values() if rules.package},
        "compiler": _read_compiler(os.environ.get("CXX", "g++")),
        "cpu": _find(r"^model name\s*:\s*(.+)$", cpu),
        "cores": str(len(os.sched_getaffinity(0))),
        "simd": next((name for name in _SIMD if name in flags), UNKNOWN),
    }


def _read_torch_versions() -> tuple[str, str]:
    try:
        torch = distribution("torch")
    except PackageNotFoundError:
        return UNKNOWN, UNKNOWN
    path = Path(str(torch.locate_file("torch/version.py")))
    text = path.read_text(errors="replace") if path.is_file() else ""
    return torch.version, _find(r"^cuda\b[^=]*=\s*'([^']+)'", text)


def _read_compiler(command: str) -> str:
    if shutil.which(command) is None:
        return UNKNOWN
    try:
        answer = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return answer.stdout.split("\n", 1)[0].strip() or UNKNOWN


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else UNKNOWN
