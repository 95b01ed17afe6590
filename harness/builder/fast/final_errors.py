"""Which errors behind the façade are errors with torch's own headers as well: decided from texts, without a compiler.

The front end reads the candidate's own text in both lanes, token by token the same, after other headers. So an error is
final

- where a file to be included is nowhere: the fast lane looks wherever the plain one does;
- where brackets in the candidate's own text do not match, as those of the headers do;
- where it is the first one, and names an identifier that is no word of any header the candidate includes, macros among
  them, and that its own text uses there for the first time.

Whatever else does not compile is built by the plain lane, whose verdict counts.
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
    """The errors that the plain lane's front end finds as well; None where it must be asked.

    `log` is what the front end said of the file `source`; `own_text` the candidate's part, preprocessed; `known` the
    words of all headers that the candidate includes.
    """
    if any(found[1] == source for found in _MISSING_FILE.finditer(log)):
        return log
    blocks = _split_errors(log)
    if not blocks or blocks[0][0][0] != source:
        return None
    if not _is_balanced(own_text):
        return log
    unknown = {name for place, name, _ in blocks if name and name not in known and _find_first(name, own_text) == place}
    kept = [text for _, name, text in blocks if name in unknown]
    if blocks[0][1] not in unknown:
        return None
    left_out = len(blocks) - len(kept)
    more = (
        f"{left_out} more errors may follow from these, or from declarations that were not read; they are left out.\n"
    )
    return "".join([*kept, more if left_out else ""])


def list_words(text: str) -> list[str]:
    """All words of a text, those of macros, too."""
    return sorted(set(re.findall(r"[A-Za-z_]\w*", text)))


def _split_errors(log: str) -> list[tuple[tuple[str, int], str | None, str]]:
    """(file and line, the name that is unknown there, text) of each error. One that a pragma could turn off is none
    that is certain: it has no name."""
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
    """File and line where a preprocessed text has a word first."""
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
