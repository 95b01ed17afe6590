"""Records earlier tensor values, without copies of large ones."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from harness.tensors.outputs import Difference, find_difference
from harness.tensors.slices import count_bytes, cut_slices, has_same_bits

KEPT_BYTES = 64 << 20  # of tensors that are kept themselves
WORD_BYTES, ROW_WORDS = 4, 1 << 20
ROWS_AT_ONCE = {"cpu": 1, "cuda": 16}  # on a CPU few enough for its cache, on a GPU enough to fill it


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """`digests` has one number per slice of large tensors, with a secret key. `skipped` are positions of tensors that
    may change.
    """

    elements: int
    tensors: tuple[Tensor, ...] = ()
    digests: tuple[Tensor, ...] = ()
    skipped: frozenset[int] = frozenset()

    @classmethod
    def of(cls, tensors: Sequence[Tensor], skipped: frozenset[int] = frozenset()) -> TensorRecord:
        kept = _leave_out(tensors, skipped)
        elements = sum(tensor.numel() for tensor in kept)
        if count_bytes(kept) <= KEPT_BYTES:
            return cls(elements, tensors=kept, skipped=skipped)
        return cls(elements, digests=tuple(map(_digest, kept)), skipped=skipped)

    def list_changed(self, now: Sequence[Tensor]) -> list[int]:
        """Return positions. NaN equals itself; 0.0 differs from -0.0. The devices may differ."""
        places = [at for at in range(len(now)) if at not in self.skipped]
        known = self.digests or self.tensors
        return [at for at, before in zip(places, known, strict=True) if not self._is_same(now[at], before)]

    def _is_same(self, now: Tensor, before: Tensor) -> bool:
        return torch.equal(_digest(now), before) if self.digests else has_same_bits(now, before)

    def find_difference(self, now: Sequence[Tensor]) -> Difference | None:
        """Return None for equal bits."""
        if not self.digests:
            return find_difference(_leave_out(now, self.skipped), self.tensors)
        return Difference(differing=None, elements=self.elements) if self.list_changed(now) else None


def _leave_out(tensors: Sequence[Tensor], skipped: frozenset[int]) -> tuple[Tensor, ...]:
    return tuple(tensor for at, tensor in enumerate(tensors) if at not in skipped)


def _digest(tensor: Tensor) -> Tensor:
    """Sum rows of words times random numbers, modulo 2^64: equal by chance once in 2^32."""
    key = _draw_key(ROW_WORDS).to(tensor.device)  # not kept there: it could hold a far larger block of torch's cache
    item_bytes = tensor.element_size()
    size_bytes = tensor.numel() * item_bytes
    word_bytes = 1 if size_bytes % WORD_BYTES else WORD_BYTES
    row_bytes = ROW_WORDS * word_bytes
    sums = torch.zeros(-(-size_bytes // row_bytes), dtype=torch.int64, device=tensor.device)
    elements = ROWS_AT_ONCE[tensor.device.type] * row_bytes // item_bytes
    for first, (part,) in cut_slices(tensor.detach(), elements=elements):
        words, row = _as_words(part, word_bytes), first * item_bytes // row_bytes
        rows, rest = divmod(words.numel(), ROW_WORDS)
        sums[row : row + rows] = (words[: rows * ROW_WORDS].view(rows, ROW_WORDS) * key).sum(dim=1)
        if rest:  # the tensor's end
            sums[row + rows] = (words[-rest:] * key[:rest]).sum()
    return sums.cpu()


def _as_words(part: Tensor, word_bytes: int) -> Tensor:
    if word_bytes == 1:
        return part.view(torch.uint8).long()
    is_aligned = (part.storage_offset() * part.element_size()) % WORD_BYTES == 0
    return (part if is_aligned else part.clone()).view(torch.int32).long()


@cache
def _draw_key(words: int) -> Tensor:
    generator = torch.Generator().manual_seed(secrets.randbits(62))
    limits = torch.iinfo(torch.int64)
    return torch.randint(limits.min, limits.max, (words,), generator=generator)
