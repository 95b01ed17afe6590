"""Translates inline PTX to C++.

Operands are copied into variables of their constraint's width, and outputs back. Shared addresses are 32-bit offsets,
as from `__cvta_generic_to_shared`.
"""

import ast
import re

from harness.emulator.ptx.arithmetic import (
    REGISTERS,
    RUNTIME,
    TYPES,
    Operand,
    PtxError,
    write_address,
    write_arithmetic,
    write_register,
    write_value,
    write_vector,
)
from harness.syntax.cpp import Token, split_at

# Hints and orderings without effect in synchronous execution.
_NOTHING = re.compile(
    r"cp\.async\.(commit_group|wait_group|wait_all)|prefetch(u)?\..*|fence\..*|membar\..*|nanosleep\..*|"
    r"griddepcontrol\..*|createpolicy\..*|setmaxnreg\..*|discard\..*|applypriority\..*"
)
_HINTS = re.compile(
    r"\.(L1::no_allocate|L1::evict_\w+|L2::\w+|nc|ca|cg|cs|cv|lu|wb|wt|relaxed|weak|acquire|release|cta|gpu|"
    r"acq_rel|sys|cluster|volatile|shared::cta)(?=\.|$)"
)
_LDMATRIX = re.compile(  # ptxas takes the shape, number and transposition in any order
    r"ldmatrix\.sync\.aligned(?=(?:\.\w+)*\.x[124]\.)((?:\.(?:m8n8|x[124]|trans)){1,3})\.shared(?:::cta)?\.b16"
)

_SMALL_REGISTERS = {
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "f16": "uint16_t", "bf16": "uint16_t", "f16x2": "uint32_t",
    "bf16x2": "uint32_t",
}  # fmt: skip


def write_ptx(tokens: list[Token], opening: int, closing: int) -> str:
    """Raises PtxError."""
    sections = [
        [token for token in section if not token.is_blank]
        for section in split_at(tokens, opening + 1, closing, {":": 1, "::": 2})
    ]
    if any(token.kind != "string" for token in sections[0]):
        raise PtxError("a string assembled by macros")
    text = "".join(_text_of(token.text) for token in sections[0])
    outputs = _read_operands(sections[1]) if len(sections) > 1 else []
    inputs = _read_operands(sections[2]) if len(sections) > 2 else []
    operands = [*outputs, *inputs]
    lines = [_declare(number, operand) for number, operand in enumerate(operands)]
    lines += [_write_statement(statement, operands) for statement in _statements(text)]
    lines += [
        f"{RUNTIME}::give({operand.expression}, harness_o{number});"
        for number, operand in enumerate(operands)
        if operand.direction
    ]
    return "do { " + " ".join(lines) + " } while (0)"


def _text_of(literal: str) -> str:
    if literal.startswith('"'):
        value = ast.literal_eval(literal)
        return str(value)
    if found := re.fullmatch(r'R"([^()\\\s]*)\((.*)\)\1"', literal, re.DOTALL):
        return found[2]
    raise PtxError(f"the string {literal}")


def _read_operands(tokens: list[Token]) -> list[Operand]:
    operands = []
    for words in split_at(tokens, 0, len(tokens), {",": 1}):
        if not words:
            continue
        if words[0].kind != "string" or words[1].text != "(":
            raise PtxError("an operand with a name")
        constraint = words[0].text.strip('"')
        kind = constraint.lstrip("=+&")
        if kind not in TYPES:
            raise PtxError(f"the constraint {constraint}")
        expression = " ".join(token.text for token in words[1:])
        operands.append(
            Operand(direction=constraint[0] if constraint[0] in "=+" else "", kind=kind, expression=expression)
        )
    return operands


def _declare(number: int, operand: Operand) -> str:
    kind = TYPES[operand.kind]
    if operand.direction == "=":
        return f"{kind} harness_o{number} = {{}};"
    return f"{kind} harness_o{number} = {RUNTIME}::take<{kind}>({operand.expression});"


