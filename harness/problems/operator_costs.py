"""Counts what the operators of a reference compute."""

from collections import Counter
from contextlib import suppress
from typing import Any

import torch

from harness.problems.operators import OperatorWatch
from harness.tensors.values import list_tensors


class OperatorCosts(OperatorWatch):  # type: ignore[no-untyped-call]
    """Counts result elements, and floating-point operations like torch's `FlopCounterMode`.

    `flops` is a lower bound: an operator whose formula rejects its arguments counts as zero (grouped queries, torch
    2.11).
    """

    def __init__(self) -> None:
        from torch.utils.flop_counter import flop_registry  # imports triton

        super().__init__()
        self._registry = flop_registry
        self.elements = 0
        self.flops_by_dtype = Counter[str]()

    @property
    def flops(self) -> int:
        return self.flops_by_dtype.total()

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        for one in result if isinstance(result, list | tuple) else (result,):
            if isinstance(one, torch.Tensor):
                self.elements += one.numel()
        count = self._registry.get(getattr(operator, "_overloadpacket", None))
        if count is not None:
            with suppress(AssertionError):
                self.flops_by_dtype[_name_format(operator, args)] += count(*args, **kwargs, out_val=result)


def _name_format(operator: Any, args: tuple[Any, ...]) -> str:
    """Return the dtype in which an operator multiplies, like bfloat16 or tf32."""
    first = list_tensors(args)[0]
    in_tf32 = torch.backends.cudnn.allow_tf32 if "conv" in str(operator) else torch.backends.cuda.matmul.allow_tf32
    return "tf32" if first.is_cuda and first.dtype is torch.float32 and in_tf32 else str(first.dtype).split(".")[1]
