"""What `triton_language` calls: functions of `triton.language`, what they should return, and for which dtypes."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import triton
import triton.language as tl
from triton_kernels import KERNELS, run_kernels  # noqa: F401 - for `triton_language`

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS = SIGNED + UNSIGNED, ("float16", "bfloat16", "float32", "float64")
NUMBERS, ALL = INTEGERS + FLOATS, ("bool", *INTEGERS, *FLOATS)
BOOL, WIDE_FLOATS, FLOAT32, FLOAT16, INT8 = ("bool",), ("float32", "float64"), ("float32",), ("float16",), ("int8",)
WIDE_INTEGERS, E4M3, E5M2 = ("int32", "int64", "uint32", "uint64"), ("float8_e4m3fn",), ("float8_e5m2",)
TYPES = {"bool": tl.int1, "float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5}
ANY, FEW = (None, None), (1, 7)
# Types, debugging, hints without a value, and reflected comparisons, which Python does not call.
REVIEWED = frozenset((
    "__init__", "__repr__", "__str__", "__bool__", "__index__", "__not__", "wraps", "aggregate_replace", "str_to_ty",
    "__req__", "__rne__", "__rge__", "__rgt__", "__rle__", "__rlt__", "device_print", "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
))  # fmt: skip


@triton.jit
def call(inputs, function: tl.constexpr, lanes: tl.constexpr):
    function(*[tl.load(one + tl.arange(0, lanes)) for one in inputs])


@dataclass(frozen=True, kw_only=True)
class Case:
    """`kinds`: dtypes of each argument; `ranges`: of its values, the last one of all further arguments;
    `last_digits`: units of the last digit by which the result may differ."""

    name: str
    function: Callable
    expected: Callable
    kinds: tuple
    ranges: tuple = (ANY,)
    last_digits: float = 1


CASES = []


def case(name, function, expected, *kinds, **more):
    CASES.append(Case(name=name, function=function, expected=expected, kinds=kinds, **more))


def each(function):
    return np.vectorize(function, otypes=[object])


def divide(a, b):
    """As C does: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def multiply_high(bits):
    return each(lambda a, b: (int(a) % 2**bits * (int(b) % 2**bits)) >> bits)


def rows(values):
    return values.reshape(4, 8)


def product(a, b):
    return a.reshape(2, 16) @ b.reshape(16, 2)


