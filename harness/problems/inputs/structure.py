"""Finds inputs with structure (triangular, symmetric, normalised, copies), on which legitimate programs may rely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import torch
from torch import Tensor

from harness.problems.operators import OperatorWatch, name_operator
from harness.tensors.trees import list_tensors

DRAWS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "uniform_", "normal_", "random_", "ones",
    "zeros", "ones_like", "zeros_like",
}  # fmt: skip
ELEMENTWISE = {
    "empty", "empty_like", "new_empty", "mul", "add", "sub", "rsub", "div", "neg", "clone", "detach", "_to_copy",
    "view", "reshape", "_unsafe_view", "transpose", "permute", "t", "unsqueeze", "squeeze",
}  # fmt: skip


class DrawWatch(OperatorWatch):  # type: ignore[no-untyped-call]
    """Which draws the memory of each tensor comes from, if only by operators that change each element by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._count = count()
        self._draws: dict[int, set[int]] = {}  # by memory
        self._structured: set[int] = set()  # memory; also what was read for it
        self._kept: list[Tensor] = []  # so that no memory is used again

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, read, made = name_operator(operator), list_tensors([args, kwargs]), list_tensors(result)
        self._kept += read + made
        sources, results = {_memory_of(tensor) for tensor in read}, {_memory_of(tensor) for tensor in made}
        is_known = name in DRAWS or (name.removesuffix("_") in ELEMENTWISE and len(read) <= 1)
        if not is_known or (sources & self._structured and name not in DRAWS):
            self._structured |= sources | results
        drawn = {next(self._count)} if name in DRAWS else set().union(*(self._draws.get(one, ()) for one in sources))
        self._draws.update(dict.fromkeys(results, drawn))

    def find_structured(self, tensors: Sequence[Tensor]) -> Iterator[int]:
        """Positions of the tensors whose elements are not drawn one by one, and independently of other tensors."""
        draws = [self._draws.get(_memory_of(tensor), set()) for tensor in tensors]
        uses = Counter(one for drawn in draws for one in drawn)
        for place, (tensor, drawn) in enumerate(zip(tensors, draws, strict=True)):
            is_shared = any(uses[one] > 1 for one in drawn)
            if not drawn or is_shared or _memory_of(tensor) in self._structured:
                yield place


def _memory_of(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)
