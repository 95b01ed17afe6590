"""Translates operands and arithmetic instructions of inline PTX to C++; unsupported ones give None."""

import re
from dataclasses import dataclass

TYPES = {
    "r": "uint32_t",
    "l": "uint64_t",
    "h": "uint16_t",
    "f": "float",
    "d": "double",
    "n": "int64_t",
    "q": "__int128",
}
REGISTERS = {
    "pred": "bool", "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t", "b32": "uint32_t", "u32": "uint32_t",
    "s32": "int32_t", "f32": "float", "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t", "f64": "double",
}  # fmt: skip
_SPECIAL = {
    "%laneid": "uint32_t(C->lane)", "%warpid": "uint32_t(C->warp)", "%nwarpid": "32u", "%smid": "0u", "%nsmid": "1u",
    "%tid.x": "C->thread.x", "%tid.y": "C->thread.y", "%tid.z": "C->thread.z",
    "%ctaid.x": "C->block->index.x", "%ctaid.y": "C->block->index.y", "%ctaid.z": "C->block->index.z",
    "%ntid.x": "C->block->launch->block.x", "%ntid.y": "C->block->launch->block.y",
    "%ntid.z": "C->block->launch->block.z",
    "%nctaid.x": "C->block->launch->grid.x", "%nctaid.y": "C->block->launch->grid.y",
    "%nctaid.z": "C->block->launch->grid.z",
    "%lanemask_lt": "((1u << C->lane) - 1u)", "%lanemask_le": "((2u << C->lane) - 1u)",
    "%lanemask_eq": "(1u << C->lane)",
    "%lanemask_gt": "~((2u << C->lane) - 1u)", "%lanemask_ge": "~((1u << C->lane) - 1u)",
    "%clock": "uint32_t(::harness_emulator::read_clock())", "%clock64": "::harness_emulator::read_clock()",
    "%dynamic_smem_size": "uint32_t(C->block->dynamic_bytes)",
    "%globaltimer": "::harness_emulator::read_clock()",
}  # fmt: skip
RUNTIME = "::harness_emulator::ptx"


