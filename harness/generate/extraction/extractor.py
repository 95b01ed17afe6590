"""Extracts the submitted program from a raw completion, without executing it.

The program that the prose (`remarks`) submits or recommends comes first, then one without a remark, an earlier version,
a rejected one; the last wins a tie. If no block parses, one that contains `class ModelNew` is returned
(`unparsable_fence`). A block with unbound names is joined with those that define them. Reasoning is never searched.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Literal

from harness.domain import Alternative, Candidate, Completion, Extraction, Language, Sample
from harness.domain.errors import shorten
from harness.generate.extraction import remarks
from harness.generate.extraction.blocks import Answer, Block, Rule, list_answers
from harness.generate.extraction.joining import join_blocks, join_files, list_files
from harness.generate.extraction.notes import FILE_RULE
from harness.generate.extraction.programs import is_broken_program, is_program, may_define_entry_point, repair
from harness.generate.extraction.remarks import EARLIER, Remark
from harness.generate.extraction.sections import Sections
from harness.syntax import parse_python, try_parse

# Weight of a rule relative to `fence`; added to the weight of the remark (see `remarks`).
_RULE_WEIGHTS: dict[Rule, int] = {
    "unclosed_fence": -4, "unparsable_fence": -5, "diff": -6, "bare_file": -7, "bare_part": -8, "tool_call": 1
}  # fmt: skip
_MOST_COMPARED = 200  # the last programs of an answer
_MOST_ALTERNATIVES = 50
_SHOWN_CHARACTERS = 120
# A docstring may contain fence lines; the end of a program is searched for in this many fence lines.
_FENCES_AHEAD = 8
_MOST_CUTS = 20
# Characters that may be parsed again to pair fences otherwise than CommonMark.
_MOST_PARSED_AGAIN = 1_000_000
_PROGRAM_START = re.compile(r"^(?:import\s+[\w.]+|from\s+[\w.]+\s+import\b|class\s+\w+|def\s+\w+|@\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    source: str
    extraction: Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    block: Block
    answer: Answer
    remark: Remark

    @property
    def rank(self) -> tuple[int, int]:
        return self.remark.weight + _RULE_WEIGHTS.get(self.block.rule, 0), self.block.start


def extract_candidate(completion: Completion, language: Language) -> Candidate | None:
    """Return None for an empty answer, prose only, or drafts only."""
    found = find_code(completion.text or "")
    if found is None:
        return None
    return Candidate(source=found.source, language=language, rule=found.extraction.rule, extraction=found.extraction)


def find_code(text: str) -> Found | None:
    """Raises no exception for any text."""
    answers = list_answers(text)
    blocks = [(block, answer) for answer in answers for block in _find_programs(answer)]
    if not blocks:
        return None
    blocks.sort(key=lambda found: found[0].start)
    choices = sorted(_list_choices(blocks[-_MOST_COMPARED:]), key=lambda choice: choice.rank)
    taken, lost = choices[-1], choices[-2::-1]
    block, parts, files = _join(taken)
    extraction = Extraction(
        rule=block.rule,
        first_line=block.start + 1,
        last_line=block.end,
        reason=_explain_choice(taken, lost),
        joined=tuple((part.start + 1, part.end) for part in parts),
        alternatives=(*(_describe_alternative(choice, taken) for choice in lost[:_MOST_ALTERNATIVES]), *files),
        more_alternatives=len(blocks) - 1 - min(len(lost), _MOST_ALTERNATIVES),
    )
    return Found(source=block.source, extraction=extraction)


def _join(taken: _Choice) -> tuple[Block, tuple[Block, ...], tuple[Alternative, ...]]:
    """Return (the program, the blocks added to it, the named files that it omits)."""

    def is_rejected(block: Block) -> bool:
        return _read_remark(block, taken.answer).weight < EARLIER

    files = list_files(taken.block, taken.answer, is_rejected)
    program, used = join_files(taken.block, files)
    program, parts = join_blocks(program, taken.answer, is_rejected)
    added = {part.start: part for part in (*used, *parts)}
    left_out = tuple(
        Alternative(
            rule=FILE_RULE,
            first_line=one.block.start + 1,
            last_line=one.block.end,
            reason=f"the program does not use the file {one.path} by its name",
        )
        for one in files
        if one.block.start not in added
    )
    return program, tuple(added[start] for start in sorted(added)), left_out


def _find_programs(answer: Answer) -> list[Block]:
    found = [program for block in (*answer.closed, *answer.others) if (program := _read_program(block))]
    found += _find_loose(answer, found)
    unclosed = [block for block in answer.fenced if not block.closed][-1:]
    if answer.fences:
        unclosed.append(answer.cut(answer.fences[-1] + 1, len(answer.lines), "unclosed_fence"))
    found += [block for block in unclosed if is_program(block.source)][:1]
    starts = sorted(block.start for block in found)
    empty = [block for block in answer.fenced if bisect_left(starts, block.start) == bisect_left(starts, block.end)]
    found += [replace(block, rule="unparsable_fence") for block in empty if is_broken_program(block.source)]
    return found or _find_bare(answer)


def _read_program(block: Block) -> Block | None:
    if is_program(block.source):
        return block
    repaired = repair(block.source) if may_define_entry_point(block.source) else block.source
    return replace(block, source=repaired) if repaired != block.source and is_program(repaired) else None


def _find_loose(answer: Answer, found: Sequence[Block]) -> list[Block]:
    taken = sorted((block.start - answer.first_line, block.end - answer.first_line) for block in found)
    starts = [start for start, _ in taken]
    loose: list[Block] = []
    budget, upper = _MOST_PARSED_AGAIN, len(answer.lines)
    for line in reversed(range(len(answer.lines))):
        if line >= upper or not may_define_entry_point(answer.lines[line]):
            continue
        index = bisect_left(starts, line + 1)
        lower = taken[index - 1][1] if index else 0
        if lower > line:  # inside a found program
            continue
        until = min(upper, starts[index] if index < len(starts) else upper)
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
    fences = answer.fences
    before = bisect_left(fences, line)
    for opening in range(before - 1, max(before - 1 - _FENCES_AHEAD, -1), -1):
        if fences[opening] < lower:
            return
        for end in fences[max(opening + 1, before) : opening + 1 + _FENCES_AHEAD]:
            if end >= until:
                break
            yield answer.cut(fences[opening] + 1, end, "loose_fence")


def _find_bare(answer: Answer) -> list[Block]:
    """Return the whole answer (except a single closing fence at its end), or its program lines."""
    if len(answer.fences) > 1 or not may_define_entry_point(answer.text):
        return []
    end = answer.fences[0] if answer.fences else len(answer.lines)
    bare = _read_program(answer.cut(0, end, "bare_file"))
    part = None if bare or try_parse(answer.text) else _find_bare_part(answer, end)
    return [block for block in (bare, part) if block]


def _find_bare_part(answer: Answer, end: int) -> Block | None:
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
    """The line is 1-based."""
    try:
        parse_python(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return 1


def _list_choices(blocks: Sequence[tuple[Block, Answer]]) -> Iterator[_Choice]:
    """A label that the prose submits elsewhere outranks the block's section and the remark beside it."""
    if len(blocks) == 1:
        yield _Choice(block=blocks[0][0], answer=blocks[0][1], remark=Remark())
        return
    answers = {id(answer): answer for _, answer in blocks}
    labels = remarks.read_labels(prose for answer in answers.values() for prose in answer.list_prose())
    sections = {key: Sections.read(answer) for key, answer in answers.items()}
    for block, answer in blocks:
        label = remarks.find_label(answer.before(block)) if labels else None
        section = sections[id(answer)].find_remark(block, answer)
        remark = labels.get(label or "") or _add_section(_read_remark(block, answer), section)
        yield _Choice(block=block, answer=answer, remark=remark)


