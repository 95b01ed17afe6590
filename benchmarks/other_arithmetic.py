"""Runs a reference with other arithmetic: as honest GPU programs compute (other orders of summation, tensor cores in
three parts, fast math), or less than was asked for (narrower formats, left out terms).

Each mode replaces torch's operators and counts how often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from harness.problems.operators import OperatorMode, name_operator

aten = torch.ops.aten
Call = Callable[[Tensor, Tensor], Tensor]
Multiply = Callable[[Call, Tensor, Tensor, int, int], Tensor]
APPROXIMATED = (
    "exp", "exp2", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "div", "tanh", "sigmoid", "erf", "gelu", "silu",
    "pow", "sin", "cos", "softplus", "elu", "mish", "log_sigmoid_forward", "_softmax", "_log_softmax",
    "logsumexp", "expm1",
)  # fmt: skip


class Mode(OperatorMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()
        self.replaced = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = self.replace(name_operator(func), func, args, kwargs or {})
        if result is None:
            return func(*args, **(kwargs or {}))
        self.replaced += 1
        return result

    def replace(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return None to keep torch's operator."""
        raise NotImplementedError


class Products(Mode):
    """`multiply` gets a bilinear operator, its factors, and the dimensions that are summed over."""

    def __init__(self, multiply: Multiply) -> None:
        super().__init__()
        self._multiply = multiply

    def replace(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not isinstance(args[0] if args else None, Tensor) or not args[0].is_floating_point():
            return None
        if name in ("mm", "bmm") and not kwargs:
            return self._in_float32(func, args[0], args[1], -1, -2)
        if name in ("addmm", "baddbmm"):
            product = self._in_float32(aten.mm if name == "addmm" else aten.bmm, args[1], args[2], -1, -2)
            return (args[0] * kwargs.get("beta", 1) + product * kwargs.get("alpha", 1)).to(args[0].dtype)
        if name == "convolution":
            image, weight, bias, *rest = args
            transposed, groups = rest[3], rest[5]
            whole = groups > 1
            dims = (image.dim(), weight.dim()) if whole else (1, 0 if transposed else 1)
            result = self._in_float32(lambda x, w: func(x, w, None, *rest), image, weight, *dims)
            shape = [-1 if dim == 1 else 1 for dim in range(result.dim())]
            return result if bias is None else result + bias.view(shape)
        return None

    def _in_float32(self, call: Call, a: Tensor, b: Tensor, da: int, db: int) -> Tensor:
        """16-bit factors are exact in float32, as in tensor cores."""
        return self._multiply(call, a.float(), b.float(), da, db).to(a.dtype)


class FastMath(Mode):
    """Relative errors of up to `ulps`."""

    def __init__(self, ulps: float = 2.0) -> None:
        super().__init__()
        self._size = ulps * torch.finfo(torch.float32).eps

    def replace(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if name not in APPROXIMATED:
            return None
        result = func(*args, **kwargs)
        if not isinstance(result, Tensor) or result.dtype is not torch.float32:
            return None
        return result * (1 + self._size * (2 * torch.rand_like(result) - 1))


class Sums(Mode):
    """Replace reductions; `add` sums over the last dimension."""

    def __init__(self, add: Callable[[Tensor], Tensor], prepare: Callable[[Tensor], Tensor] = lambda x: x) -> None:
        super().__init__()
        self._add, self._prepare = add, prepare

    def replace(self, name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        x = args[0] if args else None
        if not isinstance(x, Tensor) or not x.is_floating_point() or kwargs.get("dtype") is not None:
            return None
        if name in ("sum", "mean"):
            dims = (args[1] if len(args) > 1 and args[1] else None) or list(range(x.dim()))
            keep = args[2] if len(args) > 2 else False
            count = math.prod(x.shape[dim] for dim in dims)
            return (self._sum(x, dims, keep) / (count if name == "mean" else 1)).to(x.dtype)
        if name == "_softmax":
            shares = (x.float() - x.float().amax(args[1], keepdim=True)).exp()
            return (shares / self._sum(shares, [args[1]], keep=True)).to(x.dtype)
        if name == "_log_softmax":
            rest = x.float() - x.float().amax(args[1], keepdim=True)
            return (rest - self._sum(rest.exp(), [args[1]], keep=True).log()).to(x.dtype)
        if name == "native_layer_norm":
            return self._normalise(x, *args[1:])
        return None

    def _sum(self, x: Tensor, dims: list[int], keep: bool) -> Tensor:
        dims = sorted(dim % x.dim() for dim in dims) if x.dim() else []
        if not dims or not x.numel():
            return x.float()
        kept = [dim for dim in range(x.dim()) if dim not in dims]
        flat = self._prepare(x.float().permute(*kept, *dims).reshape(*(x.shape[dim] for dim in kept), -1))
        shape = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
        return self._add(flat).view(shape) if keep else self._add(flat)

    def _normalise(self, x: Tensor, shape: list[int], weight: Any, bias: Any, eps: float) -> Any:
        """One pass around the first value of each row."""
        dims, count = list(range(x.dim() - len(shape), x.dim())), math.prod(shape)
        first = x.float().flatten(-len(shape))[..., :1].view(*x.shape[: -len(shape)], *[1] * len(shape))
        moved = x.float() - first
        mean = self._sum(moved, dims, keep=True) / count
        variance = self._sum(moved * moved, dims, keep=True) / count - mean * mean
        scale = (variance.clamp(min=0) + eps).rsqrt()
        result = (moved - mean) * scale
        result = result if weight is None else result * weight
        return (result if bias is None else result + bias).to(x.dtype), (mean + first).to(x.dtype), scale.to(x.dtype)


# Orders of summation


def in_parts(
    size: int = 0, parts: int = 0, keep: Callable[[Tensor], Tensor] = lambda x: x, *, wide: bool = False
) -> Multiply:
    """Add partial products one after the other. `wide` computes each in float64, as a fused operation."""

    def multiply(call: Call, a: Tensor, b: Tensor, da: int, db: int) -> Tensor:
        if da >= a.dim() or a.shape[da] != b.shape[db]:  # grouped
            return call(a, b)
        step = size or -(-a.shape[da] // parts)
        total = None
        for x, y in zip(a.split(step, da), b.split(step, db), strict=True):
            part = call(x.double(), y.double()) if wide else call(x, y)
            total = keep(part if total is None else total + part)
        return total.float()

    return multiply


def truncate(x: Tensor) -> Tensor:
    """Round float64 to float32 towards zero, as tensor cores do when they add."""
    rounded = x.float()
    too_far = rounded.double().abs() > x.abs()
    return torch.where(too_far, rounded.nextafter(torch.zeros_like(rounded)), rounded).double()


def round_fused(x: Tensor) -> Tensor:
    return x.float().double()


def add_in_order(x: Tensor, strands: int = 1) -> Tensor:
    """`strands` partial sums, each in order, as by the threads of a block, which are then added."""
    x = torch.nn.functional.pad(x, (0, -x.shape[-1] % strands))
    total = torch.zeros(*x.shape[:-1], strands)
    for part in x.unflatten(-1, (-1, strands)).unbind(-2):
        total = total + part
    return total.sum(-1)


def add_compensated(x: Tensor) -> Tensor:
    return x.double().sum(-1).float()


# Formats


def to_tf32(x: Tensor) -> Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def drop_bits(bits: int) -> Callable[[Tensor], Tensor]:
    return lambda x: (x.contiguous().view(torch.int32) >> bits << bits).view(torch.float32)


def round_at_random(bits: int) -> Callable[[Tensor], Tensor]:
    def rounded(x: Tensor) -> Tensor:
        whole = x.contiguous().view(torch.int32) + torch.randint(0, 1 << bits, x.shape, dtype=torch.int32)
        return (whole >> bits << bits).view(torch.float32)

    return rounded


def to_bfloat16(x: Tensor) -> Tensor:
    return x.bfloat16().float()


def to_float16(x: Tensor) -> Tensor:
    return x.half().float()


def to_float8(x: Tensor) -> Tensor:
    return x.to(torch.float8_e4m3fn).float()


def rounded(form: Callable[[Tensor], Tensor], multiply: Multiply | None = None) -> Multiply:
    inner = multiply or (lambda call, a, b, da, db: call(a, b))
    return lambda call, a, b, da, db: inner(call, form(a), form(b), da, db)


def split(form: Callable[[Tensor], Tensor], kept: str, multiply: Multiply | None = None) -> Multiply:
    """Products of high and low parts: `kept` names those that are computed."""
    inner = multiply or (lambda call, a, b, da, db: call(a, b))

    def product(call: Call, a: Tensor, b: Tensor, da: int, db: int) -> Tensor:
        high = {"a": form(a), "b": form(b)}
        low = {"a": form(a - high["a"]), "b": form(b - high["b"])}
        pairs = {"hh": (high["a"], high["b"]), "hl": (high["a"], low["b"]), "lh": (low["a"], high["b"])}
        return sum((inner(call, *pairs[name], da, db) for name in reversed(kept.split())), torch.zeros(()))

    return product


def around_means(form: Callable[[Tensor], Tensor]) -> Multiply:
    """Multiply in a narrow format only what is left of the factors without their means over the summed dimension."""

    def product(call: Call, a: Tensor, b: Tensor, da: int, db: int) -> Tensor:
        if da >= a.dim():
            return call(form(a), form(b))
        means = [x.mean(dim, keepdim=True).expand_as(x) for x, dim in ((a, da), (b, db))]
        left, right = a - means[0], b - means[1]
        return call(form(left), form(right)) + (call(means[0], b) + call(left, means[1]))

    return product


def scaled(form: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Scale each last row so that its largest value is 1: formats with few exponents, integers."""

    def apply(x: Tensor) -> Tensor:
        size = x.abs().amax(-1, keepdim=True).clamp(min=1e-30)
        return form(x / size) * size

    return apply


def to_int8(x: Tensor) -> Tensor:
    return (x * 127).round() / 127


def leave_out(one_in: int) -> Multiply:
    """Leave out terms, and scale the others."""

    def product(call: Call, a: Tensor, b: Tensor, da: int, db: int) -> Tensor:
        if da >= a.dim() or a.shape[da] == 1:
            return call(a, b)
        count = a.shape[da]
        kept = count - max(count // one_in, 1)
        return call(a.narrow(da, 0, kept), b.narrow(db, 0, kept)) * (count / kept)

    return product
