"""Protects host tensors from kernels, in a worker of the emulated device.

Host tensors in arguments of extensions are copied to pages that kernels cannot access. An extension that moves tensors
to the GPU itself, or branches on a tensor's device, is not guarded.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
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
    """Tell a checked build which memory host code cannot access. Sources that use thrust or cub are skipped: their
    algorithms run as host code here.
    """
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

            named = {name: map_tensors(lend, value) for name, value in kwargs.items()}
            result = function(*map_tensors(lend, args), **named)
        if returns_on_gpu and is_all_on_gpu:
            mark_as_gpu(find_tensors((result,)))
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