def _statements(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    # Braces are scopes if alone, vectors beside operands.
    text = re.sub(r"(^|;)\s*\{", r"\1", text)
    text = re.sub(r";\s*\}", ";", text)
    return [" ".join(statement.split()) for statement in text.split(";") if statement.strip(" \t\n{}")]


def _write_statement(statement: str, operands: list[Operand]) -> str:
    if found := re.fullmatch(r"\.reg \.(\w+) (.+)", statement):
        kind = REGISTERS.get(found[1]) or _SMALL_REGISTERS.get(found[1])
        if kind is None:
            raise PtxError(statement)
        return "".join(f"{kind} {name} = {{}};" for name in _list_registers(found[2]))
    guard = ""
    if found := re.match(r"@(!?)(%?\w+) ", statement):
        guard = f"if ({found[1]}{write_value(found[2], operands)}) "
        statement = statement[found.end() :]
    name, _, rest = statement.partition(" ")
    arguments = [argument.strip() for argument in re.split(r",(?![^{\[]*[}\]])", rest)] if rest else []
    return f"{guard}{{ {_write_instruction(name, arguments, operands)} }}"


def _list_registers(names: str) -> list[str]:
    listed = []
    for name in map(str.strip, names.split(",")):
        found = re.fullmatch(r"(%?\w+)<(\d+)>", name)
        listed += [f"{found[1]}{number}" for number in range(int(found[2]))] if found else [name]
    return [write_register(name) for name in listed]


def _write_instruction(name: str, arguments: list[str], operands: list[Operand]) -> str:
    if _NOTHING.fullmatch(name):
        return ""
    for write in (_write_memory, _write_matrix, _write_control, write_arithmetic):
        text = write(name, arguments, operands)
        if text is not None:
            return text
    raise PtxError(f"the instruction {name}")


def _pointer(name: str, address: str) -> str:
    return f"{RUNTIME}::{'shared' if '.shared' in name else 'pointer'}({address})"


def _write_memory(name: str, arguments: list[str], operands: list[Operand]) -> str | None:
    if "L2::cache_hint" in name:
        arguments = arguments[:-1]
    if name.startswith("cp.async.") and ".shared" in name and ".global" in name and "bulk" not in name:
        sizes = [write_value(argument, operands) for argument in arguments[2:4]]
        to, source = write_address(arguments[0], operands), write_address(arguments[1], operands)
        return f"{RUNTIME}::copy({RUNTIME}::shared({to}), {RUNTIME}::pointer({source}), {', '.join(sizes)});"
    plain = _HINTS.sub("", name)
    found = re.fullmatch(r"(ld|st)(?:\.(?:global|shared|const|param))?(?:\.(v[248]))?\.([busf]\d+)", plain)
    if not found:
        return None
    kind = REGISTERS.get(found[3]) or _SMALL_REGISTERS.get(found[3])
    if kind is None or len(arguments) != 2:
        raise PtxError(f"the instruction {name}")
    values, address = arguments if found[1] == "ld" else arguments[::-1]
    names = write_vector(values, operands)
    verb = "load" if found[1] == "ld" else "store"
    pointer = _pointer(name, write_address(address, operands))
    return f"{RUNTIME}::{verb}<{kind}>({pointer}, {', '.join(names)});"


def _write_matrix(name: str, arguments: list[str], operands: list[Operand]) -> str | None:
    found = _LDMATRIX.fullmatch(name)
    if found:
        names = write_vector(arguments[0], operands)
        address = f"{RUNTIME}::shared({write_address(arguments[1], operands)})"
        transposed = "true" if ".trans" in found[1] else "false"
        return f"{RUNTIME}::load_matrix<{transposed}>({address}, __LINE__, {', '.join(names)});"
    found = re.fullmatch(
        r"mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.(f32|f16|s32)\.(f16|bf16|tf32|s8|u8)\.(\w+)\.(f32|f16|s32)", name
    )
    if found and found[3] == found[4] and found[2] == found[5]:
        lists = [", ".join(write_vector(argument, operands)) for argument in arguments[:4]]
        kind = f"{RUNTIME}::{found[3]}"
        accumulator = {"f32": "float", "s32": "int32_t", "f16": "__half"}[found[2]]
        d, a, b, c = lists
        return (
            f"uint32_t harness_a[] = {{{_words(a)}}}, harness_b[] = {{{_words(b)}}}, harness_c[] = {{{_words(c)}}};"
            f" uint32_t harness_d[4]; {RUNTIME}::multiply<{kind}, {accumulator}, {found[1]}>"
            f"(harness_d, harness_a, harness_b, harness_c, __LINE__); {RUNTIME}::spread(harness_d, {d});"
        )
    return None


def _words(names: str) -> str:
    return ", ".join(f"{RUNTIME}::take<uint32_t>({name})" for name in names.split(", "))


def _write_control(name: str, arguments: list[str], operands: list[Operand]) -> str | None:  # noqa: PLR0911
    values = [argument for argument in arguments if argument]
    if re.fullmatch(r"bar(rier)?(\.cta)?\.sync(\.aligned)?", name):
        count = write_value(values[1], operands) if len(values) > 1 else "0"
        number = write_value(values[0], operands)
        return f"::harness_emulator::wait_at_barrier(int({number}), int({count}), 0, 0, __LINE__);"
    if re.fullmatch(r"bar(rier)?(\.cta)?\.arrive(\.aligned)?", name) and len(values) == 2:
        number, count = (write_value(value, operands) for value in values)
        return f"::harness_emulator::arrive_at_barrier(int({number}), int({count}), __LINE__);"
    if name == "bar.warp.sync":
        return f"__syncwarp({write_value(values[0], operands)});"
    if name == "trap":
        return "__trap();"
    if found := _REDUCTION.fullmatch(_HINTS.sub("", name)):
        return f"{_call_atomic(name, found[1], found[2], arguments, operands)};"
    if found := re.fullmatch(r"shfl\.sync\.(bfly|down|up|idx)\.b32", name):
        return _write_shuffle(found[1], arguments, operands)
    if found := re.fullmatch(r"vote\.sync\.(ballot|any|all)\.(b32|pred)", name):
        mask, predicate = write_value(arguments[2], operands), write_value(arguments[1], operands)
        return f"{write_value(arguments[0], operands)} = __{found[1]}_sync(uint32_t({mask}), {predicate});"
    if found := _ATOMIC.fullmatch(_HINTS.sub("", name)):
        return _write_atomic(name, found[1], found[2], arguments, operands)
    if re.fullmatch(r"activemask\.b32", name):
        return f"{write_value(arguments[0], operands)} = __activemask();"
    if found := re.fullmatch(r"redux\.sync\.(add|min|max|and|or|xor)\.([bus]32)", name):
        value = f"{RUNTIME}::take<{_ATOMIC_TYPES[found[2]]}>({write_value(arguments[1], operands)})"
        mask = write_value(arguments[2], operands)
        return f"{write_value(arguments[0], operands)} = __reduce_{found[1]}_sync(uint32_t({mask}), {value});"
    if re.fullmatch(r"match\.any\.sync\.b(32|64)", name):
        value, mask = (write_value(argument, operands) for argument in arguments[1:3])
        return f"{write_value(arguments[0], operands)} = __match_any_sync(uint32_t({mask}), {value});"
    return None


_ATOMIC = re.compile(
    r"atom(?:\.global|\.shared)?\.(add|max|min|exch|cas|and|or|xor|inc|dec)(?:\.noftz)?\.([bus]\d+|f32|f64|b?f16x2)"
)
_REDUCTION = re.compile(
    r"red(?:\.global|\.shared)?\.(add|max|min|and|or|xor|inc|dec)(?:\.noftz)?\.([bus]\d+|f32|f64|b?f16x2)"
)
_ATOMIC_TYPES = {
    "f32": "float", "f64": "double", "u32": "unsigned", "b32": "unsigned", "s32": "int",
    "u64": "unsigned long long", "b64": "unsigned long long", "s64": "long long",
    "f16x2": "__half2", "bf16x2": "__nv_bfloat162",
}  # fmt: skip
_SHUFFLES = {"bfly": "__shfl_xor_sync", "down": "__shfl_down_sync", "up": "__shfl_up_sync", "idx": "__shfl_sync"}


def _write_shuffle(kind: str, arguments: list[str], operands: list[Operand]) -> str | None:
    if "|" in arguments[0]:
        return None
    to, value, lane, clamp, mask = (write_value(argument, operands) for argument in arguments)
    width = f"int(32 - (({clamp}) >> 8 & 31))"
    shuffled = f"{_SHUFFLES[kind]}(uint32_t({mask}), {RUNTIME}::take<uint32_t>({value}), {lane}, {width})"
    return f"{RUNTIME}::give({to}, {shuffled});"


def _write_atomic(name: str, verb: str, kind: str, arguments: list[str], operands: list[Operand]) -> str:
    called = _call_atomic(name, verb, kind, arguments[1:], operands)
    return f"{RUNTIME}::give({write_value(arguments[0], operands)}, {called});"


def _call_atomic(name: str, verb: str, kind: str, arguments: list[str], operands: list[Operand]) -> str:
    word = _ATOMIC_TYPES.get(kind)
    if word is None:
        raise PtxError(f"the instruction {name}")
    location = f"reinterpret_cast<{word}*>({_pointer(name, write_address(arguments[0], operands))})"
    given = [f"{RUNTIME}::take<{word}>({write_value(argument, operands)})" for argument in arguments[1:]]
    return f"atomic{verb.upper() if verb == 'cas' else verb.capitalize()}({', '.join([location, *given])})"
