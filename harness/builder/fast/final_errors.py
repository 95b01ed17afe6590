"""Recognises errors of the fast strategy that also occur with torch's real headers. See docs/builds.md."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise, takewhile

_MARKER = re.compile(r'^# (\d+) "([^"]*)".*$', re.MULTILINE)
_MISSING_FILE = re.compile(r"^(\S+):\d+:\d+: fatal error: \S+: No such file or directory$", re.MULTILINE)
_MESSAGE = re.compile(r"^(\S+?)\((\d+)\): (error|warning)(.*)$", re.MULTILINE)
_UNKNOWN_NAME = re.compile(r': (?:identifier "(\w+)" is undefined|(?:class|namespace) ".*" has no member "(\w+)")$')
_BRACKET = re.compile(
    r"""(?:u8|[uUL])?R"(?P<end>[^()\\\s"]*)\(.*?\)(?P=end)" | "(?:\\.|[^"\\\n])*" | [0-9](?:'\w|[\w.])* | [A-Za-z_]\w*
    | '(?:\\.|[^'\\\n])+' | (?P<bracket>[][(){}]) | ;""",
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OF_TORCH = re.compile(r"(?<![.>\w])(?:at|c10|torch|caffe2|detail|pybind11)\b")
# Declarations with these at the front may declare names in their braces, or those of a whole namespace.
_OPEN = frozenset({"namespace", "inline", "extern", "enum", "using"})
_WORDS_OF_CXX = frozenset({
    "__device__", "__forceinline__", "__global__", "__host__", "auto", "bool", "char", "class", "const",
    "constexpr", "double", "explicit", "float", "inline", "int", "int32_t", "int64_t", "long", "noexcept", "public",
    "short", "signed", "size_t", "static", "std", "struct", "template", "typedef", "typename", "uint32_t",
    "uint64_t", "unsigned", "using", "vector", "void",
})  # fmt: skip
_Error = tuple[tuple[str, int], str | None, str]


def find_final_errors(
    log: str, source: str, own_text: str, known: Container[str], macros: frozenset[str] = frozenset()
) -> str | None:
    """`own_text` is the candidate's preprocessed part; `known` and `macros` are words and macros of its headers."""
    if any(found[1] == source for found in _MISSING_FILE.finditer(log)):
        return log
    blocks = _split_errors(log)
    if not blocks or blocks[0][0][0] != source:
        return None
    if not _is_balanced(own_text):
        return log
    unknown = {
        name for location, name, _ in blocks if name and name not in known and _find_first(name, own_text) == location
    }
    kept = [text for _, name, text in blocks if name in unknown]
    if blocks[0][1] not in unknown:
        if not _is_final_syntax_error(blocks[0], own_text, macros):
            return None
        kept = [blocks[0][2]]
    left_out = len(blocks) - len(kept)
    more = f"{left_out} more errors are omitted: they may follow from these, or from the stub headers.\n"
    return "".join([*kept, more if left_out else ""])


def list_words(text: str) -> list[str]:
    return sorted(set(re.findall(r"[A-Za-z_]\w*", text)))


def _split_errors(log: str) -> list[_Error]:
    """Return (file and line, unknown name, message); no name if a pragma could disable the error."""
    messages = list(_MESSAGE.finditer(log))
    blocks = []
    for found in messages:
        if found[3] == "error":
            unknown = _UNKNOWN_NAME.fullmatch(found[4])
            text = log[found.start() :].partition("\n\n")[0] + "\n\n"
            name = (unknown[1] or unknown[2]) if unknown and "detected during" not in text else None
            blocks.append(((found[1], int(found[2])), name, text))
    return blocks


def _find_first(name: str, text: str) -> tuple[str, int] | None:
    found = re.search(rf"\b{name}\b", text)
    markers = list(_MARKER.finditer(text, 0, found.start())) if found else []
    if found is None or not markers:
        return None
    return markers[-1][2], int(markers[-1][1]) - 1 + text.count("\n", markers[-1].start(), found.start())


def _is_balanced(text: str) -> bool:
    open_: list[str] = []
    for found in _BRACKET.finditer(_MARKER.sub("", text)):
        bracket = found["bracket"]
        if bracket in _CLOSERS:
            open_.append(_CLOSERS[bracket])
        elif bracket and (not open_ or open_.pop() != bracket):
            return False
    return not open_


def _is_final_syntax_error(error: _Error, text: str, macros: frozenset[str]) -> bool:
    """All names of the declaration must come from the candidate or from headers that are read here, neither from torch
    nor from declarations that use torch: a parser needs to know which are types, templates and macros.
    """
    (file, line), _, message = error
    at = _find_line(text, file, line) if message.startswith(f"{file}({line}): error: expected ") else None
    declarations = _split_declarations(text)
    here = next((one for one in declarations if at is not None and one.start <= at < one.end), None)
    if here is None or not macros.isdisjoint(here.words):
        return False
    of_torch = _find_dependent(declarations)
    return here not in of_torch and not any(one.opens_namespace for one in of_torch)


def _find_dependent(declarations: list[_Declaration]) -> list[_Declaration]:
    names, of_torch = set[str](), list[_Declaration]()
    while more := [
        one for one in declarations if one not in of_torch and (one.names_torch or not names.isdisjoint(one.words))
    ]:
        of_torch += more
        names |= {name for one in more for name in one.declared}
    return of_torch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declaration:
    """A declaration at file level. `declared` is a superset of the names that others may use."""

    start: int
    end: int
    words: frozenset[str]
    declared: frozenset[str]
    names_torch: bool
    opens_namespace: bool  # by a using directive


def _split_declarations(text: str) -> list[_Declaration]:
    found, start, depth = list[_Declaration](), 0, 0
    words, outer = list[str](), list[str]()
    blank = _MARKER.sub(lambda marker: " " * len(marker[0]), text)
    for token in _BRACKET.finditer(blank):
        depth += (token[0] in ("(", "{")) - (token[0] in (")", "}"))
        if token[0].isidentifier():
            words.append(token[0])
            outer += [token[0]] * (depth == 0)
        if depth == 0 and token[0] in (";", "}") and words:
            found.append(_describe_declaration(words, outer, (start, token.end()), blank[start : token.end()]))
            start, words, outer = token.end(), [], []
    return found


def _describe_declaration(words: list[str], outer: list[str], span: tuple[int, int], text: str) -> _Declaration:
    return _Declaration(
        start=span[0],
        end=span[1],
        words=frozenset(words),
        declared=frozenset(words if words[0] in _OPEN else outer) - _WORDS_OF_CXX,
        names_torch=_OF_TORCH.search(text) is not None,
        opens_namespace=("using", "namespace") in pairwise(words),
    )


def _find_line(text: str, file: str, line: int) -> int | None:
    """Return the offset of the line's first character that is no space."""
    markers = list(_MARKER.finditer(text))
    for marker, following in zip(markers, [*markers[1:], None], strict=True):
        end = len(text) if following is None else following.start()
        lines = text[marker.end() + 1 : end].splitlines(keepends=True)
        index = line - int(marker[1])
        if marker[2] == file and 0 <= index < len(lines):
            indent = len(lines[index]) - len(lines[index].lstrip())
            return marker.end() + 1 + sum(map(len, lines[:index])) + indent
    return None


# A fatal message of another kind may tell of the machine.
_PTXAS_ERROR = re.compile(r"^ptxas (?:\S+, line (\d+); )?error *: (?:Entry function '(\w+)')?.*$", re.MULTILINE)
_UNRESOLVED = re.compile(r"^ptxas fatal *: Unresolved extern function '(\w+)'$", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:\.visible |\.weak )*\.(entry|func)\s+(?:\(.*\)\s*)?(\w+)", re.MULTILINE)
_MANGLED = re.compile(r"_Z(N?)L?(.*)", re.DOTALL)
_MANGLED_PART = re.compile(r"L?(\d+)")


def has_final_assembler_error(log: str, ptx: str, known: Container[str]) -> bool:
    """`ptx` is the input of ptxas; `known` are words of the headers that the candidate includes."""
    functions = [(found.start(), found[1], found[2]) for found in _FUNCTION.finditer(ptx)]
    all_certain = not any(_may_be_instance(name) for _, kind, name in functions if kind == "entry")
    for found in _PTXAS_ERROR.finditer(log):
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
    found = _MANGLED.fullmatch(name)
    if found is None:
        return [name]
    parts, rest = list[str](), found[2]
    while length := _MANGLED_PART.match(rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
        if not found[1]:
            break
    is_whole = rest.startswith("E") if found[1] else not rest.startswith("I")
    return parts if parts and is_whole else None
