"""Interprets inline assembly in Triton kernels for all lanes at once.

Registers are arrays of bits, one element per packed group of lanes: Triton packs elements narrower than 32 bits.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness.worker.emulated.triton.arithmetic import (
    NotCovered,
    clamp_to_unit,
    cut_to_tf32,
    multiply_and_add,
    round_to_bfloat16,
    round_to_float8,
    saturate,
    take_reciprocal_root,
    widen_bfloat16,
    widen_float8,
)

# Hints and orderings, without effect where programs run one after another.
_NOTHING = re.compile(r"(fence|membar|prefetchu?|griddepcontrol|nanosleep|createpolicy|discard)\b.*")
_STATEMENT = re.compile(r"(?:@(?P<negated>!?)(?P<guard>[%\w]+)\s+)?(?P<name>[\w.:]+)\s*(?P<operands>.*)", re.DOTALL)
_OPERAND = re.compile(r"\{[^}]*\}|[^,{}]+")


@dataclass(slots=True)
class _Machine:
    groups: int
    registers: dict[str, Bits] = field(default_factory=dict)

    def read(self, name: str) -> Bits:
        found = self.registers.get(name)
        return np.broadcast_to(read_constant(name), self.groups) if found is None else found

    def write(self, name: str, bits: Bits, where: np.ndarray | None) -> None:
        old = self.registers.get(name)
        if where is not None:
            bits = np.where(where, bits, np.uint64(0) if old is None else old)
        self.registers[name] = bits

    def run(self, statement: str) -> None:
        found = _STATEMENT.fullmatch(statement)
        if found is None or statement.endswith(":") or "[" in statement:
            raise NotCovered(f"inline assembly with `{statement}` is not covered by the emulated device")
        where = None
        if found["guard"]:
            where = (self.read(found["guard"]) != 0) ^ bool(found["negated"])
        target, *sources = (one.strip() for one in _OPERAND.findall(found["operands"])) if found["operands"] else [""]
        values = [[self.read(name) for name in _list_names(source)] for source in sources]
        targets = _list_names(target)
        for name, bits in zip(targets, compute(found["name"], values, len(targets), statement), strict=True):
            self.write(name, np.broadcast_to(bits, self.groups), where)


def interpret(
    text: str, constraints: str, arguments: list[np.ndarray], results: list[np.dtype], pack: int
) -> list[np.ndarray]:
    """Arguments have one shape. Raises NotCovered."""
    shape = arguments[0].shape if arguments else (1,)
    lanes = int(np.prod(shape, dtype=np.int64))
    groups = -(-lanes // pack)
    machine = _Machine(groups)
    outputs = [_count_registers(kind, pack) for kind in results]
    at = sum(outputs)
    if any(one.strip().lstrip("=&").isdigit() or "+" in one for one in constraints.split(",")):
        raise NotCovered(f"inline assembly with the constraints {constraints!r} is not covered by the emulated device")
    for argument in arguments:
        for register in _split_registers(argument, groups, pack):
            machine.registers[f"${at}"] = register
            at += 1
    for statement in _list_statements(text):
        machine.run(statement)
    found, at = [], 0
    for kind, count in zip(results, outputs, strict=True):
        registers = [machine.read(f"${number}") for number in range(at, at + count)]
        width = kind.itemsize * _per_register(kind, pack)
        words = np.stack([register.astype(f"u{width}") for register in registers], axis=1)
        found.append(np.ascontiguousarray(words).view(kind).reshape(-1)[:lanes].reshape(shape))
        at += count
    return found


def _list_statements(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).replace("$$", "$")
    text = re.sub(r"(^|;|(?<=\})|(?<=\{))(\s*[{}])+", r"\1", text.strip())
    statements = [" ".join(one.split()) for one in text.split(";")]
    kept = (one.strip("{} ") if one.count("{") != one.count("}") else one for one in statements)
    return [one for one in kept if one and not one.startswith(".reg") and not _NOTHING.fullmatch(one)]


def _list_names(operand: str) -> list[str]:
    """Split `{a, b}` into two registers, and `p|q` into the two predicates of one instruction."""
    names = operand.strip("{}").split(",") if operand.startswith("{") else operand.split("|")
    return [name.strip() for name in names if name.strip()]


def _per_register(kind: np.dtype, pack: int) -> int:
    return min(32 // (8 * kind.itemsize), pack) if kind.itemsize < 4 else 1


def _count_registers(kind: np.dtype, pack: int) -> int:
    return pack // _per_register(kind, pack)


def _split_registers(values: np.ndarray, groups: int, pack: int) -> list[Bits]:
    kind, per = values.dtype, _per_register(values.dtype, pack)
    padded = np.zeros(groups * pack, dtype=kind)
    padded[: values.size] = values.reshape(-1)
    words = padded.view(f"u{kind.itemsize * per}").astype(np.uint64).reshape(groups, -1)
    return [words[:, number] for number in range(words.shape[1])]


Bits = np.ndarray  # uint64
_KINDS = {
    **{
        f"{kind}{bits}": np.dtype(f"{code}{bits // 8}")
        for kind, code in (("s", "i"), ("u", "u"), ("b", "u"))
        for bits in (8, 16, 32, 64)
    },
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "f16": np.dtype(np.float16), "tf32": np.dtype(np.float32),
    "pred": np.dtype(np.uint8),
}  # fmt: skip
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_UNARY: dict[str, Callable[..., Any]] = {
    "ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "sqrt": np.sqrt, "rsqrt": take_reciprocal_root,
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "abs": np.abs, "neg": np.negative, "not": np.invert,
    "mov": lambda a: a, "cvta": lambda a: a,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "copysign": lambda a, b: np.copysign(b, a),
}  # fmt: skip
_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FP8 = {"e4m3x2": torch.float8_e4m3fn, "e5m2x2": torch.float8_e5m2}
_CLOCKS = ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo")
_CONSTANTS = {"%smid": 0, "%nsmid": 1}


def read_constant(name: str) -> Bits:
    """A register that was never written is zero."""
    if name in _CLOCKS:
        return np.uint64(time.monotonic_ns())  # type: ignore[return-value]
    if name in _CONSTANTS:
        return np.uint64(_CONSTANTS[name])  # type: ignore[return-value]
    if name.startswith("%") and re.fullmatch(r"%(n?tid|n?ctaid)\.[xyz]|%(lane|warp)id|%lanemask_\w+", name):
        raise NotCovered(f"inline assembly with {name} is not covered by the emulated device")
    if found := re.fullmatch(r"0([fFdD])([0-9a-fA-F]{8,16})", name):
        return np.uint64(int(found[2], 16))  # type: ignore[return-value]
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", name):
        return np.uint64(int(name.rstrip("U"), 0) & (2**64 - 1))  # type: ignore[return-value]
    if re.fullmatch(r"-?\d*\.\d*(e[+-]?\d+)?", name):
        return np.uint64(struct.unpack("<I", struct.pack("<f", float(name)))[0])  # type: ignore[return-value]
    return np.uint64(0)  # type: ignore[return-value]


def compute(name: str, operands: list[list[Bits]], results: int, statement: str) -> list[Bits]:
    """Raises NotCovered."""
    parts = [part for part in name.split(".") if part not in ("ftz", "approx", "full", "rn", "relaxed", "volatile")]
    if name.startswith("cvt") and "rn" in name.split("."):
        parts.insert(1, "rn")
    whole = operands[0] if operands else []
    if parts[0] == "mov" and (len(whole) > 1 or results > 1):
        return _repack(whole, results, int(re.sub(r"\D", "", parts[-1])))
    values = [one[0] for one in operands if len(one) == 1]
    found = None
    if len(values) == len(operands) and results == 1:
        found = _convert(parts, values) if parts[0] == "cvt" else _calculate(parts, values)
    if found is None:
        raise NotCovered(f"inline assembly with `{statement}` is not covered by the emulated device")
    return [found]


def _take(bits: Bits, kind: str) -> Any:
    if kind == "bf16":
        return widen_bfloat16(bits.astype(np.uint16))
    target = _KINDS[kind]
    return bits.astype(f"u{target.itemsize}").view(target)


def _give(values: Any, kind: str) -> Bits:
    if kind == "bf16":
        return round_to_bfloat16(values).astype(np.uint64)
    target = _KINDS[kind]
    made = np.ascontiguousarray(np.asarray(values).astype(target, copy=False))
    return made.view(f"u{target.itemsize}").astype(np.uint64)


def _repack(parts: list[Bits], results: int, width: int) -> list[Bits]:
    """Implement `mov.b32 a, {b, c}` and the reverse; the lowest part is first."""
    step = np.uint64(width // max(len(parts), results))
    mask = np.uint64((1 << int(step)) - 1)
    if results == 1:
        joined = np.zeros_like(parts[0])
        for number, part in enumerate(parts):
            joined = joined | ((part & mask) << (step * np.uint64(number)))
        return [joined]
    return [(parts[0] >> (step * np.uint64(number))) & mask for number in range(results)]


def _calculate(parts: list[str], values: list[Bits]) -> Bits | None:  # noqa: PLR0911
    operation, kind = parts[0], parts[-1]
    if kind in _PAIRS:
        halves = [_calculate([*parts[:-1], _PAIRS[kind]], [_half(one, number) for one in values]) for number in (0, 1)]
        return None if halves[0] is None or halves[1] is None else halves[0] | (halves[1] << np.uint64(16))
    if operation == "selp" and len(values) == 3:
        return np.where(values[2] != 0, values[0], values[1])
    if operation == "lop3" and len(values) == 4:
        return _look_up(values)
    if operation == "prmt" and len(values) == 3:
        return _permute(*values)
    if kind not in _KINDS and kind != "bf16":
        return None
    taken = [_take(one, kind) for one in values]
    if operation == "setp" and len(taken) == 2 and parts[1] in _COMPARE:
        return np.asarray(_COMPARE[parts[1]](*taken)).astype(np.uint64)
    if operation in ("mul", "mad") and "wide" in parts:
        wide = {"u32": "u64", "s32": "s64", "u16": "u32", "s16": "s32"}.get(kind)
        if wide is None:
            return None
        left, right = (_take(one, kind).astype(_KINDS[wide]) for one in values[:2])
        product = left * right
        return _give(product + _take(values[2], wide) if len(values) == 3 else product, wide)
    result = _apply(operation, parts, kind, taken)
    if result is not None and "sat" in parts:
        result = clamp_to_unit(result)
    return None if result is None else _give(result, kind)


def _apply(operation: str, parts: list[str], kind: str, taken: list[Any]) -> Any:  # noqa: PLR0911
    floats = "f" in kind
    match operation, len(taken):
        case _, 1 if operation in _UNARY:
            return _UNARY[operation](taken[0])
        case "mul", 2 if "hi" in parts:
            return None
        case _, 2 if operation in _BINARY:
            return _BINARY[operation](*taken)
        case "div", 2:
            return taken[0] / taken[1] if floats else None
        case "fma" | "mad", 3 if floats:
            return multiply_and_add(*taken)
        case "mad", 3 if "hi" not in parts:
            return taken[0] * taken[1] + taken[2]
        case "shl" | "shr", 2:
            return _shift(operation, taken[0], taken[1])
        case "bfe", 3 if kind == "u32":
            return (taken[0] >> taken[1]) & ((np.uint64(1) << taken[2].astype(np.uint64)) - np.uint64(1))
        case "popc", 1:
            return np.bitwise_count(taken[0])
    return None


def _shift(operation: str, values: Any, by: Any) -> Any:
    width = 8 * values.dtype.itemsize
    by = by.astype(np.uint64)
    near = np.minimum(by, width - 1).astype(values.dtype)
    if operation == "shl":
        return np.where(by < width, values << near, values.dtype.type(0))
    return np.where((by < width) | (values.dtype.kind == "i"), values >> near, values.dtype.type(0))


def _half(bits: Bits, number: int) -> Bits:
    return (bits >> np.uint64(16 * number)) & np.uint64(0xFFFF)


def _look_up(values: list[Bits]) -> Bits:
    """Implement `lop3`."""
    table, found = int(values[3].reshape(-1)[0]) if values[3].size else 0, np.zeros_like(values[0])
    for row in range(8):
        if table >> row & 1:
            a, b, c = (one if row >> (2 - at) & 1 else ~one for at, one in enumerate(values[:3]))
            found = found | (a & b & c)
    return found & np.uint64(0xFFFFFFFF)


def _permute(low: Bits, high: Bits, selector: Bits) -> Bits:
    """Bit 3 of a selector replicates the sign."""
    both = (low & np.uint64(0xFFFFFFFF)) | (high << np.uint64(32))
    found = np.zeros_like(both)
    for number in range(4):
        chosen = (selector >> np.uint64(4 * number)) & np.uint64(0xF)
        byte = (both >> (np.uint64(8) * (chosen & np.uint64(7)))) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
        found = found | (np.where(chosen >> np.uint64(3), sign, byte) << np.uint64(8 * number))
    return found


def _convert(parts: list[str], values: list[Bits]) -> Bits | None:
    target, source = parts[-2:]
    how = [part for part in parts[1:-2] if part not in ("rn", "satfinite")]
    if target in _FP8 and source == "f32" and len(values) == 2 and not how:
        high, low = (round_to_float8(_take(one, "f32"), _FP8[target]).astype(np.uint64) for one in values)
        return np.asarray(low | (high << np.uint64(8)))
    if source in _FP8 and target == "f16x2" and not how:
        pairs = values[0].astype(np.uint16)
        low, high = (
            _give(widen_float8(byte.astype(np.uint8), _FP8[source], torch.float16), "f16")
            for byte in (pairs & 0xFF, pairs >> 8)
        )
        return np.asarray(low | (high << np.uint64(16)))
    if target in _PAIRS and source == "f32" and len(values) == 2 and not set(how) - {"relu"}:
        high, low = (_take(one, "f32") for one in values)
        high, low = (np.maximum(one, 0) if "relu" in how else one for one in (high, low))
        return np.asarray(_give(low, _PAIRS[target]) | (_give(high, _PAIRS[target]) << np.uint64(16)))
    known = {*_KINDS, "bf16"}
    if target not in known or source not in known or len(values) != 1:
        return None
    return _convert_number(how, _take(values[0], source), target, target[0] in "fbt" and source[0] in "fbt")


def _convert_number(how: list[str], value: Any, target: str, between_floats: bool) -> Bits | None:
    if target == "tf32":
        return _give(_round_to_tf32(value), "tf32") if how in ([], ["rna"]) else None
    if how == ["sat"] and between_floats:
        return _give(clamp_to_unit(value), target)
    if len(how) == 1 and how[0] in _ROUND and value.dtype.kind == "f":
        rounded = _ROUND[how[0]](value)
        return _give(rounded if between_floats else saturate(rounded, _KINDS[target]), target)
    if set(how) <= {"sat"} and target[0] in "su" and value.dtype.kind in "iu":
        limits = np.iinfo(_KINDS[target])
        return _give(np.clip(value.astype(np.int64), limits.min, limits.max) if how else value, target)
    return None if how else _give(value, target)


def _round_to_tf32(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return cut_to_tf32((bits + np.uint32(0x1000)).view(np.float32))
