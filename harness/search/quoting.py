"""Quotes text of compilers and candidates as data: printable, bounded, without paths of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_LINES = 30
MOST_CHARACTERS = 2_000
MOST_IN_LINE = 200  # characters
LONGEST_LINE = 300
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
# C0 and C1 controls except newline and tab, DEL, bidirectional controls, invisible separators, lone surrogates.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_FOLDERS = re.compile(r"(?<![\w./])/(?:[\w.+~@-]+/)+(?=[\w.+~@-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """`fence` is longer than any run of backticks in `text`."""

    title: str
    text: str

    @property
    def fence(self) -> str:
        return make_fence(self.text)


def make_fence(text: str) -> str:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def clean(text: str) -> str:
    """Cut long text at its end, with a note, before any pattern runs."""
    text = text[: 8 * MOST_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n")
    text = _FOLDERS.sub("", _CONTROLS.sub("", _ESCAPES.sub("", text))).strip("\n")
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..." for line in text.split("\n")]
    short = "\n".join(lines[:MOST_LINES])[:MOST_CHARACTERS]
    return short if len(lines) <= MOST_LINES and short == "\n".join(lines) else f"{short}\n... (cut)"


def clean_line(text: str) -> str:
    words = " ".join(clean(text).replace("`", "'").split())
    return words if len(words) <= MOST_IN_LINE else f"{words[:MOST_IN_LINE]}..."