def _add_section(beside: Remark, section: Remark) -> Remark:
    """A block in a draft section stays a draft, whatever its remark."""
    if section.weight < 0:
        return min(beside, section, key=lambda one: one.weight)
    return beside if beside.weight else section


def _read_remark(block: Block, answer: Answer) -> Remark:
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
    if lost[0].rank[0] == taken.rank[0]:
        return "the last of equally ranked programs"
    return "the text rejects the others" if taken.remark.weight == 0 else "the others rank lower"


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
        return f"the text rejects it: {_quote(choice.remark)}"
    if choice.remark.weight < taken.remark.weight:
        return f"the text submits the one taken: {_quote(taken.remark)}"
    if choice.rank[0] < taken.rank[0]:
        return f"the rule {choice.block.rule} ranks below {taken.block.rule}"
    return "the one taken comes later"


def _quote(remark: Remark) -> str:
    return f'"{shorten(remark.words, _SHOWN_CHARACTERS)}"'


ExtractionKind = Literal["found", "lost", "other", "rule"]
NOT_EXTRACTED = ("file", "imported")  # rules of candidates without a completion


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionChange:
    """`found`, `lost`: a program appeared or disappeared; `other`: it changed; `rule`: only the rule did."""

    sample: Sample
    now: Candidate | None

    @property
    def kind(self) -> ExtractionKind:
        before = self.sample.candidate
        if before is None or self.now is None:
            return "found" if before is None else "lost"
        return "rule" if before.source == self.now.source else "other"

    @property
    def reason(self) -> str:
        before, now = self.sample.candidate, self.now
        rules = f"{before.rule if before else 'nothing'} -> {now.rule if now else 'nothing'}"
        if before is None or now is None or self.kind == "rule":
            return rules
        changed = [line for line in self.diff() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        added = sum(line.startswith("+") for line in changed)
        return f"{rules}: {added} lines added, {len(changed) - added} removed"

    def diff(self) -> list[str]:
        before, now = ([] if one is None else one.source.splitlines() for one in (self.sample.candidate, self.now))
        return list(unified_diff(before, now, "stored", "extracted now", lineterm=""))


def reextract(samples: Iterable[Sample]) -> Iterator[ExtractionChange]:
    for sample in samples:
        if sample.completion is None or (sample.candidate and sample.candidate.rule in NOT_EXTRACTED):
            continue
        now = extract_candidate(sample.completion, sample.language)
        if now != sample.candidate:
            yield ExtractionChange(sample=sample, now=now)
