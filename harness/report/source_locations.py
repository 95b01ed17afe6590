"""Where in a candidate's source a finding points: the lines to mark beside it.

A finding is words; its place is read from them: `line 12` of the screening, `candidate.py", line 12` of a traceback,
the line that a compiler quotes below `cuda.cu(11): error`, `cuda.cu:12` of the emulated device, which counts within the
text that has the kernel. A compiler's own number says less: torch puts lines before the text. What cannot be placed has
no line; a wrong one would be worse.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable

from harness.domain import Finding

MOST_PLACES = 20
_SCREENED = re.compile(r"\bline (\d{1,7})\b")
_TRACED = re.compile(r'File "[^"\n]*candidate[^"\n]*", line (\d{1,7})')
_COMPILED = re.compile(r"^[^\s:(/]+\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp)[:(](\d{1,7})[:,)].*$", re.MULTILINE)
_KERNEL = re.compile(r"\bin kernel ([A-Za-z_]\w*)")
_QUOTED_LINE = re.compile(r"^\s*\d+ \| ?(.*)$")  # g++ puts the number before the line, nvcc does not


def find_places(finding: Finding, source: str) -> tuple[int, ...]:
    """Lines of the source, counted from 1, in order; at most 20."""
    text = f"{finding.message}\n{finding.evidence}"
    last = source.count("\n") + 1
    numbers = {int(number) for number in _TRACED.findall(text)}
    if not numbers and finding.check == "screen":
        numbers = {int(number) for number in _SCREENED.findall(text)}
    numbers |= set(_place_compiler_messages(text, source))
    return tuple(sorted(number for number in numbers if 1 <= number <= last)[:MOST_PLACES])


def _place_compiler_messages(text: str, source: str) -> Iterable[int]:
    messages = list(_COMPILED.finditer(text))[:MOST_PLACES]
    if not messages:
        return
    kernel = _KERNEL.search(text)
    if kernel:
        start = _find_kernel_text(source, kernel.group(1))
        yield from (start + int(message.group(1)) - 1 for message in messages if start is not None)
        return
    lines = [line.strip() for line in source.splitlines()]
    for message in messages:
        quoted = _read_quoted_line(text[message.end() :])
        if quoted and lines.count(quoted) == 1:
            yield lines.index(quoted) + 1


def _read_quoted_line(after: str) -> str:
    """The source line that a compiler prints below its message."""
    following = after.removeprefix("\n").split("\n", 1)[0]
    match = _QUOTED_LINE.match(following)
    return (match.group(1) if match else following).strip()


def _find_kernel_text(source: str, kernel: str) -> int | None:
    """The line on which the only text literal begins that defines this kernel; None if there are none or several."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    defined = re.compile(rf"__global__[^;{{]*\b{kernel}\b")
    starts = [node.lineno for node in texts if defined.search(str(node.value))]
    return starts[0] if len(starts) == 1 else None
