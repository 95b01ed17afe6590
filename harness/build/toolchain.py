"""Which compilers are here, in which versions, and for which GPU architecture they are to build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

DEFAULT_ARCHITECTURE = "9.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Versions are the compilers' own words; None where there is none. `architecture` as in TORCH_CUDA_ARCH_LIST."""

    compiler: str | None
    compiler_version: str | None
    nvcc_version: str | None
    ninja_version: str | None
    torch_version: str
    torch_cuda: str | None
    python_abi: str
    architecture: str

    @property
    def can_build_cuda(self) -> bool:
        return self.nvcc_version is not None and self.torch_cuda is not None


def probe_toolchain(architecture: str | None = None) -> Toolchain:
    """Asks the compilers. The architecture is the given one, that of this machine's GPU, or 9.0."""
    import sysconfig

    import torch

    compiler = os.environ.get("CXX", "c++" if shutil.which("c++") else "g++")
    return Toolchain(
        compiler=shutil.which(compiler),
        compiler_version=_first_line([compiler, "--version"]),
        nvcc_version=_nvcc_version(),
        ninja_version=_first_line([ninja_program(), "--version"]),
        torch_version=torch.__version__,
        torch_cuda=torch.version.cuda,
        python_abi=str(sysconfig.get_config_var("SOABI")),
        architecture=architecture or _machine_architecture(),
    )


def ninja_program() -> str:
    """The ninja of the Python package, which is in no PATH when an environment was not activated."""
    found = shutil.which("ninja")
    if found is not None:
        return found
    import ninja

    return os.path.join(ninja.BIN_DIR, "ninja")  # noqa: PTH118 - a path for the environment, not for us


def _nvcc_version() -> str | None:
    from torch.utils.cpp_extension import CUDA_HOME

    program = os.path.join(CUDA_HOME, "bin", "nvcc") if CUDA_HOME else "nvcc"  # noqa: PTH118
    found = re.search(r"release ([\d.]+), V([\d.]+)", _output([program, "--version"]) or "")
    return found[2] if found else None


def _machine_architecture() -> str:
    import torch

    if not torch.cuda.is_available():
        return DEFAULT_ARCHITECTURE
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def _first_line(command: list[str]) -> str | None:
    output = _output(command)
    return output.splitlines()[0] if output else None


def _output(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
