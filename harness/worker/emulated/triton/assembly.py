"""Interprets inline assembly in Triton kernels for all lanes at once.

Registers are arrays of bits, one element per packed group of lanes: Triton packs elements narrower than 32 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.worker.emulated.triton.arithmetic import NotCovered
from harness.worker.emulated.triton.ptx import Bits, compute, read_constant

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
    _refuse_tied(constraints)
    for argument in arguments:
        for register in _split_registers(argument, groups, pack):
            machine.registers[f"${at}"] = register
            at += 1
    for statement in _list_statements(text):
        machine.run(statement)
    found, at = [], 0
    for kind, count in zip(results, outputs, strict=True):
        registers = [machine.read(f"${number}") for number in range(at, at + count)]
        found.append(_join_registers(registers, kind, pack)[:lanes].reshape(shape))
        at += count
    return found


def _refuse_tied(constraints: str) -> None:
    if any(one.strip().lstrip("=&").isdigit() or "+" in one for one in constraints.split(",")):
        raise NotCovered(f"inline assembly with the constraints {constraints!r} is not covered by the emulated device")


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


def _join_registers(registers: list[Bits], kind: np.dtype, pack: int) -> Any:
    width = kind.itemsize * _per_register(kind, pack)
    words = np.stack([register.astype(f"u{width}") for register in registers], axis=1)
    return np.ascontiguousarray(words).view(kind).reshape(-1)
