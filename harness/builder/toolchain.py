import logging
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, STDOUT
from types import ModuleType
from typing import Any

from harness.builder.targets import name_architecture, require_architecture
from harness.hardware.host import cpu_name, list_gpus, read_cpu_flags, read_torch_build

DEFAULT_ARCHITECTURE = "9.0a"
DEFAULT_CUDA_HOME = "/usr/local/cuda"
_FACTS_FOR_NVCC = frozenset({"nvcc_version", "cuda_home", "architecture", "packaged_cuda_headers"})
LIBRARY_HEADERS = ("cublas_v2.h", "cublasLt.h", "cusolverDn.h", "cusparse.h")  # included by ATen/cuda


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Versions are as printed by the tools; None if missing. `architecture` is as in TORCH_CUDA_ARCH_LIST. `compiler`
    is its file, without links. `packaged_cuda_headers` are folders with CUDA headers that the toolkit lacks.
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

    def key_parts(self, *, nvcc: bool) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if nvcc or name not in _FACTS_FOR_NVCC}


def probe_toolchain(architecture: str | None = None) -> Toolchain:
    """`architecture` defaults to that of this machine's GPU, or 9.0a. Raises UsageError."""
    import sysconfig

    torch, cuda_home = read_torch_build(), find_cuda_home()
    compiler = find_compiler()
    found = shutil.which(compiler)
    return Toolchain(
        compiler=os.path.realpath(found) if found else None,
        compiler_version=read_compiler_version(compiler),
        nvcc_version=_nvcc_version(cuda_home),
        cuda_home=cuda_home,
        ninja_version=_first_line([ninja_program(), "--version"]),
        torch_version=torch.version,
        torch_cuda=torch.cuda,
        python_abi=str(sysconfig.get_config_var("SOABI")),
        architecture=require_architecture(architecture) if architecture else _machine_architecture(),
        cpu=f"{cpu_name()} {sha256(read_cpu_flags().encode()).hexdigest()[:12]}",
        packaged_cuda_headers=_find_packaged_cuda_headers(cuda_home),
    )


def find_compiler() -> str:
    return os.environ.get("CXX", "c++" if shutil.which("c++") else "g++")


def read_compiler_version(compiler: str) -> str | None:
    return _first_line([compiler, "--version"])


def ninja_program() -> str:
    """Resolve symbolic links, which builds may not see. The Python package's ninja may not be on PATH."""
    found = shutil.which("ninja")
    if found is not None:
        return str(Path(found).resolve())
    import ninja

    return str((Path(ninja.BIN_DIR) / "ninja").resolve())


def import_torch_extension() -> ModuleType:
    """Avoid torch's warning about a missing GPU; use our CUDA_HOME."""
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    from torch.utils import cpp_extension

    cpp_extension.CUDA_HOME = find_cuda_home()
    return cpp_extension


def find_cuda_home() -> str | None:
    """Return the toolkit that torch would choose. An nvcc that forwards to another toolkit selects that one."""
    if read_torch_build().cuda is None:
        return None
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home is None:
        nvcc = shutil.which("nvcc")
        home = str(Path(nvcc).parents[1] if nvcc else DEFAULT_CUDA_HOME)
        if not Path(home).exists():
            return None
    if any(Path(home).glob("lib*/libcudart.so*")):
        return home
    return _toolkit_of(str(Path(home) / "bin" / "nvcc")) or home


def _toolkit_of(nvcc: str) -> str | None:
    found = re.search(r"^#\$ TOP=(.+)$", _output([nvcc, "--dryrun", "-x", "cu", "/dev/null", "-c"]) or "", re.MULTILINE)
    return os.path.realpath(found[1]) if found else None


def _find_packaged_cuda_headers(home: str | None) -> tuple[str, ...]:
    """Return include folders of torch's CUDA packages, if the toolkit lacks libraries that ATen/cuda includes."""
    if home is None or all((Path(home) / "include" / header).exists() for header in LIBRARY_HEADERS):
        return ()
    folders = [
        path.parent
        for entry in sys.path
        for header in LIBRARY_HEADERS
        for path in sorted(Path(entry).glob(f"nvidia/*/include/{header}"))
    ]
    return tuple(dict.fromkeys(map(str, folders)))


def _nvcc_version(home: str | None) -> str | None:
    program = os.path.join(home, "bin", "nvcc") if home else "nvcc"  # noqa: PTH118
    found = re.search(r"release ([\d.]+), V([\d.]+)", _output([program, "--version"]) or "")
    return found[2] if found else None


def _machine_architecture() -> str:
    gpus = list_gpus()
    return name_architecture(gpus[0].capability) if gpus else DEFAULT_ARCHITECTURE


def _first_line(command: list[str]) -> str | None:
    output = _output(command)
    return output.splitlines()[0] if output else None


def _output(command: list[str]) -> str | None:
    try:
        finished = subprocess.run(command, stdout=PIPE, stderr=STDOUT, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout
