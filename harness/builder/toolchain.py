from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, STDOUT
from types import ModuleType

DEFAULT_ARCHITECTURE = "9.0"
LIBRARY_HEADERS = ("cublas_v2.h", "cublasLt.h", "cusolverDn.h", "cusparse.h")  # included by ATen/cuda


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Versions as printed by the tools; None if missing. `architecture` as in TORCH_CUDA_ARCH_LIST.

    `packaged_cuda_headers`: folders with CUDA library headers that the toolkit lacks.
    """

    compiler: str | None
    compiler_version: str | None
    nvcc_version: str | None
    cuda_home: str | None
    ninja_version: str | None
    torch_version: str
    torch_cuda: str | None
    python_abi: str
    architecture: str
    cpu: str = ""  # affects -march=native
    packaged_cuda_headers: tuple[str, ...] = ()

    @property
    def can_build_cuda(self) -> bool:
        return self.nvcc_version is not None and self.torch_cuda is not None


def probe_toolchain(architecture: str | None = None) -> Toolchain:
    """`architecture`: the given one, or this machine's GPU, or 9.0."""
    import sysconfig

    import torch

    compiler = os.environ.get("CXX", "c++" if shutil.which("c++") else "g++")
    return Toolchain(
        compiler=shutil.which(compiler),
        compiler_version=_first_line([compiler, "--version"]),
        nvcc_version=_nvcc_version(),
        cuda_home=import_torch_extension().CUDA_HOME,
        ninja_version=_first_line([ninja_program(), "--version"]),
        torch_version=torch.__version__,
        torch_cuda=torch.version.cuda,
        python_abi=str(sysconfig.get_config_var("SOABI")),
        architecture=architecture or _machine_architecture(),
        cpu=_describe_cpu(),
        packaged_cuda_headers=_find_packaged_cuda_headers(),
    )


def ninja_program() -> str:
    """The Python package's ninja is not on PATH in an environment that is not activated."""
    found = shutil.which("ninja")
    if found is not None:
        return found
    import ninja

    return os.path.join(ninja.BIN_DIR, "ninja")  # noqa: PTH118 - a path for the environment, not for us


def import_torch_extension() -> ModuleType:
    """Without torch's warning about a missing GPU; corrects CUDA_HOME if nvcc forwards to another toolkit."""
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    from torch.utils import cpp_extension

    home = cpp_extension.CUDA_HOME
    if home is not None and not any(Path(home).glob("lib*/libcudart.so*")):
        cpp_extension.CUDA_HOME = _toolkit_of(str(Path(home) / "bin" / "nvcc")) or home
    return cpp_extension


def _toolkit_of(nvcc: str) -> str | None:
    found = re.search(r"^#\$ TOP=(.+)$", _output([nvcc, "--dryrun", "-x", "cu", "/dev/null", "-c"]) or "", re.MULTILINE)
    return os.path.realpath(found[1]) if found else None


def _find_packaged_cuda_headers() -> tuple[str, ...]:
    """Include folders of torch's CUDA packages, if the toolkit lacks libraries that ATen/cuda includes."""
    home = import_torch_extension().CUDA_HOME
    if home is None or all((Path(home) / "include" / header).exists() for header in LIBRARY_HEADERS):
        return ()
    folders = [
        path.parent
        for entry in sys.path
        for header in LIBRARY_HEADERS
        for path in sorted(Path(entry).glob(f"nvidia/*/include/{header}"))
    ]
    return tuple(dict.fromkeys(map(str, folders)))


def _nvcc_version() -> str | None:
    home = import_torch_extension().CUDA_HOME
    program = os.path.join(home, "bin", "nvcc") if home else "nvcc"  # noqa: PTH118
    found = re.search(r"release ([\d.]+), V([\d.]+)", _output([program, "--version"]) or "")
    return found[2] if found else None


def _machine_architecture() -> str:
    import torch

    if not torch.cuda.is_available():
        return DEFAULT_ARCHITECTURE
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def _describe_cpu() -> str:
    facts: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    flags = facts.get("flags", facts.get("Features", ""))
    return f"{facts.get('model name', os.uname().machine)} {sha256(flags.encode()).hexdigest()[:12]}"


def _first_line(command: list[str]) -> str | None:
    output = _output(command)
    return output.splitlines()[0] if output else None


def _output(command: list[str]) -> str | None:
    try:
        finished = subprocess.run(command, stdout=PIPE, stderr=STDOUT, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout
