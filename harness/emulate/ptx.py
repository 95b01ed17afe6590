"""Inline PTX as C++: each instruction that is known becomes a call of the runtime; any other is refused by name.

An assembly statement becomes a block: operands are copied into variables of their constraint's width, instructions run
in order, and outputs are copied back. Addresses of shared memory are offsets of 32 bits, as `__cvta_generic_to_shared`
gives them.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from harness.emulate.tokens import Token, match_forward, step

_TYPES = {
    "r": "uint32_t",
    "l": "uint64_t",
    "h": "uint16_t",
    "f": "float",
    "d": "double",
    "n": "int64_t",
    "q": "__int128",
}
_REGISTERS = {
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
    "%globaltimer": "::harness_emulator::read_clock()",
}  # fmt: skip
_RUNTIME = "::harness_emulator::ptx"
# Hints and orders that mean nothing where everything is done at once.
_NOTHING = re.compile(
    r"cp\.async\.(commit_group|wait_group|wait_all)|prefetch(u)?\..*|fence\..*|membar\..*|nanosleep\..*|"
    r"griddepcontrol\..*|createpolicy\..*|setmaxnreg\..*|discard\..*|applypriority\..*"
)
_HINTS = re.compile(
    r"\.(L1::no_allocate|L1::evict_\w+|L2::\w+|nc|ca|cg|cs|cv|lu|wb|wt|relaxed|weak|acquire|release|cta|gpu|"
    r"sys|cluster|volatile|shared::cta)(?=\.|$)"
)
_BINARY = {
    "add": "a + b", "sub": "a - b", "and": "a & b", "or": "a | b", "xor": "a ^ b", "min": "a < b ? a : b",
    "max": "a > b ? a : b", "shl": "b > 31 && sizeof(a) == 4 ? 0 : a << b",
    "shr": "b > 31 && sizeof(a) == 4 ? 0 : a >> b", "div": "a / b", "rem": "a % b",
}  # fmt: skip
_FLOAT_UNARY = {
    "ex2": "::exp2f(a)", "lg2": "::log2f(a)", "rcp": "1.0f / a", "sqrt": "::sqrtf(a)", "rsqrt": "1.0f / ::sqrtf(a)",
    "tanh": "::tanhf(a)", "sin": "::sinf(a)", "cos": "::cosf(a)", "abs": "::fabsf(a)", "neg": "-a",
}  # fmt: skip


class PtxError(Exception):
    """What in the assembly is not covered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """`direction` is "=", "+" or empty; `expression` the C++ of the operand."""

    direction: str
    kind: str
    expression: str


def write_ptx(tokens: list[Token], opening: int, closing: int) -> str:
    """The C++ of the assembly whose parentheses are given. Raises PtxError."""
    sections = _split(tokens, opening + 1, closing, ":")
    text = "".join(_text_of(token.text) for token in sections[0] if token.kind == "string")
    outputs = _read_operands(sections[1]) if len(sections) > 1 else []
    inputs = _read_operands(sections[2]) if len(sections) > 2 else []
    operands = [*outputs, *inputs]
    lines = [_declare(number, operand) for number, operand in enumerate(operands)]
    lines += [_write_statement(statement, operands) for statement in _statements(text)]
    lines += [
        f"{_RUNTIME}::give({operand.expression}, harness_o{number});"
        for number, operand in enumerate(operands)
        if operand.direction
    ]
    return "do { " + " ".join(lines) + " } while (0)"


def _text_of(literal: str) -> str:
    if literal.startswith('"'):
        value = ast.literal_eval(literal)
        return str(value)
    raise PtxError("a raw string")


