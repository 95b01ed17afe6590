"""Recognises errors of ptxas in the fast strategy that also occur with torch's real headers.

Both strategies compile the candidate's code from the same tokens. Only instances of its templates depend on host code,
and so on declarations of torch.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import takewhile

# A fatal message of another kind may tell of the machine.
_ERROR = re.compile(r"^ptxas (?:\S+, line (\d+); )?error *: (?:Entry function '(\w+)')?.*$", re.MULTILINE)
_UNRESOLVED = re.compile(r"^ptxas fatal *: Unresolved extern function '(\w+)'$", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:\.visible |\.weak )*\.(entry|func)\s+(?:\(.*\)\s*)?(\w+)", re.MULTILINE)
_NAME = re.compile(r"_Z(N?)L?(.*)", re.DOTALL)
_PART = re.compile(r"L?(\d+)")


def has_final_error(log: str, ptx: str, known: Container[str]) -> bool:
    """`ptx` is the input of ptxas; `known` are words of the headers that the candidate includes."""
    functions = [(found.start(), found[1], found[2]) for found in _FUNCTION.finditer(ptx)]
    all_certain = not any(_may_be_instance(name) for _, kind, name in functions if kind == "entry")
    for found in _ERROR.finditer(log):
        name = found[2] or _find_entry(ptx, functions, int(found[1] or 0))
        if all_certain if name is None else not _may_be_instance(name):
            return True
    missing = [_split_name(found[1]) for found in _UNRESOLVED.finditer(log)]
    return all_certain and any(parts is not None and parts[-1] not in known for parts in missing)


def _find_entry(ptx: str, functions: list[tuple[int, str, str]], line: int) -> str | None:
    """Return the kernel that contains a line; None for another function."""
    at = sum(map(len, ptx.splitlines(keepends=True)[:line]))
    above = list(takewhile(lambda function: function[0] < at, functions))
    return above[-1][2] if above and above[-1][1] == "entry" else None


def _may_be_instance(name: str) -> bool:
    return _split_name(name) is None


def _split_name(name: str) -> list[str] | None:
    """Return namespaces and function; None for an instance of a template or an unknown form."""
    found = _NAME.fullmatch(name)
    if found is None:
        return [name]
    parts, rest = list[str](), found[2]
    while length := _PART.match(rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
        if not found[1]:
            break
    is_whole = rest.startswith("E") if found[1] else not rest.startswith("I")
    return parts if parts and is_whole else None
