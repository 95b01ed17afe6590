"""Calls the C functions of the emulator in each loaded extension, and copies host tensors in arguments to pages that
kernels cannot access, unless the extension moves tensors to the GPU itself or branches on their device.
"""

import ctypes
import json
import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.protocol import count_span
from harness.worker.emulated.tensors import (
    find_tensors,
    forget_device,
    is_on_host,
    is_pinned,
    map_tensors,
    mark_as_gpu,
    watch_gpu_tensors,
)

MAX_FINDINGS = 64
MAX_TEXT = 600


class EmulatorLink:
    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._libraries: list[ctypes.CDLL] = []
        self._reported: dict[tuple[Any, ...], dict[str, Any]] = {}  # by kernels in Python, each finding once per line

    def adopt(self, path: Path, module: Any, source: str) -> None:
        if not self._settings:
            return
        library = ctypes.CDLL(str(path))
        if not hasattr(library, "harness_emulator_take_findings"):
            return
        library.harness_emulator_take_findings.restype = ctypes.c_char_p
        library.harness_emulator_configure.argtypes = [ctypes.c_char_p]
        library.harness_emulator_configure.restype = None
        library.harness_emulator_error_text.restype = ctypes.c_char_p
        library.harness_emulator_keep_from_kernels.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.harness_emulator_keep_from_kernels.restype = None
        library.harness_emulator_place_on_gpu.argtypes = [ctypes.c_void_p]
        library.harness_emulator_place_on_gpu.restype = None
        self._libraries.append(library)
        _configure(library, self._settings)
        if library.harness_emulator_is_checked():
            watch_host_code(source, library.harness_emulator_place_on_gpu)
        if isinstance(module, ModuleType):
            watch_functions(module, source, library.harness_emulator_keep_from_kernels)

    def configure(self, changed: dict[str, Any]) -> None:
        """Apply settings also to extensions loaded later."""
        self._settings = {**self._settings, **changed}
        for library in self._libraries:
            _configure(library, self._settings)

    def setting(self, name: str) -> Any:
        return self._settings.get(name)

    def report(self, finding: dict[str, Any]) -> None:
        if len(self._reported) < MAX_FINDINGS:
            self._reported.setdefault((finding["check"], finding["line"], finding["kernel"]), finding)

    def report_compilation(
        self, check: str, kernel: str, message: str, *, decides: bool = True, file: str = "", line: int = 0
    ) -> None:
        self.report({
            "check": check, "severity": "error" if decides else "warning", "message": message,
            "file": file, "line": line, "kernel": kernel, "block": "", "thread": "",
        })  # fmt: skip

    def raise_error(self) -> None:
        """Raise a pending launch error, as torch does at its next use of the GPU."""
        for library in self._libraries:
            error = library.harness_emulator_take_error()
            if error:
                raise RuntimeError(f"CUDA error: {library.harness_emulator_error_text(error).decode()}")

    def take_findings(self) -> list[dict[str, Any]]:
        found = [one for library in self._libraries for one in json.loads(library.harness_emulator_take_findings())]
        found += self._reported.values()
        self._reported.clear()
        return [{name: _shorten(value) for name, value in one.items()} for one in found[:MAX_FINDINGS]]


def _configure(library: ctypes.CDLL, settings: dict[str, Any]) -> None:
    library.harness_emulator_configure(json.dumps(settings).encode())


def _shorten(value: Any) -> Any:
    return value[:MAX_TEXT] if isinstance(value, str) else value


