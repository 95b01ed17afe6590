"""Chooses one pass over large tensors: torch's operators need some forty, most of the time with gigabytes."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

LEAST_ELEMENTS = 1 << 26  # below, compiling the kernels, once per machine, takes longer than it saves
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_log = logging.getLogger(__name__)


def find_kernels(*tensors: Tensor, dtypes: Sequence[torch.dtype] = DTYPES) -> ModuleType | None:
    """Return `single_pass_kernels` if it can measure these tensors, which have one shape, dtype and device."""
    fits = all(
        one.is_cuda and one.is_contiguous() and one.dtype in dtypes and one.numel() >= LEAST_ELEMENTS for one in tensors
    )
    return _load_kernels() if fits else None


def warm_up_kernels(device: torch.device) -> None:
    """Compile the kernels for the usual dtypes, or load them if that was done before on this machine."""
    if not (kernels := _load_kernels()):
        return
    with suppress(torch.OutOfMemoryError):  # the first evaluation reports it
        single, double = (
            torch.ones(kernels.TILE, dtype=dtype, device=device) for dtype in (torch.float32, torch.float64)
        )
        for values in (single, double):
            kernels.find_extremes(values)
            kernels.measure_others(values, 1.0)
        kernels.measure_errors(single, single, 0.5, 0.5, alone=True)
        kernels.sum_words(single.view(torch.int32), double.long())


@cache
def _load_kernels() -> ModuleType | None:
    """Triton may be missing, or unable to compile here, as without Python's headers."""
    try:
        from harness.tensors import single_pass_kernels

        single_pass_kernels.find_extremes(torch.ones(single_pass_kernels.TILE, device="cuda"))
    except Exception as error:  # noqa: BLE001 - of another package and its compiler
        _log.warning("large outputs are compared slowly, since Triton does not work here: %s", error)
        return None
    return single_pass_kernels