def draw_random(seed, offset):
    """The first number of Philox-4x32 with ten rounds."""
    counter, keys, most = [int(offset), 0, 0, 0], [seed, 0], 2**32
    for _ in range(10):
        low, high = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [high // most ^ counter[1] ^ keys[0], high % most, low // most ^ counter[3] ^ keys[1], low % most]
        keys = [(keys[0] + 0x9E3779B9) % most, (keys[1] + 0xBB67AE85) % most]
    return counter[0]


def make_uniform(bits):
    return (bits if bits < 2**31 else 2**32 - 1 - bits) * 4.6566127342e-10


for name, function, kinds in (
    ("add", operator.add, NUMBERS), ("sub", operator.sub, NUMBERS), ("mul", operator.mul, NUMBERS),
    ("and", operator.and_, INTEGERS + BOOL), ("or", operator.or_, INTEGERS + BOOL),
    ("xor", operator.xor, INTEGERS + BOOL), ("lshift", operator.lshift, INTEGERS),
    ("rshift", operator.rshift, INTEGERS),
):  # fmt: skip
    ranges = (ANY, FEW) if "shift" in name else (ANY,)
    case(f"__{name}__", function, function, kinds, kinds, ranges=ranges)
    if kinds is not INTEGERS + BOOL:
        few = set(kinds) - set(BOOL)
        case(f"__{name}__ 3", lambda a, f=function: f(a, 3), lambda a, f=function: f(a, 3), tuple(few))
        case(
            f"__r{name}__", lambda a, f=function: f(3, a), lambda a, f=function: f(3, a), tuple(few), ranges=ranges[-1:]
        )
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    case(f"__{name}__", getattr(operator, name), getattr(operator, name), ALL, ALL)
modulo = each(lambda a, b: a - b * divide(a, b))
for kinds, ranges in ((SIGNED, (ANY, (1, None))), (SIGNED, (ANY, (-100, -2))), (UNSIGNED, (ANY, (1, None)))):
    case("__floordiv__", operator.floordiv, each(divide), kinds, kinds, ranges=ranges)
    case("__mod__", operator.mod, modulo, kinds, kinds, ranges=ranges)
case("__rfloordiv__", lambda a: 100 // a, lambda a: each(divide)(100, a), INTEGERS, ranges=((1, None),))
case("__rmod__", lambda a: 100 % a, lambda a: modulo(100, a), INTEGERS, ranges=((1, None),))
case("__mod__ of floats", operator.mod, np.fmod, FLOATS, FLOATS, ranges=(ANY, (1, 4)))
case("__truediv__", operator.truediv, operator.truediv, FLOATS, FLOATS, ranges=(ANY, (1, 4)), last_digits=2)
case("__truediv__ of integers", operator.truediv, lambda a, b: a.astype(float) / b.astype(float), INTEGERS, INTEGERS,
     ranges=(ANY, (1, None)), last_digits=2)  # fmt: skip
case("__rtruediv__", lambda a: 3 / a, lambda a: 3 / a.astype(float), NUMBERS, ranges=((1, 4),), last_digits=2)
for name, function in (("sub", operator.sub), ("add", operator.add)):
    case(f"__{name}__ of booleans", function, lambda a, b: a ^ b, BOOL, BOOL)
case("__neg__", operator.neg, operator.neg, NUMBERS)
case("__invert__", operator.invert, operator.invert, INTEGERS)
case("__invert__ of booleans", operator.invert, lambda a: a == False, BOOL)  # noqa: E712 - of each element
case("logical_and", lambda a, b: a.logical_and(b), operator.and_, BOOL, BOOL)
case("logical_or", lambda a, b: a.logical_or(b), operator.or_, BOOL, BOOL)
for name in ("add", "sub", "mul"):
    case(name, lambda a, b, n=name: getattr(tl, n)(a, b), getattr(operator, name), NUMBERS, NUMBERS)
for name in ("minimum", "maximum"):
    case(name, lambda a, b, n=name: getattr(tl, n)(a, b), getattr(np, name), NUMBERS, NUMBERS)
    case(f"{name} with NaN", lambda a, b, n=name: getattr(tl, n)(a, b, propagate_nan=tl.PropagateNan.ALL),
         getattr(np, name), FLOATS, FLOATS)  # fmt: skip
    case(f"{name} without NaN", lambda a, n=name: getattr(tl, n)(a, float("nan")), lambda a: a, FLOATS)
case(
    "cdiv",
    tl.cdiv,
    each(lambda a, b: -(-a // b)),
    WIDE_INTEGERS,
    WIDE_INTEGERS,
    ranges=((0, 99), FEW),
)
case("abs", tl.abs, np.abs, NUMBERS)
case("clamp", lambda a: tl.clamp(a, -0.5, 0.5), lambda a: np.clip(a, -0.5, 0.5), FLOATS)
case("clamp with NaN", lambda a: tl.clamp(a, -0.5, 0.5, propagate_nan=tl.PropagateNan.ALL),
     lambda a: np.clip(a, -0.5, 0.5), FLOATS)  # fmt: skip
case("fma", tl.fma, lambda a, b, c: a * b + c, FLOATS, FLOATS, FLOATS)
case("where", tl.where, lambda c, a, b: np.where(c.astype(bool), a, b), BOOL, ALL, ALL)
case("expect_zero", lambda a, c: tl.expect_zero(tl.where(c, a, 0), c), lambda a, c: np.where(c.astype(bool), a, 0),
     INTEGERS, BOOL)  # fmt: skip
for kind in (*ALL, *E4M3, *E5M2):
    to = TYPES.get(kind) or getattr(tl, kind)
    if kind in INTEGERS or kind == "bool":
        case("cast", lambda a, to=to: tl.cast(a, to), lambda a: a, INTEGERS + BOOL)
        truncate = (lambda a: a) if kind == "bool" else each(math.trunc)
        case("cast of floats", lambda a, to=to: tl.cast(a, to), truncate, FLOATS, ranges=((0, 100),))
    else:
        sources = FLOATS + E4M3 + E5M2 if kind in E4M3 + E5M2 else ALL + E4M3 + E5M2
        limits = (ANY,) if kind not in FLOAT16 + E4M3 + E5M2 else ((0, 100),)
        case("to", lambda a, to=to: a.to(to), lambda a: a.astype(float), sources, ranges=limits)
for kinds in ((*INT8, "uint8", *E4M3, *E5M2), ("int16", "uint16", "float16", "bfloat16"), ("int32", "float32"),
              ("int64", "uint64", "float64")):  # fmt: skip
    for kind in kinds:
        to = TYPES.get(kind) or getattr(tl, kind)
        case("to bits", lambda a, to=to: a.to(to, bitcast=True).to(a.dtype, bitcast=True), lambda a: a, kinds)
case("to rtz", lambda a: a.to(tl.bfloat16, fp_downcast_rounding="rtz"),
     lambda a: (a.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32), FLOAT32)  # fmt: skip
for name in ("exp", "exp2", "sin", "cos", "floor", "ceil", "erf"):
    expected = getattr(np, name, np.vectorize(math.erf))
    case(name, lambda a, n=name: getattr(tl, n)(a), expected, WIDE_FLOATS, last_digits=4)
for name in ("log", "log2", "sqrt", "rsqrt"):
    expected = getattr(np, name, lambda a: 1 / np.sqrt(a))
    case(name, lambda a, n=name: getattr(tl, n)(a), expected, WIDE_FLOATS, ranges=((0.1, 10),), last_digits=4)
case("sqrt_rn", tl.sqrt_rn, np.sqrt, FLOAT32, ranges=((0.1, 10),))
case("div_rn", tl.div_rn, operator.truediv, FLOAT32, FLOAT32)
case("fdiv", tl.fdiv, operator.truediv, FLOATS, FLOATS, ranges=((1, 3),), last_digits=2)
for kind in WIDE_INTEGERS:
    kinds = (kind,)
    case("umulhi", tl.umulhi, multiply_high(int(kind[-2:])), kinds, kinds)
case("sigmoid", tl.sigmoid, lambda a: 1 / (1 + np.exp(-a)), WIDE_FLOATS, last_digits=4)
case("softmax", tl.softmax, lambda a: np.exp(a) / np.exp(a).sum(), WIDE_FLOATS, last_digits=8)
for axis in (0, 1, None):
    more = {"axis": axis, "keepdims": axis == 0}
    case("sum", lambda a, n=axis: tl.sum(rows(a), axis=n, keep_dims=n == 0), lambda a, m=more: rows(a).sum(**m), ALL,
         last_digits=16)  # fmt: skip
    for name in ("max", "min"):
        case(name, lambda a, f=name, n=axis: getattr(tl, f)(rows(a), axis=n), lambda a, f=name, n=axis:
             getattr(rows(a), f)(axis=n), ALL)  # fmt: skip
case("sum in float32", lambda a: tl.sum(a, dtype=tl.float32), np.sum, FLOATS, last_digits=16)
for name in ("argmax", "argmin"):
    for axis in (0, 1):
        case(name, lambda a, f=name, n=axis: getattr(tl, f)(rows(a), axis=n), lambda a, f=name, n=axis:
             getattr(rows(a.astype(float)), f)(axis=n), NUMBERS)  # fmt: skip
case("max with indices", lambda a: tl.max(rows(a), axis=1, return_indices=True),
     lambda a: (rows(a).max(1), rows(a.astype(float)).argmax(1)), NUMBERS)  # fmt: skip
case("xor_sum", lambda a: tl.xor_sum(a, axis=0), np.bitwise_xor.reduce, INTEGERS + BOOL)
case("reduce_or", lambda a: tl.reduce_or(a, axis=0), np.bitwise_or.reduce, INTEGERS + BOOL)
case("cumsum", lambda a: tl.cumsum(rows(a), 1), lambda a: np.cumsum(rows(a), 1), ALL, last_digits=32)
case("cumsum reverse", lambda a: tl.cumsum(a, 0, reverse=True), lambda a: np.cumsum(a[::-1])[::-1], ALL, last_digits=99)
case("cumprod", lambda a: tl.cumprod(a, 0), np.cumprod, NUMBERS, last_digits=64)
case("sort", tl.sort, np.sort, NUMBERS)
case("sort descending", lambda a: tl.sort(a, descending=True), lambda a: np.sort(a)[::-1], NUMBERS)
case("topk", lambda a: tl.topk(a, 4), lambda a: np.sort(a)[::-1][:4], NUMBERS)
case("bitonic_merge", lambda a: tl.bitonic_merge(tl.cat(tl.sort(a), tl.sort(a, descending=True), can_reorder=True)),
     lambda a: np.sort(np.concatenate([a, a])), NUMBERS)  # fmt: skip
case("flip", lambda a: tl.flip(rows(a), 0), lambda a: rows(a)[::-1], NUMBERS)
case("interleave", tl.interleave, lambda a, b: np.stack([a, b], -1), NUMBERS, NUMBERS)
case("split", lambda a, b: tl.split(tl.join(a, b)), lambda a, b: (a, b), ALL, ALL)
case("join", tl.join, lambda a, b: np.stack([a, b], -1), ALL, ALL)
case("cat", lambda a, b: tl.cat(a, b, can_reorder=True), lambda a, b: np.concatenate([a, b]), ALL, ALL)
case("ravel", lambda a: tl.ravel(rows(a)), lambda a: a, ALL)
case("reshape", lambda a: tl.reshape(a, 4, 8), rows, ALL)
case("view", lambda a: tl.view(a, (4, 8)), rows, ALL)
case("trans", lambda a: tl.trans(rows(a)), lambda a: rows(a).T, ALL)
case("permute", lambda a: tl.permute(rows(a), 1, 0), lambda a: rows(a).T, ALL)
case("__getitem__", lambda a: a[None, :, None], lambda a: a[None, :, None], ALL)
case("expand_dims", lambda a: tl.expand_dims(a, 1), lambda a: a[:, None], ALL)
case("squeeze", lambda a: tl.squeeze(a[None, :], 0), lambda a: a, ALL)
case("unsqueeze", lambda a: tl.unsqueeze(a, 0), lambda a: a[None, :], ALL)
case("item", lambda a: tl.max(a, axis=0, keep_dims=True).item(), np.max, WIDE_INTEGERS)
case("broadcast_to", lambda a: tl.broadcast_to(a[:, None], 32, 2), lambda a: np.stack([a, a], 1), ALL)
case("broadcast", lambda a, b: tl.broadcast(a[:, None], b[None, :]),
     lambda a, b: np.broadcast_arrays(a[:, None], b[None, :]), ALL, ALL)  # fmt: skip
case("zeros", lambda a: tl.zeros((4,), a.dtype), lambda _: np.zeros(4), ALL)
case("zeros_like", tl.zeros_like, lambda a: np.zeros(a.shape), ALL)
case("full", lambda a: tl.full((4,), 1, a.dtype), lambda _: np.ones(4), ALL)
case("full of infinity", lambda a: tl.full((4,), float("-inf"), a.dtype), lambda _: np.full(4, -np.inf), FLOATS)
case("to_tensor", lambda a: tl.to_tensor(7), lambda _: np.full(1, 7), INT8)
case(
    "histogram",
    lambda a: tl.histogram(a, 16),
    lambda a: np.bincount(a.astype(int), minlength=16),
    INTEGERS,
    ranges=((0, 15),),
)
case("histogram of a mask", lambda a, m: tl.histogram(a, 16, mask=m),
     lambda a, m: np.bincount(a[m.astype(bool)].astype(int), minlength=16), INTEGERS, BOOL,
     ranges=((0, 15),))  # fmt: skip
case("gather", lambda a, i: tl.gather(a, i, 0), lambda a, i: a[i.astype(int)], ALL, INTEGERS, ranges=(ANY, (0, 31)))
case("dot", product_of := lambda a, b: tl.dot(a.reshape(2, 16), b.reshape(16, 2)), product, INT8, INT8)
for kinds in (FLOAT16, ("bfloat16",), ("float64",), E4M3, E5M2):
    case("dot", product_of, product, kinds, kinds, last_digits=64)
case("dot in float16", lambda a, b: tl.dot(a.reshape(2, 16), b.reshape(16, 2), out_dtype=tl.float16), product, FLOAT16,
     FLOAT16, last_digits=16)  # fmt: skip
for precision, last_digits in (("tf32", 2**15), ("tf32x3", 64), ("ieee", 32), ("bf16x3", 2**9), ("bf16x6", 32)):
    case(f"dot {precision}", lambda a, b, p=precision: tl.dot(a.reshape(2, 16), b.reshape(16, 2), input_precision=p),
         product, FLOAT32, FLOAT32, last_digits=last_digits)  # fmt: skip
for kinds, name in ((E4M3, "e4m3"), (E5M2, "e5m2")):
    case("dot_scaled", lambda a, b, n=name: tl.dot_scaled(a.reshape(1, 32), tl.full((1, 1), 129, tl.uint8), n,
         b.reshape(32, 1), None, n), lambda a, b: 4 * (a @ b), kinds, kinds, last_digits=64)  # fmt: skip
case(
    "map_elementwise",
    lambda a, b: tl.map_elementwise(lambda x, y: x if x > y else y, a, b),
    np.maximum,
    NUMBERS,
    NUMBERS,
)
case("map_elementwise of pairs", lambda a: tl.map_elementwise(lambda x, y: (y, x), a, pack=2),
     lambda a: a.reshape(16, 2)[:, ::-1], NUMBERS)  # fmt: skip
case(
    "associative_scan",
    lambda a: tl.associative_scan(a, 0, tl.standard._sum_combine),
    np.cumsum,
    NUMBERS,
    last_digits=32,
)
case("reduce", lambda a: tl.reduce(a, 0, tl.standard._elementwise_max), np.max, NUMBERS)
case(
    "reduce with NaN", lambda a: tl.argmax(tl.where(a < 99, float("nan"), a), axis=0) * 0, lambda _: np.zeros(1), FLOATS
)
case("philox", lambda a: tl.philox(7, a, a * 0, a * 0, a * 0)[0], each(lambda a: draw_random(7, a)), ("uint32",))
for name in ("randint", "rand"):
    expected = {"randint": lambda a: draw_random(7, a), "rand": lambda a: make_uniform(draw_random(7, a))}[name]
    kinds = ("int32", "uint32")
    case(
        name, lambda a, n=name: getattr(tl, n)(7, a), np.vectorize(expected), kinds, ranges=((0, None),), last_digits=4
    )
case(
    "uint_to_uniform_float",
    tl.uint_to_uniform_float,
    np.vectorize(make_uniform),
    ("uint32",),
    last_digits=4,
)
case("pair_uniform_to_normal", tl.pair_uniform_to_normal, lambda a, b: (
     np.sqrt(-2 * np.log(a)) * np.cos(2 * np.pi * b), np.sqrt(-2 * np.log(a)) * np.sin(2 * np.pi * b)), FLOAT32,
     FLOAT32,
     ranges=((0.1, 0.9),), last_digits=64)  # fmt: skip
case("swizzle2d", lambda a: tl.swizzle2d(a // 8, a % 8, 4, 8, 2), lambda a: (a // 16 * 2 + a % 2, a % 16 // 2),
     ("int32",),
     ranges=((0, 31),))  # fmt: skip

CALLED = {one.name.partition(" ")[0] for one in CASES} | KERNELS | REVIEWED
