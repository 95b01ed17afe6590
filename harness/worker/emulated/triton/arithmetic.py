"""Operations that Triton's interpreter lacks or computes differently from a GPU."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

_POINTER = np.dtype(np.uint64)
_NUMPY = {
    "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16), "int1": np.dtype(bool),
    **{name: np.dtype(name) for kind in ("int", "uint") for name in (f"{kind}{bits}" for bits in (8, 16, 32, 64))},
    **{name: np.dtype(np.uint8) for name in ("fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15")},
}  # fmt: skip
_FLOAT8 = {
    "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz, "fp8e5b16": torch.float8_e5m2fnuz,
}  # fmt: skip


def find_numpy_dtype(kind: Any) -> Any:
    """Replaces the interpreter's function, which dominates the time of small operations."""
    kind = getattr(kind, "element_ty", kind) if isinstance(kind, tl.block_type) else kind
    return _POINTER if isinstance(kind, tl.pointer_type) else _NUMPY[kind.name]


class NotCovered(NotImplementedError):
    pass


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.asarray(np.where(np.isnan(values), quiet, rounded).astype(np.uint16))


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    return np.asarray((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))


def cut_to_tf32(values: np.ndarray) -> np.ndarray:
    """Keep ten bits of the mantissa; tensor cores ignore the others."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.asarray((bits & np.uint32(0xFFFFE000)).view(np.float32))


def _round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    return widen_bfloat16(round_to_bfloat16(values))


# Of the factors of a product: how their terms are rounded, and how many there are.
_TERMS = {"TF32": (cut_to_tf32, 1), "TF32x3": (cut_to_tf32, 2), "BF16x3": (_round_to_bfloat16, 2),
          "BF16x6": (_round_to_bfloat16, 3)}  # fmt: skip


def round_to_float8(values: np.ndarray, kind: torch.dtype) -> np.ndarray:
    most = torch.finfo(kind).max
    with torch._C.DisableTorchFunction():
        rounded = torch.from_numpy(np.array(values, dtype=np.float32)).clamp(-most, most).to(kind)
        return np.asarray(rounded.view(torch.uint8).numpy())


def widen_float8(bits: np.ndarray, kind: torch.dtype, target: torch.dtype) -> np.ndarray:
    with torch._C.DisableTorchFunction():
        return np.asarray(torch.from_numpy(np.array(bits)).view(kind).to(target).numpy())


def is_bfloat16(operand: TensorHandle) -> bool:
    return bool(operand.dtype.scalar == tl.bfloat16)


def widen(operand: TensorHandle) -> TensorHandle:
    """Convert bfloat16 and float8, which NumPy lacks, to float32; return other types unchanged."""
    if is_bfloat16(operand):
        return TensorHandle(widen_bfloat16(operand.data), tl.float32)
    kind = _FLOAT8.get(operand.dtype.scalar.name)
    return operand if kind is None else TensorHandle(widen_float8(operand.data, kind, torch.float32), tl.float32)


def narrow(result: TensorHandle) -> TensorHandle:
    if result.data.dtype == np.bool_:
        return result
    return TensorHandle(round_to_bfloat16(result.data), tl.bfloat16)


def convert(source: TensorHandle, target: Any) -> TensorHandle | None:
    """Convert from or to bfloat16 or float8, where Triton's interpreter is wrong; return None for other types."""
    before, after = source.dtype.scalar, target.scalar
    wide = widen(source)
    if before == after or (wide is source and after != tl.bfloat16 and after.name not in _FLOAT8):
        return None
    if after == tl.bfloat16:
        return TensorHandle(round_to_bfloat16(wide.data.astype(np.float32)), after)
    if after.name in _FLOAT8:
        return TensorHandle(round_to_float8(wide.data, _FLOAT8[after.name]), after)
    return TensorHandle(wide.data.astype(find_numpy_dtype(after)), after)


