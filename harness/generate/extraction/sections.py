"""Finds headings that mark the programs below them as drafts ("## Thinking") or as the answer ("**Final code:**").

A heading is an ATX or setext heading, bold text at the start of a line, or a plain line. A section ends at the next
draft or answer heading, an ATX or setext heading's also at one of its level, a plain line's at a line after a program.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from harness.generate.extraction.blocks import Answer, Block
from harness.generate.extraction.programs import may_define_entry_point
from harness.generate.extraction.remarks import DRAFT, PROGRAM_WORD, SUBMITTED, Remark

_LONGEST_LINE = 300  # characters
_BOLD_LEVEL, _PLAIN_LEVEL = 7, 8
_ATX = re.compile(r"^\W{0,3}?(?P<marks>#{1,6})(?!#)\s*\S")
_BOLD = re.compile(r"^\W*?(?P<marks>\*\*|__|<(?:b|strong|summary|h[1-6])\b[^<>]*>)(?P<title>[^*<>]+?)(?:\*\*|__|</)")
_SETEXT = re.compile(r"^ {0,3}(?:(?P<first>=+)|-+)\s*$")
_STEP = re.compile(r"(?:step|phase|part|section|stage)(?:\W*\d+)?", re.IGNORECASE)
_TAG = re.compile(r"</?\w+[^<>]*>")
_RUN_IN = re.compile(r"^\W*(?P<title>[A-Za-z][\w ,'/-]{2,40}?)\s*:\s+\S")
_PART_END = re.compile(r"\s*[:(\[|\u2013\u2014]\s*|\s+-+\s+|\.{2,}|\u2026")
_ANSWER = re.compile(
    rf"""(?:(?:the|my|your|our|here\ is|here's)\s+)*(?:(?:complete|full|actual|real|official|submitted|proposed)\s+)*
    (?: (?:final,?\s+)?(?:answer|solution|submission)s?(?:\s+{PROGRAM_WORD})?
      | final(?:,?\s+(?:[\w`-]+\s+){{0,3}}?(?:{PROGRAM_WORD}|outputs?|results?|responses?|modelnew))? )""",
    re.IGNORECASE | re.VERBOSE,
)
# Too common amid a text to be a heading there.
_OUTPUT = re.compile(r"(?:(?:the|my|your)\s+)?(?:outputs?|response|result)(?:\s+code)?", re.IGNORECASE)
_DRAFT = re.compile(
    rf"""(?:(?:the|my|our|some|your|initial|first|second|early|earlier|rough|internal|inner|private|preliminary|detailed
        |quick|step[- ]by[- ]step)\s+)*
    (?: thinking | thoughts? | reasoning | drafts? | drafting | scratch(?:[\s-]?(?:pads?|work|space|notes))?
      | chain[\s-]of[\s-]thoughts? | cot | brainstorm(?:ing)? | monologue | deliberations? | rumination
      | work(?:ing)?\ notes | workings? | let\ me\ think | let's\ think )
    (?:\s+(?:process|steps?|phase|sections?|notes?|traces?|pad|out\ loud|aloud|step\ by\ step|\d+|{PROGRAM_WORD}))*""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Heading:
    """One of the `titles` may name a section; `alone` means that no text follows on its line."""

    level: int
    titles: tuple[str, ...]
    alone: bool = True

    @classmethod
    def read(cls, line: str, following: str) -> Self:
        if atx := _ATX.match(line):
            return cls(len(atx["marks"]), _split_title(line))
        if underline := _SETEXT.match(following):
            return cls(1 if underline["first"] else 2, _split_title(line))
        if bold := _BOLD.match(line):
            return cls(_BOLD_LEVEL, _split_title(bold["title"]), not line[bold.end() :].strip(" :*_>"))
        if run_in := _RUN_IN.match(line):
            return cls(_PLAIN_LEVEL, _split_title(run_in["title"])[:1], alone=False)
        titles = _split_title(line)
        return cls(_PLAIN_LEVEL, titles if len(titles) == 1 else ())

    def classify(self) -> Remark:
        words = " ".join(self.titles)
        if any(_ANSWER.fullmatch(title) for title in self.titles) or (self.alone and _OUTPUT.fullmatch(words)):
            return Remark(SUBMITTED, words)
        return Remark(DRAFT, words) if any(_DRAFT.fullmatch(title) for title in self.titles) else Remark()


@dataclass(frozen=True, slots=True)
class Sections:
    starts: tuple[int, ...]
    remarks: tuple[Remark, ...]

    @classmethod
    def read(cls, answer: Answer) -> Self:
        found = [*_list_sections(answer)]
        return cls(tuple(line for line, _ in found), tuple(remark for _, remark in found))

    def find_remark(self, block: Block, answer: Answer) -> Remark:
        index = bisect_right(self.starts, max(block.outer_start - answer.first_line, 0))
        return self.remarks[index - 1] if index else Remark()


def _split_title(text: str) -> tuple[str, ...]:
    plain = _TAG.sub("", text).replace("*", "").replace("_", " ")
    parts = [re.sub(r"^[\W\d]+|\W+$", "", part) for part in _PART_END.split(plain)]
    return tuple(part for part in parts if part and not _STEP.fullmatch(part))


def _list_sections(answer: Answer) -> Iterator[tuple[int, Remark]]:
    """Yield (first line, remark). A heading before the first program of the answer belongs to the same section."""
    starts = [block.start - answer.first_line for block in answer.closed if may_define_entry_point(block.source)]
    opened, programs, weight = 0, 0, 0
    for line, heading, remark in _classify_headings(answer):
        is_over = heading.level <= opened != _BOLD_LEVEL and (
            bisect_left(starts, line) > programs or (weight < 0 and opened < _PLAIN_LEVEL)
        )
        if remark.weight:
            opened, programs, weight = heading.level, bisect_left(starts, line), remark.weight
            yield line, remark
        elif is_over:
            opened = 0
            yield line, remark


def _classify_headings(answer: Answer) -> list[tuple[int, _Heading, Remark]]:
    """Plain lines ("Final version:") name the answer only if no marked heading does."""
    found = [(line, heading, heading.classify()) for line, heading in _list_headings(_list_prose_lines(answer))]
    is_marked = any(remark.weight > 0 and heading.level < _PLAIN_LEVEL for _, heading, remark in found)
    return [one for one in found if not (is_marked and one[1].level == _PLAIN_LEVEL and one[2].weight > 0)]


def _list_prose_lines(answer: Answer) -> list[str]:
    """Empty the lines of code blocks, except blocks that contain others."""
    lines = list(answer.lines)
    for block in answer.closed:
        start, end = block.start - answer.first_line, block.end - answer.first_line
        if bisect_left(answer.fences, start) == bisect_left(answer.fences, end):
            lines[start:end] = [""] * (end - start)
    return lines


def _list_headings(lines: Sequence[str]) -> Iterator[tuple[int, _Heading]]:
    for number, line in enumerate(lines):
        if line.strip() and len(line) <= _LONGEST_LINE:
            yield number, _Heading.read(line, lines[number + 1] if number + 1 < len(lines) else "")