def _split(tokens: list[Token], low: int, high: int, mark: str) -> list[list[Token]]:
    """The tokens between separators at depth 0; `::` counts as two colons."""
    parts: list[list[Token]] = [[]]
    at = low
    while at < high:
        token = tokens[at]
        if token.text in ("(", "[", "{"):
            end = match_forward(tokens, at)
            if end is None:
                raise PtxError("unbalanced brackets")
            parts[-1] += tokens[at : end + 1]
            at = end + 1
            continue
        before = step(tokens, at, -1)
        if token.text == mark:
            parts.append([])
        elif token.text == "::" and mark == ":" and before is not None and tokens[before].kind == "string":
            parts += [[], []]
        elif not token.is_blank:
            parts[-1].append(token)
        at += 1
    return parts


def _read_operands(tokens: list[Token]) -> list[Operand]:
    operands = []
    for part in _split(tokens, 0, len(tokens), ","):
        words = [token for token in part if not token.is_blank]
        if not words:
            continue
        if words[0].kind != "string" or words[1].text != "(":
            raise PtxError("an operand with a name")
        constraint = words[0].text.strip('"')
        kind = constraint.lstrip("=+&")
        if kind not in _TYPES:
            raise PtxError(f"the constraint {constraint}")
        expression = " ".join(token.text for token in words[1:])
        operands.append(
            Operand(direction=constraint[0] if constraint[0] in "=+" else "", kind=kind, expression=expression)
        )
    return operands


def _declare(number: int, operand: Operand) -> str:
    kind = _TYPES[operand.kind]
    if operand.direction == "=":
        return f"{kind} harness_o{number} = {{}};"
    return f"{kind} harness_o{number} = {_RUNTIME}::take<{kind}>({operand.expression});"


def _statements(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    # Braces stand for scopes where they stand alone, and for vectors beside operands.
    text = re.sub(r"(^|;)\s*\{", r"\1", text)
    text = re.sub(r";\s*\}", ";", text)
    return [" ".join(statement.split()) for statement in text.split(";") if statement.strip(" \t\n{}")]


def _write_statement(statement: str, operands: list[Operand]) -> str:
    if found := re.fullmatch(r"\.reg \.(\w+) (.+)", statement):
        if found[1] not in _REGISTERS:
            raise PtxError(statement)
        return "".join(f"{_REGISTERS[found[1]]} {_register(name)} = {{}};" for name in found[2].split(","))
    guard = ""
    if found := re.match(r"@(!?)(%?\w+) ", statement):
        guard = f"if ({found[1]}{_value(found[2], operands)}) "
        statement = statement[found.end() :]
    name, _, rest = statement.partition(" ")
    arguments = [argument.strip() for argument in re.split(r",(?![^{\[]*[}\]])", rest)] if rest else []
    return f"{guard}{{ {_write_instruction(name, arguments, operands)} }}"


def _register(name: str) -> str:
    return "harness_r_" + re.sub(r"\W", "_", name.strip())


def _value(text: str, operands: list[Operand]) -> str:
    """An operand as C++: a numbered one, a special register, a number, or a register of the block."""
    text = text.strip().replace("%%", "%")
    if found := re.fullmatch(r"%(\d+)", text):
        if int(found[1]) >= len(operands):
            raise PtxError(f"operand {text}")
        return f"harness_o{found[1]}"
    if text in _SPECIAL:
        return "(" + _SPECIAL[text].replace("C->", "::harness_emulator::current->") + ")"
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)[uU]?", text):
        return text
    if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return f"__uint_as_float(0x{found[1]}u)"
    if re.fullmatch(r"%?[A-Za-z_]\w*", text):
        return _register(text)
    raise PtxError(f"the operand {text}")


def _vector(text: str, operands: list[Operand]) -> list[str]:
    if text.startswith("{"):
        return [_value(part, operands) for part in text.strip("{}").split(",")]
    return [_value(text, operands)]


def _address(text: str, operands: list[Operand]) -> str:
    found = re.fullmatch(r"\[\s*(%?\w+)\s*(?:\+\s*(%?-?\w+))?\s*\]", text)
    if not found:
        raise PtxError(f"the address {text}")
    offset = f" + {_value(found[2], operands)}" if found[2] else ""
    return f"{_value(found[1], operands)}{offset}"