def fuse(x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
    return TensorHandle(multiply_and_add(x.data, y.data, z.data), z.dtype.scalar)


def multiply_and_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Round once, as a GPU does."""
    wide = np.float64 if c.dtype.kind == "f" else c.dtype
    return np.asarray((a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(c.dtype))


def multiply(a: TensorHandle, b: TensorHandle, d: TensorHandle, precision: Any) -> TensorHandle | None:
    """Multiply float32 matrices in this precision; return None if the interpreter's own product is right."""
    left, right = widen(a).data, widen(b).data
    rounding, terms = _TERMS.get(precision.name, (None, 1)) if a.dtype.scalar == tl.float32 else (None, 1)
    if left is a.data and right is b.data and left.dtype != np.float32:
        return None
    if rounding is None:
        product = np.matmul(left, right)
    else:
        parts = [_split(one, rounding, terms) for one in (left, right)]
        pairs = ((p, q) for i, p in enumerate(parts[0]) for j, q in enumerate(parts[1]) if i + j < terms)
        product = sum(np.matmul(p, q) for p, q in pairs)
    return TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)


def _split(values: np.ndarray, rounding: Callable[[np.ndarray], np.ndarray], terms: int) -> list[np.ndarray]:
    """Return terms of the rounded type whose sum is close to the values. Terms after a non-finite one are 0."""
    found = [rounding(values)]
    while len(found) < terms:
        values = np.nan_to_num(values - found[-1], nan=0.0, posinf=0.0, neginf=0.0)
        found.append(rounding(values))
    return found


def multiply_high(a: TensorHandle, b: TensorHandle) -> TensorHandle:
    kind = a.data.dtype
    unsigned = [one.data.view(f"u{kind.itemsize}").astype(object) for one in (a, b)]
    high = (unsigned[0] * unsigned[1]) >> (8 * kind.itemsize)
    return TensorHandle(np.asarray(high).astype(f"u{kind.itemsize}").view(kind), a.dtype.scalar)


def count(values: TensorHandle, bins: int, mask: TensorHandle | None) -> TensorHandle:
    counted = (values.data >= 0) & (values.data < bins)
    if mask is not None:
        counted &= mask.data
    counts = np.bincount(values.data[counted].astype(np.int64), minlength=bins)
    return TensorHandle(counts.astype(np.int32), tl.int32)


def add_bfloat16(addresses: TensorHandle, values: TensorHandle, mask: TensorHandle) -> TensorHandle:
    """Add atomically, lane by lane; return the old values."""
    old = np.zeros(addresses.data.shape, dtype=np.uint16)
    every = np.broadcast_to(mask.data, old.shape)
    for at in map(tuple, np.argwhere(every)):
        cell = ctypes.c_uint16.from_address(int(addresses.data[at]))
        old[at] = cell.value
        both = np.array([cell.value, values.data[at]], dtype=np.uint16)
        cell.value = int(round_to_bfloat16(widen_bfloat16(both).sum(keepdims=True))[0])
    return TensorHandle(old, tl.bfloat16)


def call_libdevice(symbol: str, arguments: list[TensorHandle], result_type: Any) -> TensorHandle:
    """Raises NotCovered for an unknown function."""
    name = symbol.removeprefix("__nv_")
    plain = (name, name.removesuffix("f"), name.removesuffix("d"))
    function = next((FUNCTIONS[one] for one in plain if one in FUNCTIONS), None)
    if function is None:
        raise NotCovered(f"{symbol} of libdevice is not covered by the emulated device")
    result = function(*(one.data for one in arguments))
    return TensorHandle(np.asarray(result).astype(find_numpy_dtype(result_type)), result_type.scalar)


_erf = np.frompyfunc(math.erf, 1, 1)


