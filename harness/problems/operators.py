"""Observes and replaces the operators of a reference without torch._dynamo, whose import takes seconds."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Nothing inside may be compiled."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """True would import torch._dynamo at the first operator."""
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]


class OperatorWatch(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.note(func, args, kwargs or {}, result)
        return result

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        raise NotImplementedError


def name_operator(operator: Any) -> str:
    return str(operator.name()).removeprefix("aten::").split(".")[0]


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
REDUCING = {
    "sum", "mean", "var", "var_mean", "std", "std_mean", "norm", "linalg_vector_norm", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",
    "cudnn_batch_norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss",
    "binary_cross_entropy", "nll_loss_forward",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """`overload`: such as `bernoulli.p`; `tensors`: number of tensor arguments; `converts_to_integers`: from floating
    values; `terms`: of one sum, in reductions without products."""

    name: str
    overload: str
    tensors: int
    converts_to_integers: bool
    terms: int


class OperatorCalls(OperatorWatch):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[OperatorCall] = Counter()

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, wanted = name_operator(operator), kwargs.get("dtype")
        converts = name == "_to_copy" and wanted in INTEGERS
        call = OperatorCall(
            name=name,
            overload=operator.name().removeprefix("aten::"),
            tensors=sum(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())),
            converts_to_integers=converts and args[0].is_floating_point(),
            terms=_count_terms(args[0], result) if name in REDUCING else 0,
        )
        self.calls[call] += 1


def _count_terms(reduced: torch.Tensor, result: Any) -> int:
    results = result if isinstance(result, list | tuple) else (result,)
    counts = [one.numel() for one in results if isinstance(one, torch.Tensor) and one.numel()]
    return reduced.numel() // min(counts) if counts else 0


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
        self.flops = 0

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        for one in result if isinstance(result, list | tuple) else (result,):
            if isinstance(one, torch.Tensor):
                self.elements += one.numel()
        count = self._registry.get(getattr(operator, "_overloadpacket", None))
        if count is not None:
            with suppress(AssertionError):
                self.flops += count(*args, **kwargs, out_val=result)
