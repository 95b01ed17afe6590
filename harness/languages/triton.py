"""Triton kernels: Python functions that Triton compiles at their first launch."""

import re

from harness.domain import EMULATED
from harness.languages.rules import LanguageRules, list_decorated

EMULATED_SINCE = (3, 6)  # of its interpreter
MARKS = ("triton.jit", "from triton import")
_DECORATORS = ("triton.jit", "jit", "triton.runtime.jit")
# Each reads all files of the compiler for the keys of its cache, and keeps the result.
KEYS = ("triton.runtime.cache:triton_key", "triton.compiler.compiler:triton_key")
_IN_TEXT = re.compile(r"@triton\.jit[^\n]*\n\s*def\s+(\w+)")  # of kernels that the program makes by `exec`

_TRIAL = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def increment(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size) + 1, mask=at < size)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        increment[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out
"""


def _detects(source: str) -> bool:
    return any(mark in source for mark in MARKS) and bool(_list_kernels(source))


def _list_kernels(source: str) -> tuple[str, ...]:
    """Return functions decorated by or passed to `triton.jit`, under any name of the import."""
    return list_decorated(source, _DECORATORS) or tuple(_IN_TEXT.findall(source))


def _find_missing(emulated: bool) -> str | None:
    found = RULES.version
    if found is None:
        return "Triton is not installed: install torch with CUDA, which includes it, or run: pip install triton"
    if emulated and tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < EMULATED_SINCE:
        return f"the emulated device needs Triton {'.'.join(map(str, EMULATED_SINCE))} or newer, found {found}"
    return None


RULES = LanguageRules(
    name="triton",
    title="Triton",
    task="Triton kernels of your own: functions decorated with `@triton.jit`",
    devices=("cuda", EMULATED),
    detects=_detects,
    list_kernels=_list_kernels,
    parts=("Triton",),
    word="triton",
    preloads=("triton.language", "triton.compiler", *KEYS),
    emulation_preloads=("harness.worker.emulated.triton.preloaded",),
    modules=frozenset(("triton",)),
    package="triton",
    emulation_cost=10,
    compiles_ahead=True,
    find_missing=_find_missing,
    trial=_TRIAL,
)