def _special(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def compute(values: np.ndarray) -> np.ndarray:
        with torch._C.DisableTorchFunction():
            wide = torch.from_numpy(np.array(values, dtype=np.float64))
            return np.asarray(function(wide).detach().numpy()).astype(values.dtype)

    return compute


def saturate(values: np.ndarray, kind: Any) -> np.ndarray:
    """Convert integral numbers to an integer type. NaN becomes 0, and numbers beyond the limits become these."""
    limits = np.iinfo(kind)
    inside = np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), float(limits.min), float(limits.max))
    return np.where(inside >= float(limits.max), limits.max, inside.astype(kind))


def clamp_to_unit(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0))


def take_reciprocal_root(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.reciprocal(np.sqrt(values)))


def _take_power_of_ten(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.power(values.dtype.type(10), values))


def _round_half_away(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.trunc(values + np.copysign(0.5, values)))


def _to_integer(kind: str, round_to: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values: saturate(round_to(values.astype(np.float64)), kind)


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


_INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
_ROUNDINGS: dict[str, Callable[..., Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rcp": np.reciprocal, "sqrt": np.sqrt,
    "rsqrt": take_reciprocal_root, "fma": multiply_and_add,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "exp10": _take_power_of_ten,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": take_reciprocal_root, "cbrt": np.cbrt, "pow": np.power, "sin": np.sin,
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
    "round": lambda x: _round_half_away(x).astype(x.dtype), "fabs": np.abs, "abs": np.abs,
    "llrint": _to_integer("int64", np.rint), "llround": _to_integer("int64", _round_half_away),
    "fmod": np.fmod, "remainder": lambda x, y: x - y * np.rint(x / y), "fmax": np.fmax, "fmin": np.fmin,
    "max": np.maximum, "min": np.minimum, "fdim": lambda x, y: np.maximum(x - y, 0), "nextafter": np.nextafter,
    "copysign": np.copysign, "hypot": np.hypot, "rhypot": lambda x, y: np.reciprocal(np.hypot(x, y)),
    "ldexp": np.ldexp, "scalbn": np.ldexp, "ilogb": lambda x: np.frexp(x)[1] - 1,
    "logb": lambda x: (np.frexp(x)[1] - 1).astype(x.dtype),
    "saturate": clamp_to_unit,
    "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite, "isfinite": np.isfinite, "signbit": np.signbit,
    "fast_exp": np.exp, "fast_exp10": _take_power_of_ten, "fast_log": np.log,
    "fast_log2": np.log2, "fast_log10": np.log10, "fast_sin": np.sin, "fast_cos": np.cos, "fast_tan": np.tan,
    "fast_pow": np.power, "fast_tanh": np.tanh, "fast_fdivide": np.divide, "fma": multiply_and_add,
    "popc": lambda x: np.bitwise_count(x).astype(np.int32), "popcll": lambda x: np.bitwise_count(x).astype(np.int32),
    "clz": _count_leading_zeros, "clzll": _count_leading_zeros, "ffs": _find_first_set, "ffsll": _find_first_set,
    "brev": _reverse_bits, "brevll": _reverse_bits, "mulhi": _multiply_high, "umulhi": _multiply_high,
    "float_as_int": _view("int32"), "float_as_uint": _view("uint32"), "int_as_float": _view("float32"),
    "uint_as_float": _view("float32"), "double_as_longlong": _view("int64"), "longlong_as_double": _view("float64"),
    **{f"f{name}_{how}": function for name, function in _ARITHMETIC.items() for how in ("rn", "rz", "rd", "ru")},
    **{f"d{name}_rn": function for name, function in _ARITHMETIC.items()},
    "fmaf_rn": multiply_and_add, "fma_rn": multiply_and_add,
    **{f"{source}2{name}_{how}": _to_integer(kind, rounding) for source in ("float", "double")
       for name, kind in _INTEGERS.items() for how, rounding in _ROUNDINGS.items()},
    **{f"{name}2{target}_{how}": lambda x: x
       for name in _INTEGERS for target in ("float", "double") for how in _ROUNDINGS},
}  # fmt: skip
