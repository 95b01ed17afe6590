"""Facts about this machine's software and CPU for prompts, read without importing torch."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from harness.languages import LANGUAGES

UNKNOWN = "not stated"
_SIMD = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


def read_host_facts(cpu_info: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Versions, with those of languages by their names, and the CPU; unknown facts read "not stated"."""
    torch_version, cuda_version = _read_torch_versions()
    cpu = cpu_info.read_text(errors="replace") if cpu_info.is_file() else ""
    return {
        "python": platform.python_version(),
        "torch": torch_version,
        "cuda": cuda_version,
        **{rules.name: rules.version or UNKNOWN for rules in LANGUAGES.values() if rules.package},
        "compiler": _read_compiler(os.environ.get("CXX", "g++")),
        "cpu": _find(r"^model name\s*:\s*(.+)$", cpu),
        "cores": str(len(os.sched_getaffinity(0))),
        "simd": _read_simd(cpu),
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


def _read_simd(cpu: str) -> str:
    flags = _find(r"^(?:flags|Features)\s*:\s*(.+)$", cpu).split()
    return next((name for name in _SIMD if name in flags), UNKNOWN)


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else UNKNOWN
