"""Errors of the fast strategy that would occur with torch's real headers too.

The front end reads the same candidate tokens in both strategies. An error is final

- if an included file does not exist;
- if brackets in the candidate's source do not match;
- if it is the first one, at the first use of an identifier that occurs in no included header.
"""

from __future__ import annotations

import re
from collections.abc import Container

_MARKER = re.compile(r'^# (\d+) "([^"]*)".*$', re.MULTILINE)
_MISSING_FILE = re.compile(r"^(\S+):\d+:\d+: fatal error: \S+: No such file or directory$", re.MULTILINE)
_MESSAGE = re.compile(r"^(\S+?)\((\d+)\): (error|warning)(.*)$", re.MULTILINE)
_UNKNOWN_NAME = re.compile(r': (?:identifier "(\w+)" is undefined|(?:class|namespace) ".*" has no member "(\w+)")$')
_BRACKET = re.compile(
    r"""(?:u8|[uUL])?R"(?P<end>[^()\\\s"]*)\(.*?\)(?P=end)" | "(?:\\.|[^"\\\n])*" | [0-9](?:'\w|[\w.])* | [A-Za-z_]\w*
    | '(?:\\.|[^'\\\n])+' | (?P<bracket>[][(){}])""",
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def find_final_errors(log: str, source: str, own_text: str, known: Container[str]) -> str | None:
    """The final errors of `log`, or None. `own_text`: the candidate's part, preprocessed; `known`: words of its
    headers."""
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
        return None
    left_out = len(blocks) - len(kept)
    more = f"{left_out} more errors are omitted: they may follow from these, or from the stub headers.\n"
    return "".join([*kept, more if left_out else ""])


def list_words(text: str) -> list[str]:
    return sorted(set(re.findall(r"[A-Za-z_]\w*", text)))


def _split_errors(log: str) -> list[tuple[tuple[str, int], str | None, str]]:
    """(file and line, unknown name, message); no name if a pragma could disable the error."""
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
