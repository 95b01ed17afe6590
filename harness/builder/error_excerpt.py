"""Shortens compiler logs to the errors and their source lines."""

import re

_ERROR = re.compile(r"(fatal error|error|undefined (reference|symbol)|cannot find|ld returned|Error:)", re.IGNORECASE)
_NOISE = re.compile(r"^(FAILED:|ninja: |\[\d+/\d+\]|In file included from|\s+from )|-DTORCH_EXTENSION_NAME")
_WORD = re.compile(r"[^\s'\"]+")
_WORK_FOLDER = re.compile(r"/build-[^/\s]+/(?:work|fast)/")  # temporary folder of a build
CONTEXT_LINES = 3


def shorten_log(log: str, *, max_lines: int = 24, max_characters: int = 3000) -> str:
    """Keep lines with errors and the source lines below them; without errors, keep the end of the log."""
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
    short = shorten_log(log, max_lines=1, max_characters=200)
    return short.splitlines()[0] if short else "no compiler output"


def _drop_work_folder(word: re.Match[str]) -> str:
    """Two steps avoid a regular expression that takes quadratic time on long lines."""
    end = max((found.end() for found in _WORK_FOLDER.finditer(word[0])), default=0)
    return word[0][end:]
