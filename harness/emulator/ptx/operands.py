"""Translates operands of inline PTX to C++."""

from __future__ import annotations

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