_TO_DTYPE = re.compile(r"\.\s*to\s*\(\s*(?:(?:torch|at|c10)\s*::\s*)?k[A-Z]\w*\d*\s*\)")
_CUDA_TYPE = re.compile(r"kCUDA|kCPU")
_MOVES = re.compile(r"(?:\.|->)\s*(?:to|cuda|cpu|is_cpu)\s*\(")
_ASKS = re.compile(r"(?:\.|->)\s*is_cuda\s*\(")
_BRANCHES = re.compile(r"\b(?:if|while)\s*\([^;{}]*\b(?:is_cuda|kCUDA|kCPU)\b")
_MADE_ANYWHERE = re.compile(
    r"\b(?:torch|at)\s*::\s*(?:empty|zeros|ones|full|arange|eye|linspace|rand\w*|tensor|scalar_tensor|from_blob)\s*\("
    r"(?![^;]*(?:option|opts|kCUDA|device))"
    r"|\bkCPU\b|DeviceType\s*::\s*CPU|\bTensorOptions\s*\(\s*\)(?![^;]*\bdevice\b)"
)
_CHECK = re.compile(r"\b(?:TORCH_CHECK\w*|AT_ASSERTM?|TORCH_INTERNAL_ASSERT)\s*\([^;]*")

Keep = Callable[[int, int], None]  # address and bytes of host pages; 0 bytes: no longer

_ON_HOST = re.compile(r"#\s*include\s*<(?:thrust|cub)\b|\bcudaMallocManaged\b")


def watch_host_code(source: str, place_on_gpu: Callable[[int], None]) -> None:
    """Tell a checked build which memory is the GPU's. Sources with thrust or cub are skipped: they run as host code."""
    if can_be_guarded(source) and not _ON_HOST.search(source):
        watch_gpu_tensors(lambda tensor: place_on_gpu(tensor.data_ptr()) if _has_memory(tensor) else None)


def watch_functions(module: Any, source: str, keep: Keep) -> None:
    guards = can_be_guarded(source)
    returns_on_gpu = guards and not _MADE_ANYWHERE.search(source)
    for name, function in list(vars(module).items()):
        if callable(function) and not isinstance(function, type) and not name.startswith("__"):
            watched = (
                _watch(function, keep, returns_on_gpu=returns_on_gpu) if guards else _forget_result_device(function)
            )
            setattr(module, name, watched)


def _forget_result_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark results as of unknown device: moving a host tensor to the GPU in C++ returns the same tensor here."""

    def forget(tensor: torch.Tensor) -> torch.Tensor:
        return forget_device(tensor) if tensor.layout is torch.strided and is_on_host(tensor) else tensor

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return map_tensors(forget, function(*args, **kwargs))

    return call


def can_be_guarded(source: str) -> bool:
    text = _TO_DTYPE.sub(lambda found: found[0] if _CUDA_TYPE.search(found[0]) else "", source)
    return not (_MOVES.search(text) or _BRANCHES.search(text) or _ASKS.search(_CHECK.sub("", text)))


def _watch(function: Callable[..., Any], keep: Keep, *, returns_on_gpu: bool) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        is_all_on_gpu = True
        with ExitStack() as lent:

            def lend(tensor: torch.Tensor) -> torch.Tensor:
                nonlocal is_all_on_gpu
                if not is_on_host(tensor) or is_pinned(tensor):
                    return tensor
                is_all_on_gpu = False
                return lent.enter_context(_lend(tensor, keep)) if _has_memory(tensor) else tensor

            args, kwargs = map_tensors(lend, (args, kwargs))
            result = function(*args, **kwargs)
        if returns_on_gpu and is_all_on_gpu:
            mark_as_gpu(find_tensors(result))
        return result

    return call


def _has_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() > 0


@contextmanager
def _lend(tensor: torch.Tensor, keep: Keep) -> Iterator[torch.Tensor]:
    elements = count_span(tensor.shape, tensor.stride())
    pages = mmap.mmap(-1, elements * tensor.element_size())
    flat = tensor.detach().as_strided((elements,), (1,))
    held = torch.frombuffer(pages, dtype=tensor.dtype)
    held.copy_(flat)
    lent = held.as_strided(tensor.shape, tensor.stride())
    address, size_bytes = lent.data_ptr(), -(-len(pages) // mmap.PAGESIZE) * mmap.PAGESIZE
    keep(address, size_bytes)
    try:
        yield lent
    finally:
        keep(address, 0)
        with torch.no_grad():
            flat.copy_(held)
