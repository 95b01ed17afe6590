"""Functions of libdevice, by their names without `__nv_` and the type suffix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_erf = np.frompyfunc(math.erf, 1, 1)


def _special(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def compute(values: np.ndarray) -> np.ndarray:
        with torch._C.DisableTorchFunction():
            wide = torch.from_numpy(np.array(values, dtype=np.float64))
            return np.asarray(function(wide).detach().numpy()).astype(values.dtype)

    return compute


def _to_integer(kind: str, round_to: Callable[..., Any]) -> Callable[..., Any]:
    limits = np.iinfo(kind)

    def convert(values: np.ndarray) -> np.ndarray:
        rounded = np.nan_to_num(round_to(values.astype(np.float64)), nan=0.0)
        inside = np.clip(rounded, float(limits.min), float(limits.max))
        return np.where(inside >= float(limits.max), limits.max, inside.astype(kind))

    return convert


def _view(kind: str) -> Callable[..., Any]:
    return lambda values: np.ascontiguousarray(values).view(kind)


def _count_leading_zeros(values: np.ndarray) -> np.ndarray:
    width = 8 * values.dtype.itemsize
    digits = (f"{int(one):b}" for one in values.view(f"u{values.dtype.itemsize}").reshape(-1))
    counts = [width - (0 if one == "0" else len(one)) for one in digits]
    return np.array(counts, dtype=np.int32).reshape(values.shape)


def _find_first_set(values: np.ndarray) -> np.ndarray:
    lowest = values & -values
    width = 8 * values.dtype.itemsize
    return np.where(values == 0, 0, width - _count_leading_zeros(np.ascontiguousarray(lowest)))


def _reverse_bits(values: np.ndarray) -> np.ndarray:
    width = 8 * values.dtype.itemsize
    unsigned = values.view(f"u{values.dtype.itemsize}")
    turned = [int(f"{int(one):0{width}b}"[::-1], 2) for one in unsigned.reshape(-1)]
    return np.array(turned, dtype=unsigned.dtype).reshape(values.shape).view(values.dtype)


def _multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = a.dtype.str.replace("4", "8")
    return np.asarray(((a.astype(wide) * b.astype(wide)) >> np.dtype(wide).type(32)).astype(a.dtype))


def _fuse(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)


_INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
_ROUNDINGS: dict[str, Callable[..., Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rcp": np.reciprocal, "sqrt": np.sqrt,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "fma": _fuse,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(x.dtype.type(10), x),
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "cbrt": np.cbrt, "pow": np.power, "sin": np.sin,
    "rcbrt": lambda x: np.reciprocal(np.cbrt(x)), "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": lambda x: np.asarray(_erf(x)).astype(x.dtype), "erfc": _special(torch.special.erfc),
    "erfinv": _special(torch.special.erfinv), "erfcinv": _special(lambda x: torch.special.erfinv(1 - x)),
    "erfcx": _special(torch.special.erfcx), "lgamma": _special(torch.lgamma),
    "tgamma": lambda x: np.asarray(np.frompyfunc(math.gamma, 1, 1)(x)).astype(x.dtype),
    "normcdf": _special(torch.special.ndtr), "normcdfinv": _special(torch.special.ndtri),
    "j0": _special(torch.special.bessel_j0), "j1": _special(torch.special.bessel_j1),
    "y0": _special(torch.special.bessel_y0), "y1": _special(torch.special.bessel_y1),
    "cyl_bessel_i0": _special(torch.special.i0), "cyl_bessel_i1": _special(torch.special.i1),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda x: np.asarray(np.trunc(x + np.copysign(0.5, x))).astype(x.dtype), "fabs": np.abs, "abs": np.abs,
    "llrint": _to_integer("int64", np.rint),
    "llround": _to_integer("int64", lambda x: np.trunc(x + np.copysign(0.5, x))),
    "fmod": np.fmod, "remainder": lambda x, y: x - y * np.rint(x / y), "fmax": np.fmax, "fmin": np.fmin,
    "max": np.maximum, "min": np.minimum, "fdim": lambda x, y: np.maximum(x - y, 0), "nextafter": np.nextafter,
    "copysign": np.copysign, "hypot": np.hypot, "rhypot": lambda x, y: np.reciprocal(np.hypot(x, y)),
    "ldexp": np.ldexp, "scalbn": np.ldexp, "ilogb": lambda x: np.frexp(x)[1] - 1,
    "logb": lambda x: (np.frexp(x)[1] - 1).astype(x.dtype),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1),
    "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite, "isfinite": np.isfinite, "signbit": np.signbit,
    "fast_exp": np.exp, "fast_exp10": lambda x: np.power(x.dtype.type(10), x), "fast_log": np.log,
    "fast_log2": np.log2, "fast_log10": np.log10, "fast_sin": np.sin, "fast_cos": np.cos, "fast_tan": np.tan,
    "fast_pow": np.power, "fast_tanh": np.tanh, "fast_fdivide": np.divide, "fma": _fuse,
    "popc": lambda x: np.bitwise_count(x).astype(np.int32), "popcll": lambda x: np.bitwise_count(x).astype(np.int32),
    "clz": _count_leading_zeros, "clzll": _count_leading_zeros, "ffs": _find_first_set, "ffsll": _find_first_set,
    "brev": _reverse_bits, "brevll": _reverse_bits, "mulhi": _multiply_high, "umulhi": _multiply_high,
    "float_as_int": _view("int32"), "float_as_uint": _view("uint32"), "int_as_float": _view("float32"),
    "uint_as_float": _view("float32"), "double_as_longlong": _view("int64"), "longlong_as_double": _view("float64"),
    **{f"f{name}_{how}": function for name, function in _ARITHMETIC.items() for how in ("rn", "rz", "rd", "ru")},
    **{f"d{name}_rn": function for name, function in _ARITHMETIC.items()},
    "fmaf_rn": _fuse, "fma_rn": _fuse,
    **{f"{source}2{name}_{how}": _to_integer(kind, rounding) for source in ("float", "double")
       for name, kind in _INTEGERS.items() for how, rounding in _ROUNDINGS.items()},
    **{f"{name}2{target}_{how}": lambda x: x
       for name in _INTEGERS for target in ("float", "double") for how in _ROUNDINGS},
}  # fmt: skip


def find_function(symbol: str) -> Callable[..., Any] | None:
    name = symbol.removeprefix("__nv_")
    plain = (name, name.removesuffix("f"), name.removesuffix("d"))
    return next((FUNCTIONS[one] for one in plain if one in FUNCTIONS), None)
