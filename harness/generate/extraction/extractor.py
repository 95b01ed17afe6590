"""Finds the program that a raw completion submits, and says why it was chosen. Reads text only: nothing is run or
imported.

`blocks` lists what may be a program, `programs` says what is one, `remarks` what the answer says of it. Of several
programs the one that the answer submits or recommends is taken, before one without a remark, before an alternative or
an earlier version, before one that it rejects; of equal ones the last. A program without its closing fence counts less
than any that the answer does not reject. When no block parses, one that holds `class ModelNew` is handed on
(`unparsable_fence`), so that the evaluation can say what is wrong with it.

A block that needs names which it does not bind is joined with the blocks that bind them, such as imports or a kernel,
and a C++ or CUDA block becomes the string that the module reads. Where joining does not give a program, the block
stands alone.

Reasoning is never graded, neither in tags nor as the separate reasoning that an endpoint sends. When the answer has no
program there is no candidate: grading a draft would score what the model did not submit.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from harness.domain import Alternative, Candidate, Completion, Extraction, Language
from harness.generate.extraction import remarks
from harness.generate.extraction.blocks import Answer, Block, Rule, normalise, split_answers
from harness.generate.extraction.joining import join_blocks
from harness.generate.extraction.programs import is_broken_program, is_program, may_define_entry_point, parse, repair
from harness.generate.extraction.remarks import EARLIER, Remark

# What a rule's program counts less than one in a fence; see `remarks` for the weights of what the text says.
_HANDICAPS: dict[Rule, int] = {
    "unclosed_fence": -4, "unparsable_fence": -5, "diff": -6, "bare_file": -7, "bare_part": -8, "tool_call": 1
}  # fmt: skip
_MOST_COMPARED = 200  # the last programs of an answer
_MOST_ALTERNATIVES = 50
_SHOWN_CHARACTERS = 120
# A docstring may hold fences of its own; more than this many lines further the end of a program is not looked for.
_FENCES_AHEAD = 8
_MOST_CUTS = 20
# Lines that are paired otherwise than CommonMark pairs them are parsed again and again: up to so many characters.
_MOST_PARSED_AGAIN = 1_000_000
_PROGRAM_START = re.compile(r"^(?:import\s+[\w.]+|from\s+[\w.]+\s+import\b|class\s+\w+|def\s+\w+|@\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A program, the rule that found it, its lines in the text (1-based, both included, without the fences), and why
    it was chosen."""

    source: str
    rule: Rule
    first_line: int
    last_line: int
    extraction: Extraction | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A program of an answer and what the answer says of it."""

    block: Block
    answer: Answer
    remark: Remark

    @property
    def standing(self) -> tuple[int, int]:
        return self.remark.weight + _HANDICAPS.get(self.block.rule, 0), self.block.start


def extract_candidate(completion: Completion, language: Language) -> Candidate | None:
    """The program that the completion's text submits, or None: an empty answer, prose only, drafts only."""
    found = find_code(completion.text or "")
    if found is None:
        return None
    return Candidate(source=found.source, language=language, rule=found.rule, extraction=found.extraction)


def find_code(text: str) -> Found | None:
    """The submitted program of a raw answer. Takes any text and never raises."""
    answers = [Answer.read(part, first_line) for part, first_line in split_answers(normalise(text))]
    blocks = [(block, answer) for answer in answers for block in _find_programs(answer)]
    if not blocks:
        return None
    blocks.sort(key=lambda found: found[0].start)
    choices = sorted(_judge(blocks[-_MOST_COMPARED:]), key=lambda choice: choice.standing)
    taken, lost = choices[-1], choices[-2::-1]
    block, parts = join_blocks(taken.block, taken.answer, lambda one: _read_remark(one, taken.answer).weight < EARLIER)
    extraction = Extraction(
        rule=block.rule,
        first_line=block.start + 1,
        last_line=block.end,
        reason=_explain_choice(taken, lost),
        joined=tuple((part.start + 1, part.end) for part in parts),
        alternatives=tuple(_describe_alternative(choice, taken) for choice in lost[:_MOST_ALTERNATIVES]),
        more_alternatives=len(blocks) - 1 - min(len(lost), _MOST_ALTERNATIVES),
    )
    return Found(
        source=block.source, rule=block.rule, first_line=block.start + 1, last_line=block.end, extraction=extraction
    )


def _find_programs(answer: Answer) -> list[Block]:
    """Every program of an answer, and every block that was to be one."""
    found = [program for block in (*answer.closed, *answer.others) if (program := _read_program(block))]
    found += _find_loose(answer, found)
    found += _find_unclosed(answer)
    found += _find_broken(answer, found)
    return found or _find_bare(answer)


def _read_program(block: Block) -> Block | None:
    """The block if it is a program, as it is or without prompts."""
    if is_program(block.source):
        return block
    repaired = repair(block.source) if may_define_entry_point(block.source) else block.source
    return replace(block, source=repaired) if repaired != block.source and is_program(repaired) else None


def _find_loose(answer: Answer, found: Sequence[Block]) -> list[Block]:
    """Programs between two fence lines, outside of those found: the last opening line before a definition that gives
    one, with the nearest closing line."""
    taken = sorted((block.start - answer.first_line, block.end - answer.first_line) for block in found)
    starts = [start for start, _ in taken]
    loose: list[Block] = []
    budget, upper = _MOST_PARSED_AGAIN, len(answer.lines)
    for line in reversed(range(len(answer.lines))):
        if line >= upper or not may_define_entry_point(answer.lines[line]):
            continue
        place = bisect_left(starts, line + 1)
        lower = taken[place - 1][1] if place else 0
        if lower > line:  # within a program that was found
            continue
        until = min(upper, starts[place] if place < len(starts) else upper)
        for cut in _cut_around(answer, line, lower, until):
            budget -= len(cut.source)
            if budget < 0:
                return loose
            if is_program(cut.source):
                loose.append(cut)
                upper = cut.start - answer.first_line
                break
    return loose


