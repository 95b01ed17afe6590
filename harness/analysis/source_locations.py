"""Finds the source lines that a finding refers to; ambiguous references give none.

Recognises tracebacks, the line quoted below `cuda.cu(11): error` (torch prepends lines), and the emulated device's
`cuda.cu:12`.
"""

import ast
import re
from collections.abc import Iterable

from harness.domain import Finding
from harness.syntax import try_parse

MOST_LINES = 20
_TRACED = re.compile(r'File "[^"\n]*candidate[^"\n]*", line (\d{1,7})')
_FILE = r"[^\s:(/]+\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp)"
_COMPILED = re.compile(rf"^{_FILE}[:(](\d{{1,7}})[:,)].*$", re.MULTILINE)
_OTHER_ACCESS = re.compile(rf" at {_FILE}:(\d{{1,7}}) are not ordered\b")
_KERNEL = re.compile(r"\bin kernel ([A-Za-z_]\w*)")
_QUOTED_LINE = re.compile(r"^\s*\d+ \| ?(.*)$")  # g++ prints the number before the line, nvcc does not


def find_lines(finding: Finding, source: str) -> tuple[int, ...]:
    """Lines are 1-based, in order, at most `MOST_LINES`."""
    text = f"{finding.message}\n{finding.evidence}"
    last = source.count("\n") + 1
    numbers = {int(number) for number in _TRACED.findall(text)}
    numbers |= set(_locate_compiler_messages(text, source))
    return tuple(sorted(number for number in numbers if 1 <= number <= last)[:MOST_LINES])


def _locate_compiler_messages(text: str, source: str) -> Iterable[int]:
    messages = list(_COMPILED.finditer(text))[:MOST_LINES]
    if not messages:
        return
    kernel = _KERNEL.search(text)
    if kernel:
        start = _find_kernel_string(source, kernel.group(1))
        places = [*messages, *_OTHER_ACCESS.finditer(text)]
        yield from (start + int(place.group(1)) - 1 for place in places if start is not None)
        return
    lines = [line.strip() for line in source.splitlines()]
    for message in messages:
        following = text[message.end() :].removeprefix("\n").split("\n", 1)[0]
        match = _QUOTED_LINE.match(following)
        quoted = (match.group(1) if match else following).strip()
        if quoted and lines.count(quoted) == 1:
            yield lines.index(quoted) + 1


def _find_kernel_string(source: str, kernel: str) -> int | None:
    tree = try_parse(source)
    if tree is None:
        return None
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    defined = re.compile(rf"__global__[^;{{]*\b{kernel}\b")
    starts = [node.lineno for node in strings if defined.search(str(node.value))]
    return starts[0] if len(starts) == 1 else None
