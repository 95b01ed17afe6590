"""Builds the forwarding driver library of worker processes, see `harness/worker/recorder/driver`."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.domain import HarnessError

SOURCES = Path(__file__).resolve().parents[2] / "worker" / "recorder" / "driver"
DRIVER = "libcuda.so.1"
BUILD_TIMEOUT_S = 120.0
# Calls without a hook of the library that put work on the device are named in a recording, which does not hold them;
# graphs that others change cannot be recorded.
_WORK = re.compile(
    "cu(Launch|Memcpy|Memset|Mem(Prefetch|Discard|Batch|MapArray)|Stream(Write|Wait|Batch|Begin|AddCallback|AttachMem)|"
    "(Signal|Wait)External|Graphics(Unm|M)ap|(Tex|Surf)ObjectCreate)"
)
_GRAPH_CHANGE = re.compile("cuGraph(Exec.*(Set|Update)|NodeSetEnabled)")
# For x86-64. Arguments of the note: the number of the slot and the first argument; registers are saved around it.
_NOTE = """\
  push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; sub $8, %rsp
  mov %rdi, %rsi
  mov ${slot}, %edi
  call harness_note@PLT
  add $8, %rsp; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi
1:
"""
_UNLESS_RECORDING = "  cmpb $0, harness_is_recording(%rip)\n  je 1f\n"


@cache
def find_driver_library(folder: Path) -> Path:
    """Raises HarnessError with the reason of a failed build."""
    real = find_real_driver()
    facts = (str(real), str(real.stat().st_size), str(real.stat().st_mtime_ns), platform.machine())
    sources = (path.read_bytes() for path in (*sorted(SOURCES.glob("*.*")), Path(__file__)))
    digest = sha256(b"\0".join([*sources, *map(str.encode, facts)]))
    target = folder / f"driver-{digest.hexdigest()[:24]}" / DRIVER
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.parent.chmod(0o755)  # workers may run as another user
        _build(real, target)
    return target


def find_real_driver() -> Path:
    """Raises HarnessError."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError as error:
        raise HarnessError(f"the NVIDIA driver library {DRIVER} is not installed") from error
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.rpartition(" ")[2])
        if path.name.startswith("libcuda.so"):
            return Path(os.path.realpath(path))
    raise HarnessError(f"the file of {DRIVER} was not found")


def write_stubs(names: Sequence[str]) -> str:
    """Write assembler: per driver function one that jumps to its slot, and tables of all."""
    functions = [
        f".globl {name}\n.type {name},@function\n{name}:\n  endbr64\n"
        f"{_write_note(name, slot)}  jmp *harness_slots+{8 * slot}(%rip)"
        for slot, name in enumerate(names)
    ]
    hidden = ("harness_slots", "harness_stubs", "harness_names", "harness_count", "harness_kinds")
    return "\n".join(
        [
            *(f".globl {name}\n.hidden {name}" for name in (*hidden, "harness_is_recording")),
            ".text", *functions,
            '.section .data.rel.ro,"aw"\n.balign 8\nharness_stubs:', *(f"  .quad {name}" for name in names),
            "harness_names:", *(f"  .quad name_{slot}" for slot in range(len(names))),
            ".section .rodata", *(f'name_{slot}: .asciz "{name}"' for slot, name in enumerate(names)),
            "harness_kinds:", *(f"  .byte {_find_kind(name)}" for name in names),
            f".balign 4\nharness_count: .long {len(names)}",
            f".bss\n.balign 8\nharness_slots: .zero {8 * len(names)}",
            '.section .note.GNU-stack,"",@progbits\n',
        ]
    )  # fmt: skip


def _find_kind(name: str) -> int:
    return 1 if _WORK.match(name) else 2 if _GRAPH_CHANGE.match(name) else 0


def _write_note(name: str, slot: int) -> str:
    return ("", _UNLESS_RECORDING + _NOTE, _NOTE)[_find_kind(name)].format(slot=slot)


def _build(real: Path, target: Path) -> None:
    if platform.machine() != "x86_64":
        raise HarnessError(f"there is no forwarding driver library for processors of kind {platform.machine()}")
    include, compiler = find_header_folder(), shutil.which(os.environ.get("CXX", "g++")) or "c++"
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        stubs, made = Path(folder) / "stubs.S", Path(folder) / DRIVER
        lines = _run("nm", "-D", "--defined-only", str(real)).splitlines()
        names = {line.split()[-1].partition("@")[0] for line in lines if line.split()[-2] in "TWi"}
        stubs.write_text(write_stubs(sorted(name for name in names if name.startswith("cu"))))
        _run(
            compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", f'-DHARNESS_REAL_DRIVER="{real}"',
            f"-I{include}", str(SOURCES / "driver.cpp"), str(stubs), f"-Wl,-soname,{DRIVER}", "-Wl,-Bsymbolic",
            "-ldl", "-o", str(made),
        )  # fmt: skip
        made.chmod(0o755)
        made.rename(target)


def find_header_folder() -> Path:
    from harness.builder.toolchain import find_cuda_home

    packages = ("nvidia/cu13", "nvidia/cuda_runtime", "triton/backends/nvidia")
    packaged = (Path(entry) / package / "include" for package in packages for entry in sys.path)
    for folder in (Path(find_cuda_home() or "/usr/local/cuda") / "include", *packaged):
        if (folder / "cuda.h").exists():
            return folder
    raise HarnessError("cuda.h was not found in the CUDA toolkit or in torch's packages")


def _run(*command: str) -> str:
    """Raises HarnessError."""
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=BUILD_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        raise HarnessError(f"{command[0]} failed: {error.stderr[-600:]}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(f"{command[0]} failed: {error}") from error
    return finished.stdout
