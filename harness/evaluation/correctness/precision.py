"""Sets the precision of a reference: TF32 products where its problem allows them, even on a CPU, and float64 for the
truth.

The factors of a product are truncated to TF32, as tensor cores do with float32 in memory (cuBLAS rounds it before).
On a CPU scattered sums of 16-bit types are rounded after each addition, as by atomic operations (torch adds in
float32). The reference's error thus fits candidates whose kernels are emulated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

import torch
from torch import Tensor

from harness.evaluation.correctness.allowed_errors import EPS
from harness.problems.inputs.tensors import perturb
from harness.problems.operators import EXACT, OperatorMode, OperatorWatch, find_dim, name_operator, names_dim
from harness.tensors.values import list_tensors

FACTORS = {  # positions of the arguments that are multiplied
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "addbmm": (1, 2),
    "convolution": (0, 1),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
}
NORMS = {  # positions of their biases
    "native_layer_norm": 3,
    "native_group_norm": 2,
    "native_batch_norm": 2,
    "_native_batch_norm_legit": 2,
    "_batch_norm_with_update": 2,
    "cudnn_batch_norm": 2,
}
SQUARE_ROUNDINGS = 2
TAKING_PLACES = {"sort", "topk", "argmax", "argmin", "max", "min", "kthvalue", "median", "mode"}
SCATTERED = frozenset(("index_add", "scatter_add", "scatter_reduce", "scatter", "index_put", "_index_put_impl"))
NARROW = (torch.float16, torch.bfloat16)
MOST_ADDED, MOST_TURNS = 1 << 20, 1 << 14  # values in all, and to one element
SEED_BITS = 20
LOST_DIGITS = 0x1FFF  # of a float32 that becomes TF32
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


@contextmanager
def float32_precision(allow_tf32: bool) -> Iterator[None]:
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allow_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = allow_tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


@contextmanager
def reference_precision(allow_tf32: bool, tensors: Iterable[Tensor] = ()) -> Iterator[None]:
    products = _ProductsInTf32() if allow_tf32 else nullcontext()
    sums = _AtomicSums() if any(map(_is_narrow, tensors)) else nullcontext()
    with float32_precision(allow_tf32), products, sums:
        yield


@contextmanager
def widened() -> Iterator[None]:
    """Make conversions to floating types, and tensors made of them, float64. 8-bit types stay: values are rounded to
    them on purpose.
    """
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widened():
            yield
    finally:
        torch.set_default_dtype(default)


class _ProductsInTf32(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factors = FACTORS.get(name_operator(func), ())
        short = (_truncate_to_tf32(value) if at in factors else value for at, value in enumerate(args))
        return func(*short, **(kwargs or {}))


class _AtomicSums(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = name_operator(func), kwargs or {}
        plain = name.removesuffix("_")
        if plain not in SCATTERED or "out" in options or not _is_narrow(args[0]):
            return func(*args, **options)
        added = _list_added(plain, *args[1:], into=args[0], **options)
        if added is None or added[0].numel() > MOST_ADDED:
            return func(*args, **options)
        steps = _order_by_turn(added[0].reshape(-1))
        if len(steps) > MOST_TURNS:
            return func(*args, **options)
        result = args[0].clone(memory_format=torch.contiguous_format)
        cells, (targets, values) = result.view(-1), (one.reshape(-1) for one in added)
        for step in steps:
            cells[targets[step]] = cells[targets[step]] + values[step]
        return args[0].copy_(result) if name.endswith("_") else result


def _is_narrow(tensor: Tensor) -> bool:
    return tensor.dtype in NARROW and tensor.device.type == "cpu"


def _list_added(
    name: str, *args: Any, into: Tensor, alpha: Any = 1, accumulate: bool = False, include_self: bool = True,
    reduce: str = "", **_: Any,
) -> tuple[Tensor, Tensor] | None:  # fmt: skip
    """Return the target elements in `into` and the values added there, of one shape; None for other operators."""
    places = torch.arange(into.numel()).reshape(into.shape)
    if "index_put" in name:
        indices, values, accumulate = args[0], args[1], accumulate or args[2:3] == (True,)
        chosen = places[tuple(slice(None) if one is None else one for one in indices)]
        return (chosen, values.expand(chosen.shape)) if accumulate else None
    dim, index, values = args[:3]
    if name == "index_add":
        return (places.index_select(dim, index), values * alpha) if into.dim() else None
    reduce = reduce or next(iter(args[3:]), "")
    if not isinstance(values, Tensor) or reduce not in {"scatter_add": ("",), "scatter": ("add",)}.get(name, ("sum",)):
        return None
    part = values[tuple(slice(size) for size in index.shape)]
    return (places.gather(dim, index), part) if include_self else None


def _order_by_turn(targets: Tensor) -> tuple[Tensor, ...]:
    ordered, order = targets.sort(stable=True)
    turns = torch.arange(len(order)) - torch.searchsorted(ordered, ordered)
    counts = torch.bincount(turns) if len(order) else turns
    return torch.split(order[turns.argsort(stable=True)], counts.tolist())


class _Widened(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wider = {name: WIDER.get(value, value) if name == "dtype" else value for name, value in (kwargs or {}).items()}
        return func(*args, **wider)


class RandomRoundings(OperatorWatch):  # type: ignore[no-untyped-call]
    """Moves each result of arithmetic by `roundings` (16 bits: one), up or down, as another form of the work may. A
    variance moves as the difference of squares that it may be. Operators after `until_s`, by the monotonic clock, raise
    TimeoutError: a loop that ends when values stay the same would not end.
    """

    def __init__(self, seed: int, roundings: int = 1, until_s: float = math.inf) -> None:
        super().__init__()
        self._seeds, self._roundings, self._until_s = count(seed << SEED_BITS), roundings, until_s

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if time.monotonic() > self._until_s:
            raise TimeoutError("the reference takes too long with rounded results")
        is_exact = operator.is_view or name_operator(operator).removesuffix("_") in EXACT
        if not is_exact and any(map(torch.is_floating_point, list_tensors(args))):
            seed = next(self._seeds)
            perturb(result, seed, self._roundings)
            if name_operator(operator) in NORMS and result[1].numel():
                _move_statistics(name_operator(operator), args, result, (-1) ** seed)


def _move_statistics(name: str, args: Sequence[Any], result: Sequence[Tensor], sign: int) -> None:
    """Move means and variances of a normalisation by `SQUARE_ROUNDINGS` of the mean and of the mean square."""
    normalised, means, inverse_deviations = result[:3]
    far = means * inverse_deviations
    bias = 0.0 if args[NORMS[name]] is None else args[NORMS[name]]
    if name != "native_layer_norm":
        channels, others = normalised.shape[1], (1,) * (normalised.dim() - 2)
        far = far.repeat_interleave(channels // far.shape[-1], dim=-1).reshape(-1, channels, *others)
        bias = bias.reshape(channels, *others) if isinstance(bias, Tensor) else bias
    moved_by = sign * SQUARE_ROUNDINGS * EPS
    normalised.sub_(bias).mul_(1 + far**2 * (moved_by / 2)).add_(bias + far * moved_by)


class ReversedTies(OperatorMode):  # type: ignore[no-untyped-call]
    """Orders equal values the other way round."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if name_operator(func) not in TAKING_PLACES or not (names_dim(func) and args[0].dim()):
            return func(*args, **kwargs)
        dim = find_dim(func, args, kwargs)
        dims = list(range(args[0].dim())) if dim is None else [dim]
        result = func(args[0].flip(dims), *args[1:], **kwargs)
        last = (args[0].numel() if dim is None else args[0].size(dim)) - 1
        return last - result if isinstance(result, Tensor) else (result[0], last - result[1])


class LargestResult(OperatorWatch):  # type: ignore[no-untyped-call]
    """Finds the largest finite size of a floating-point result."""

    def __init__(self) -> None:
        super().__init__()
        self._found: list[Tensor] = []  # where they were computed, for one transfer at the end

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        for one in list_tensors(result):
            if one.is_floating_point() and one.numel() and not operator.is_view:
                size = one.detach().abs().nan_to_num_(0.0, 0.0, 0.0).amax().double()
                self._found = [torch.maximum(self._found[0], size) if self._found else size]

    @property
    def size(self) -> float:
        return float(self._found[0]) if self._found else 0.0


def _truncate_to_tf32(tensor: Tensor) -> Tensor:
    if tensor.dtype is not torch.float32:
        return tensor
    return (tensor.view(torch.int32) & ~LOST_DIGITS).view(torch.float32)
