"""Triton kernels that measure large tensors in one pass over each. `harness.tensors.single_pass` imports this module
where Triton works. A program takes a tile, and writes its part of each result in float64, or in int64 for digests.
"""

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, BLOCK = tl.constexpr(4), tl.constexpr(1024)  # of a tile
TILE = ROWS.value * BLOCK.value


def find_extremes(values: Tensor) -> tuple[float, float, int]:
    """Return the least and the largest value, at most and at least 0, and how many are NaN or infinite."""
    parts = _run(_find_extremes, values, results=3)
    return min(float(parts[:, 0].min()), 0.0), max(float(parts[:, 1].max()), 0.0), int(parts[:, 2].sum())


def measure_others(values: Tensor, extreme: float) -> tuple[int, float]:
    """Return how many values are `extreme`, and the sum of the absolute values of the others."""
    given = torch.tensor(extreme, dtype=torch.float64, device=values.device)  # a float would become float32
    count, size = _run(_measure_others, values, given, results=2).sum(0).tolist()
    return int(count), size


def measure_errors(own: Tensor, found: Tensor, share: float, least: float, *, alone: bool) -> tuple[int, int, float]:
    """Return (errors above `share` of the magnitude plus `least`, or NaN; errors above a quarter of their value of
    `own`; sum of squared errors relative to the magnitude). The magnitude is the larger of the value and the squared
    mean of its block's roots, but for the first count the value if values count `alone`.
    """
    around = 0.0 if alone else 1.0
    failed, lost, squares = _run(_measure_errors, own, found, share, least, around, results=3).sum(0).tolist()
    return int(failed), int(lost), squares


def sum_words(words: Tensor, key: Tensor) -> Tensor:
    """Return sums of rows of 32-bit words times 64-bit numbers, modulo 2^64. `key` is a row, of whole tiles."""
    shape = triton.cdiv(words.numel(), key.numel()), key.numel() // TILE
    parts = torch.zeros(shape, dtype=torch.int64, device=words.device)
    return _launch(_sum_words, words, key, key.numel(), parts=parts).sum(dim=1)


def _run(kernel: triton.JITFunction, values: Tensor, *others: Tensor | float, results: int) -> Tensor:
    shape = triton.cdiv(values.numel(), TILE), results
    return _launch(kernel, values, *others, parts=torch.empty(shape, dtype=torch.float64, device=values.device))


def _launch(kernel: triton.JITFunction, values: Tensor, *others: Tensor | float, parts: Tensor) -> Tensor:
    with torch.cuda.device(values.device) if values.is_cuda else nullcontext():
        kernel[(triton.cdiv(values.numel(), TILE),)](values, *others, parts, values.numel())
    return parts


@triton.jit
def _load_tile(values, count):  # type: ignore[no-untyped-def]
    """Return a tile, in float32 if narrower, and which of its elements exist."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tile = tl.load(values + at, mask=at < count, other=0.0)
    if tile.dtype != tl.float64:
        tile = tile.to(tl.float32)
    return tile, at < count


@triton.jit
def _sum_words(words, key, row_words, parts, count):  # type: ignore[no-untyped-def]
    first = tl.program_id(0).to(tl.int64) * ROWS * BLOCK
    at = first + tl.arange(0, ROWS * BLOCK)
    tile = tl.load(words + at, mask=at < count, other=0).to(tl.int64)
    numbers = tl.load(key + first % row_words + tl.arange(0, ROWS * BLOCK))
    tl.store(parts + tl.program_id(0), tl.sum(tile * numbers, axis=0))


@triton.jit
def _find_extremes(values, parts, count):  # type: ignore[no-untyped-def]
    tile, _ = _load_tile(values, count)
    is_special = (tl.abs(tile) < float("inf")) == 0
    part = parts + tl.program_id(0) * 3
    tl.store(part, tl.min(tl.min(tile, axis=1), axis=0).to(tl.float64))
    tl.store(part + 1, tl.max(tl.max(tile, axis=1), axis=0).to(tl.float64))
    tl.store(part + 2, tl.sum(tl.sum(is_special.to(tl.int32), axis=1), axis=0).to(tl.float64))


@triton.jit
def _measure_others(values, extreme, parts, count):  # type: ignore[no-untyped-def]
    tile, exists = _load_tile(values, count)
    is_extreme = (tile == tl.load(extreme)) & exists
    sizes = tl.where(is_extreme, 0.0, tl.abs(tile)).to(tl.float64)
    part = parts + tl.program_id(0) * 2
    tl.store(part, tl.sum(tl.sum(is_extreme.to(tl.int32), axis=1), axis=0).to(tl.float64))
    tl.store(part + 1, tl.sum(tl.sum(sizes, axis=1), axis=0))


@triton.jit
def _measure_errors(own, found, share, least, around, parts, count):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    ours, exists = _load_tile(own, count)
    theirs, _ = _load_tile(found, count)
    size, error = tl.abs(ours), tl.abs(theirs - ours)
    root = (tl.sum(tl.sqrt(size), axis=1) / BLOCK)[:, None]
    mean = root * root
    failed = ((error <= tl.maximum(size, mean * around) * share + least) == 0) & exists  # also NaN
    lost = error > size / 4
    relative = error / tl.maximum(tl.maximum(size, mean), 1.1754943508222875e-38)
    squares = (relative * relative).to(tl.float64)
    part = parts + tl.program_id(0) * 3
    tl.store(part, tl.sum(tl.sum(failed.to(tl.int32), axis=1), axis=0).to(tl.float64))
    tl.store(part + 1, tl.sum(tl.sum(lost.to(tl.int32), axis=1), axis=0).to(tl.float64))
    tl.store(part + 2, tl.sum(tl.sum(squares, axis=1), axis=0))