def _cut_around(answer: Answer, line: int, lower: int, until: int) -> Iterator[Block]:
    """The lines between two fence lines around `line`, within `lower` and `until`."""
    fences = answer.fences
    before = bisect_left(fences, line)
    for opening in range(before - 1, max(before - 1 - _FENCES_AHEAD, -1), -1):
        if fences[opening] < lower:
            return
        for end in fences[max(opening + 1, before) : opening + 1 + _FENCES_AHEAD]:
            if end >= until:
                break
            yield answer.cut(fences[opening] + 1, end, "loose_fence")


def _find_unclosed(answer: Answer) -> list[Block]:
    unclosed = [block for block in answer.fenced if not block.closed][-1:]
    if answer.fences:
        unclosed.append(answer.cut(answer.fences[-1] + 1, len(answer.lines), "unclosed_fence"))
    return [block for block in unclosed if is_program(block.source)][:1]


def _find_broken(answer: Answer, found: Sequence[Block]) -> list[Block]:
    """Blocks that hold the class and do not parse, and no program that does."""
    starts = sorted(block.start for block in found)
    empty = [block for block in answer.fenced if bisect_left(starts, block.start) == bisect_left(starts, block.end)]
    return [replace(block, rule="unparsable_fence") for block in empty if is_broken_program(block.source)]


def _find_bare(answer: Answer) -> list[Block]:
    """The whole answer; a lone fence line at its end closes what a prompt had opened. Or its lines between prose."""
    if len(answer.fences) > 1 or not may_define_entry_point(answer.text):
        return []
    end = answer.fences[0] if answer.fences else len(answer.lines)
    bare = _read_program(answer.cut(0, end, "bare_file"))
    part = None if bare or parse(answer.text) else _find_bare_part(answer, end)
    return [block for block in (bare, part) if block]


def _find_bare_part(answer: Answer, end: int) -> Block | None:
    """The longest run of lines that is a program: from a line that begins one to where the prose goes on."""
    budget = _MOST_PARSED_AGAIN
    for start in [n for n, line in enumerate(answer.lines[:end]) if _PROGRAM_START.match(line)][:_MOST_CUTS]:
        until = end
        for _ in range(_MOST_CUTS):
            while until > start and not answer.lines[until - 1].strip():
                until -= 1
            cut = answer.cut(start, until, "bare_part")
            budget -= len(cut.source)
            if budget < 0 or not may_define_entry_point(cut.source):
                break
            if is_program(cut.source):
                return cut
            until = min(start + _find_error_line(cut.source) - 1, until - 1)
    return None


def _find_error_line(source: str) -> int:
    """The first line that Python cannot read, counted from 1."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return 1


def _judge(blocks: Sequence[tuple[Block, Answer]]) -> Iterator[_Choice]:
    """Each program with what its answer says of it; a label that the text submits elsewhere counts before that."""
    if len(blocks) == 1:
        yield _Choice(block=blocks[0][0], answer=blocks[0][1], remark=Remark())
        return
    labels = remarks.read_labels(
        prose for answer in {id(one): one for _, one in blocks}.values() for prose in answer.proses()
    )
    for block, answer in blocks:
        label = remarks.find_label(answer.before(block)) if labels else None
        yield _Choice(block=block, answer=answer, remark=labels.get(label or "") or _read_remark(block, answer))


def _read_remark(block: Block, answer: Answer) -> Remark:
    """What is said before a block, after it, in its file name and its code: a rejection counts most, then praise."""
    before = answer.before(block)
    said = (
        remarks.read_lead(before),
        remarks.read_echo(answer.after(block)),
        remarks.read_file_name(before, block.info, block.source),
        remarks.read_gaps(block.source),
    )
    worst, best = min(said, key=lambda one: one.weight), max(said, key=lambda one: one.weight)
    return worst if worst.weight < 0 else best


def _explain_choice(taken: _Choice, lost: Sequence[_Choice]) -> str:
    if not lost:
        return "the only program"
    if taken.remark.weight > 0:
        return f"the text submits it: {_quote(taken.remark)}"
    if lost[0].standing[0] == taken.standing[0]:
        return "the last of the programs that the text speaks of alike"
    return "the text sets the others aside" if taken.remark.weight == 0 else "the others count still less"


def _describe_alternative(choice: _Choice, taken: _Choice) -> Alternative:
    block = choice.block
    return Alternative(
        rule=block.rule, first_line=block.start + 1, last_line=block.end, reason=_explain_loss(choice, taken)
    )


def _explain_loss(choice: _Choice, taken: _Choice) -> str:
    if choice.block.source == taken.block.source:
        return "the same program as the one taken"
    if choice.block.rule == "unparsable_fence" and taken.block.rule != "unparsable_fence":
        return "it does not parse"
    if choice.remark.weight < min(taken.remark.weight, 0):
        return f"the text sets it aside: {_quote(choice.remark)}"
    if choice.remark.weight < taken.remark.weight:
        return f"the text submits the one taken: {_quote(taken.remark)}"
    if choice.standing[0] < taken.standing[0]:
        return f"the rule {choice.block.rule} counts less than {taken.block.rule}"
    return "the one taken comes later"


def _quote(remark: Remark) -> str:
    words = remark.words
    return f'"{words if len(words) <= _SHOWN_CHARACTERS else words[:_SHOWN_CHARACTERS] + "..."}"'