def _write_instruction(name: str, arguments: list[str], operands: list[Operand]) -> str:
    if _NOTHING.fullmatch(name):
        return ""
    for write in (_write_memory, _write_matrix, _write_control, _write_arithmetic):
        text = write(name, arguments, operands)
        if text is not None:
            return text
    raise PtxError(f"the instruction {name}")


def _pointer(name: str, address: str) -> str:
    return f"{_RUNTIME}::{'shared' if '.shared' in name else 'pointer'}({address})"


def _write_memory(name: str, arguments: list[str], operands: list[Operand]) -> str | None:
    if name.startswith("cp.async.") and ".shared" in name and ".global" in name and "bulk" not in name:
        used = [argument for argument in arguments[2:] if not argument.startswith("policy")]
        sizes = [_value(argument, operands) for argument in used[:2]]
        to, source = _address(arguments[0], operands), _address(arguments[1], operands)
        return f"{_RUNTIME}::copy({_RUNTIME}::shared({to}), {_RUNTIME}::pointer({source}), {', '.join(sizes)});"
    plain = _HINTS.sub("", name)
    found = re.fullmatch(r"(ld|st)(?:\.(?:global|shared|const|param))?(?:\.(v[248]))?\.([busf]\d+)", plain)
    if not found:
        return None
    if found[3] not in _REGISTERS and found[3] not in ("b8", "u8", "s8"):
        raise PtxError(f"the instruction {name}")
    kind = _REGISTERS.get(found[3]) or {"b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t"}[found[3]]
    values, address = arguments if found[1] == "ld" else arguments[::-1]
    names = _vector(values, operands)
    verb = "load" if found[1] == "ld" else "store"
    pointer = _pointer(name, _address(address, operands))
    return f"{_RUNTIME}::{verb}<{kind}>({pointer}, {', '.join(names)});"


def _write_matrix(name: str, arguments: list[str], operands: list[Operand]) -> str | None:
    found = re.fullmatch(r"ldmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared(?:::cta)?\.b16", name)
    if found:
        names = _vector(arguments[0], operands)
        address = f"{_RUNTIME}::shared({_address(arguments[1], operands)})"
        return f"{_RUNTIME}::load_matrix<{'true' if found[2] else 'false'}>({address}, __LINE__, {', '.join(names)});"
    found = re.fullmatch(
        r"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.(f32|f16|s32)\.(f16|bf16|tf32|s8|u8)\.(\w+)\.(f32|f16|s32)",
        name,
    )
    if found and found[3] == found[4] and found[2] == found[5]:
        lists = [", ".join(_vector(argument, operands)) for argument in arguments[:4]]
        kind = f"{_RUNTIME}::{found[3]}"
        accumulator = {"f32": "float", "s32": "int32_t", "f16": "__half"}[found[2]]
        d, a, b, c = lists
        return (
            f"uint32_t harness_a[] = {{{_words(a)}}}, harness_b[] = {{{_words(b)}}}, harness_c[] = {{{_words(c)}}};"
            f" uint32_t harness_d[4]; {_RUNTIME}::multiply<{kind}, {accumulator}, {found[1]}>"
            f"(harness_d, harness_a, harness_b, harness_c, __LINE__); {_RUNTIME}::spread(harness_d, {d});"
        )
    return None


def _words(names: str) -> str:
    return ", ".join(f"{_RUNTIME}::take<uint32_t>({name})" for name in names.split(", "))