class PtxError(Exception):
    """Unsupported assembly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """`direction` is "=", "+" or ""; `expression` is C++ source."""

    direction: str
    kind: str
    expression: str


def write_register(name: str) -> str:
    return "harness_r_" + re.sub(r"\W", "_", name.strip())


def write_value(text: str, operands: list[Operand]) -> str:
    """`text` is a numbered operand, special register, number, or register of the block."""
    text = text.strip().replace("%%", "%")
    if found := re.fullmatch(r"%(\d+)", text):
        if int(found[1]) >= len(operands):
            raise PtxError(f"operand {text}")
        return f"harness_o{found[1]}"
    if text in _SPECIAL:
        return "(" + _SPECIAL[text].replace("C->", "::harness_emulator::current->") + ")"
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)[uU]?", text):
        return text
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return f"{text}f"
    if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return f"__uint_as_float(0x{found[1]}u)"
    if re.fullmatch(r"%?[A-Za-z_]\w*", text):
        return write_register(text)
    raise PtxError(f"the operand {text}")


def write_vector(text: str, operands: list[Operand]) -> list[str]:
    if text.startswith("{"):
        return [write_value(part, operands) for part in text.strip("{}").split(",")]
    return [write_value(text, operands)]


def write_address(text: str, operands: list[Operand]) -> str:
    found = re.fullmatch(r"\[\s*(%?\w+)\s*(?:\+\s*(%?-?\w+))?\s*\]", text)
    if not found:
        raise PtxError(f"the address {text}")
    offset = f" + {write_value(found[2], operands)}" if found[2] else ""
    return f"{write_value(found[1], operands)}{offset}"


_BINARY = {
    "add": "a + b", "sub": "a - b", "and": "a & b", "or": "a | b", "xor": "a ^ b",
    "min": "a < b || b != b ? a : b", "max": "a > b || b != b ? a : b", "shl": "b > 31 && sizeof(a) == 4 ? 0 : a << b",
    "shr": "b > 31 && sizeof(a) == 4 ? 0 : a >> b", "div": "a / b", "rem": "a % b",
}  # fmt: skip
_FLOAT_UNARY = {
    "ex2": "::exp2f(a)", "lg2": "::log2f(a)", "rcp": "1.0f / a", "sqrt": "::sqrtf(a)", "rsqrt": "1.0f / ::sqrtf(a)",
    "tanh": "::tanhf(a)", "sin": "::sinf(a)", "cos": "::cosf(a)", "abs": "::fabsf(a)", "neg": "-a",
}  # fmt: skip


def write_arithmetic(name: str, arguments: list[str], operands: list[Operand]) -> str | None:  # noqa: PLR0911, PLR0912
    parts = name.split(".")
    kind = REGISTERS.get(parts[-1])
    if parts[0] == "mov" and len(arguments) == 2 and any(argument.startswith("{") for argument in arguments):
        return _write_packing(arguments, operands)
    values = [write_value(argument, operands) for argument in arguments] if all("[" not in a for a in arguments) else []
    if not values:
        return None
    if parts[0] in ("mov", "cvta") and kind is not None and not arguments[0].startswith("{") and len(values) == 2:
        if parts[0] == "cvta":
            source = f"uint64_t(::__cvta_generic_to_shared(reinterpret_cast<const void*>({values[1]})))"
            return f"{RUNTIME}::give({values[0]}, {source if 'shared' in parts else values[1]});"
        return f"{RUNTIME}::give({values[0]}, {RUNTIME}::take<{kind}>({values[1]}));"
    if name in ("cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32"):
        small = "__half" if "bf16" not in name else "__nv_bfloat16"
        return f"{values[0]} = {RUNTIME}::pack_two<{small}>({values[2]}, {values[1]});"
    if converted := _write_small_float(parts, values):
        return converted
    if name == "cvt.rna.tf32.f32":
        return f"{values[0]} = {RUNTIME}::to_tf32({RUNTIME}::take<float>({values[1]}));"
    if parts[0] == "cvt" and len(values) == 2:
        return _write_conversion(parts, values)
    if kind is None:
        return None
    taken = [f"{RUNTIME}::take<{kind}>({value})" for value in values[1:]]
    if parts[0] in _FLOAT_UNARY and kind == "float" and len(taken) == 1:
        return f"const float a = {taken[0]}; {RUNTIME}::give({values[0]}, {_FLOAT_UNARY[parts[0]]});"
    if parts[0] in _BINARY and len(taken) == 2 and "cc" not in parts and "sat" not in parts:
        return (
            f"const {kind} a = {taken[0]}, b = {taken[1]}; {RUNTIME}::give({values[0]}, {kind}({_BINARY[parts[0]]}));"
        )
    if parts[0] == "mul" and len(taken) == 2 and ("lo" in parts or kind in ("float", "double")):
        return f"{RUNTIME}::give({values[0]}, {kind}({taken[0]} * {taken[1]}));"
    if parts[0] in ("fma", "mad") and len(taken) == 3 and kind in ("float", "double"):
        return f"{RUNTIME}::give({values[0]}, {kind}(::fma({', '.join(taken)})));"
    if parts[0] == "mad" and len(taken) == 3 and "lo" in parts:
        return f"{RUNTIME}::give({values[0]}, {kind}({taken[0]} * {taken[1]} + {taken[2]}));"
    if parts[0] == "setp" and len(taken) == 2 and len(parts) == 3:
        compare = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.get(parts[1])
        return None if compare is None else f"{values[0]} = {taken[0]} {compare} {taken[1]};"
    if parts[0] == "selp" and len(values) == 4:
        return f"{RUNTIME}::give({values[0]}, {values[3]} ? {taken[0]} : {taken[1]});"
    one_word = {"popc": "__popc", "clz": "__clz", "brev": "__brev"}.get(parts[0])
    if one_word and kind == "uint32_t":
        return f"{values[0]} = {one_word}({taken[0]});"
    return _write_bits(parts, kind, values, taken)


_ROUND = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_INTEGERS = {"int32_t": "int", "uint32_t": "uint", "int64_t": "ll", "uint64_t": "ull"}
_DIRECTIONS = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}


def _write_conversion(parts: list[str], values: list[str]) -> str | None:
    """Conversions from float to integer saturate as on a GPU."""
    small = {"u8": "uint8_t", "s8": "int8_t"}
    to, source = ({**REGISTERS, **small}.get(part) for part in parts[-2:])
    how = [part for part in parts[1:-2] if part != "ftz"]
    if to is None or source is None or "bool" in (to, source) or len(how) > 1:
        return None
    value = f"{RUNTIME}::take<{source}>({values[1]})"
    floats = ("float", "double")
    if source in floats and to not in floats:
        if to not in _INTEGERS or not how or how[0] not in _DIRECTIONS:
            return None
        value = f"__{source}2{_INTEGERS[to]}_{_DIRECTIONS[how[0]]}({value})"
    elif how == ["sat"] and (to, source) == ("float", "float"):
        value = f"__saturatef({value})"
    elif how and how[0] in _ROUND and to == source:
        value = f"::{_ROUND[how[0]]}({value})"
    elif how not in ([], ["rn"]):
        return None
    return f"{RUNTIME}::give({values[0]}, {to}({value}));"


def _write_packing(arguments: list[str], operands: list[Operand]) -> str | None:
    """Translate `mov.b64 %0, {%1, %2}` and the reverse; the lowest part is first."""
    packs = arguments[1].startswith("{")
    parts = write_vector(arguments[1 if packs else 0], operands)
    whole = write_value(arguments[0 if packs else 1], operands)
    if packs:
        return f"{RUNTIME}::pack({whole}, {', '.join(parts)});"
    return f"{RUNTIME}::unpack({whole}, {', '.join(parts)});"


_PAIRWISE = {"add": "__hadd2", "sub": "__hsub2", "mul": "__hmul2", "fma": "__hfma2", "max": "__hmax2", "min": "__hmin2"}


def _write_small_float(parts: list[str], values: list[str]) -> str | None:
    give, take = f"{RUNTIME}::give", f"{RUNTIME}::take"
    small = {"f16": "__half", "bf16": "__nv_bfloat16", "f16x2": "__half2", "bf16x2": "__nv_bfloat162"}
    if parts[0] == "cvt" and parts[-1] == "f32" and parts[-2] in ("f16", "bf16") and parts[1] == "rn":
        made = f"{small[parts[-2]]}::harness_from({take}<float>({values[1]})).harness_bits()"
        return f"{give}({values[0]}, uint16_t({made}));"
    if parts[0] == "cvt" and parts[-2:] in (["f32", "f16"], ["f32", "bf16"]):
        made = f"{small[parts[-1]]}::harness_make({take}<uint16_t>({values[1]})).harness_value()"
        return f"{give}({values[0]}, {made});"
    if parts[-1] in ("f16x2", "bf16x2") and not {"sat", "relu"} & set(parts):
        pairs = [f"{take}<{small[parts[-1]]}>({value})" for value in values[1:]]
        if parts[0] in _PAIRWISE and len(pairs) in (2, 3):
            return f"{give}({values[0]}, {_PAIRWISE[parts[0]]}({', '.join(pairs)}));"
        if parts[0] in ("ex2", "tanh") and len(pairs) == 1:
            return f"{give}({values[0]}, {'h2exp2' if parts[0] == 'ex2' else 'h2tanh'}({pairs[0]}));"
    return None


def _write_bits(parts: list[str], kind: str, values: list[str], taken: list[str]) -> str | None:
    if parts[0] in ("mul", "mad") and parts[1] in ("wide", "hi"):
        expression = _write_wide_product(parts, kind, values, taken)
    else:
        expression = _write_field(parts, kind, values, taken)
    return None if expression is None else f"{RUNTIME}::give({values[0]}, {expression});"


def _write_wide_product(parts: list[str], kind: str, values: list[str], taken: list[str]) -> str | None:
    if kind in ("int64_t", "uint64_t") and parts[:2] == ["mul", "hi"]:
        return f"{'__mul64hi' if kind == 'int64_t' else '__umul64hi'}({taken[0]}, {taken[1]})"
    if kind not in ("int32_t", "uint32_t"):
        return None
    if parts[1] == "hi":
        return f"{'__mulhi' if kind == 'int32_t' else '__umulhi'}({taken[0]}, {taken[1]})" if len(taken) == 2 else None
    wide = kind.replace("32", "64")
    added = f" + {RUNTIME}::take<{wide}>({values[3]})" if parts[0] == "mad" else ""
    return f"{wide}({wide}({taken[0]}) * {wide}({taken[1]}){added})"


def _write_field(parts: list[str], kind: str, values: list[str], taken: list[str]) -> str | None:  # noqa: PLR0911, PLR0912
    match parts[0], len(taken):
        case "not", 1:
            return f"!{taken[0]}" if kind == "bool" else f"{kind}(~{taken[0]})"
        case "abs", 1 if kind in ("int32_t", "int64_t", "double"):
            return f"{kind}({taken[0]} < 0 ? -{taken[0]} : {taken[0]})"
        case "sqrt" | "rcp" | "rsqrt", 1 if kind == "double":
            return {"sqrt": "::sqrt(A)", "rcp": "1.0 / A", "rsqrt": "1.0 / ::sqrt(A)"}[parts[0]].replace("A", taken[0])
        case "copysign", 2:
            return f"::copysign({taken[1]}, {taken[0]})"
        case "dp4a", 3:
            return f"__dp4a({', '.join(taken)})" if parts[1] == parts[2] else None
        case "bfe", 3 if kind == "int32_t":
            return f"int32_t({taken[0]} << (32 - {taken[1]} - {taken[2]})) >> (32 - {taken[2]})"
        case "neg", 1:
            return f"{kind}(-{taken[0]})"
        case "bfe", 3 if kind == "uint32_t":
            return f"uint32_t((uint64_t({taken[0]}) >> {taken[1]}) & ((1ull << {taken[2]}) - 1))"
        case "bfi", 4 if kind == "uint32_t":
            mask = f"uint32_t(((1ull << {taken[3]}) - 1) << {taken[2]})"
            return f"uint32_t((({taken[0]} << {taken[2]}) & {mask}) | ({taken[1]} & ~{mask}))"
        case "bfind", 1 if kind == "uint32_t" and len(parts) == 2:
            return f"uint32_t(31 - __clz({taken[0]}))"
        case "prmt", 3:
            return f"__byte_perm({', '.join(taken)})"
        case "lop3", 4:
            return _write_table(taken, values[4])
        case "shf", 3 if parts[1] in ("l", "r"):
            return f"__funnelshift_{parts[1]}{'c' if 'clamp' in parts else ''}({', '.join(taken)})"
    return None


def _write_table(taken: list[str], table: str) -> str:
    """Translate lop3: a bitwise function of three operands, given by its truth table."""
    rows = []
    for row in range(8):
        factors = [name if row >> (2 - at) & 1 else f"~{name}" for at, name in enumerate(taken[:3])]
        rows.append(f"(({table} >> {row} & 1) ? ({' & '.join(factors)}) : 0u)")
    return f"uint32_t({' | '.join(rows)})"
