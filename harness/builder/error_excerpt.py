"""Shortens a compiler's log to what a reader, or a model that repairs its code, needs: the errors with their lines."""

from __future__ import annotations

import re

_ERROR = re.compile(r"(fatal error|error|undefined (reference|symbol)|cannot find|ld returned|Error:)", re.IGNORECASE)
_NOISE = re.compile(r"^(FAILED:|ninja: |\[\d+/\d+\]|In file included from|\s+from )|-DTORCH_EXTENSION_NAME")
_WORD = re.compile(r"[^\s'\"]+")
_WORK_FOLDER = re.compile(r"/build-[^/\s]+/(?:work|fast)/")  # the end of the builder's own, another one each time
CONTEXT_LINES = 3


def shorten_log(log: str, *, max_lines: int = 24, max_characters: int = 3000) -> str:
    """The lines that name errors, each with the source lines below it; the log's end where none is found.

    Files of the build are named without the temporary folder they were compiled in.
    """
    lines = [_WORD.sub(_drop_work_folder, line) for line in log.splitlines() if not _NOISE.search(line)]
    kept: dict[int, str] = {}
    for number, line in enumerate(lines):
        if _ERROR.search(line):
            for near in range(number, min(number + CONTEXT_LINES, len(lines))):
                kept[near] = lines[near]
        if len(kept) >= max_lines:
            break
    chosen = list(kept.values()) or lines[-max_lines:]
    return "\n".join(chosen[:max_lines])[:max_characters].strip()


def name_first_error(log: str) -> str:
    """One line: the first that names an error, or the last of all."""
    short = shorten_log(log, max_lines=1, max_characters=200)
    return short.splitlines()[0] if short else "no word of the compiler's"


def _drop_work_folder(word: re.Match[str]) -> str:
    """A path without the folder it was compiled in. (Two steps, since one expression for both would look at each
    letter of a long line as often as the line is long.)"""
    end = max((found.end() for found in _WORK_FOLDER.finditer(word[0])), default=0)
    return word[0][end:]