def _write_control(name: str, arguments: list[str], operands: list[Operand]) -> str | None:
    values = [argument for argument in arguments if argument]
    if name in ("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.sync.aligned"):
        count = _value(values[1], operands) if len(values) > 1 else "0"
        return f"::harness_emulator::wait_at_barrier(int({_value(values[0], operands)}), int({count}), 0, 0, __LINE__);"
    if name == "bar.warp.sync":
        return f"__syncwarp({_value(values[0], operands)});"
    if name == "trap":
        return "__trap();"
    if re.fullmatch(
        r"red\.global\.add\.(f32|u32|s32|f64)|red\.(shared|gpu|relaxed).*\.add\.(f32|u32|s32)", _HINTS.sub("", name)
    ):
        kind = {"f32": "float", "u32": "unsigned", "s32": "int", "f64": "double"}[name.rsplit(".", 1)[1]]
        pointer = _pointer(name, _address(arguments[0], operands))
        value = f"{_RUNTIME}::take<{kind}>({_value(arguments[1], operands)})"
        return f"atomicAdd(reinterpret_cast<{kind}*>({pointer}), {value});"
    if re.fullmatch(r"activemask\.b32", name):
        return f"{_value(arguments[0], operands)} = __activemask();"
    return None


def _write_arithmetic(name: str, arguments: list[str], operands: list[Operand]) -> str | None:  # noqa: PLR0911, PLR0912
    parts = name.split(".")
    kind = _REGISTERS.get(parts[-1])
    values = [_value(argument, operands) for argument in arguments] if all("[" not in a for a in arguments) else []
    if not values:
        return None
    if parts[0] in ("mov", "cvta") and kind is not None and not arguments[0].startswith("{") and len(values) == 2:
        if parts[0] == "cvta":
            source = f"uint64_t(::__cvta_generic_to_shared(reinterpret_cast<const void*>({values[1]})))"
            return f"{_RUNTIME}::give({values[0]}, {source if 'shared' in parts else values[1]});"
        return f"{_RUNTIME}::give({values[0]}, {_RUNTIME}::take<{kind}>({values[1]}));"
    if name in ("cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32"):
        small = "__half" if "bf16" not in name else "__nv_bfloat16"
        return f"{values[0]} = {_RUNTIME}::pack_two<{small}>({values[2]}, {values[1]});"
    if name == "cvt.rna.tf32.f32":
        return f"{values[0]} = {_RUNTIME}::to_tf32({_RUNTIME}::take<float>({values[1]}));"
    if kind is None:
        return None
    taken = [f"{_RUNTIME}::take<{kind}>({value})" for value in values[1:]]
    if parts[0] in _FLOAT_UNARY and kind == "float" and len(taken) == 1:
        return f"const float a = {taken[0]}; {_RUNTIME}::give({values[0]}, {_FLOAT_UNARY[parts[0]]});"
    if parts[0] in _BINARY and len(taken) == 2 and "cc" not in parts and "sat" not in parts:
        return (
            f"const {kind} a = {taken[0]}, b = {taken[1]}; {_RUNTIME}::give({values[0]}, {kind}({_BINARY[parts[0]]}));"
        )
    if parts[0] == "mul" and len(taken) == 2 and ("lo" in parts or kind in ("float", "double")):
        return f"{_RUNTIME}::give({values[0]}, {kind}({taken[0]} * {taken[1]}));"
    if parts[0] in ("fma", "mad") and len(taken) == 3 and kind in ("float", "double"):
        return f"{_RUNTIME}::give({values[0]}, {kind}(::fma({', '.join(taken)})));"
    if parts[0] == "mad" and len(taken) == 3 and "lo" in parts:
        return f"{_RUNTIME}::give({values[0]}, {kind}({taken[0]} * {taken[1]} + {taken[2]}));"
    if parts[0] == "setp" and len(taken) == 2 and len(parts) == 3:
        compare = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.get(parts[1])
        return None if compare is None else f"{values[0]} = {taken[0]} {compare} {taken[1]};"
    if parts[0] == "selp" and len(values) == 4:
        return f"{_RUNTIME}::give({values[0]}, {values[3]} ? {taken[0]} : {taken[1]});"
    if parts[0] == "popc":
        return f"{values[0]} = __popc({taken[0]});"
    return None
