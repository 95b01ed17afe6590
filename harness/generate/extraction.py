"""Finds the program in a raw completion, and says which rule found it. Reads text only: nothing is run or imported.

The rules, strongest first; within a rule the last program of the text wins:

- `fence`: a closed code block as CommonMark sees it (any tag, backticks or tildes, inside lists and quotes).
- `loose_fence`: lines between two fence lines that CommonMark pairs otherwise (a stray fence before the program, a
  draft that was never closed, a fence indented too far). It competes with `fence`: the later program wins.
- `unclosed_fence`: the text after the last fence line, when the answer ends without closing it.
- `bare_file`: the whole answer, without any fence around it.
- `unparsable_fence`: no program of the answer parses, but a block holds `class ModelNew`. It is handed on, so that
  the evaluation can say what is wrong with it.

A program counts when it parses and defines `ModelNew` at its top level: as a class, or as another name of a class
that the same program defines. A class of nothing but `...` is an ellipsis in prose, not a program.

Reasoning is never graded. What stands between `<think>` and `</think>`, before a first `</think>`, or after a
`<think>` that nothing closes, is a draft; so is the separate reasoning that an endpoint sends. When the answer has no
program there is no candidate: grading a draft would score what the model did not submit. Text without any such tag
is all answer.

Line ends are normalised to `\\n` (a carriage return inside a C++ string would not survive the compiler anyway), and
characters that cannot be encoded are replaced. Nothing else of a program is changed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt

from harness.domain import Candidate, Completion, Language

ENTRY_POINT = "ModelNew"
Rule = Literal["fence", "loose_fence", "unclosed_fence", "bare_file", "unparsable_fence"]

# A quoted tag is talk about tags. Three backticks before a tag are a fence that ends there, not a quotation.
_NOT_QUOTED = r"(?<![\"'])(?<!(?<!``)`)"
_TAG = re.compile(rf"^[ \t]*<(?P<open>think(?:ing)?)>|{_NOT_QUOTED}</think(?:ing)?>", re.IGNORECASE | re.MULTILINE)
_FENCE_LINE = re.compile(r"^[ \t>]*(?:`{3,}[^`]*|~{3,}.*)$")
_SAYS_ENTRY_POINT = re.compile(rf"^[ \t>]*class\s+{ENTRY_POINT}\b", re.MULTILINE)
# A docstring may hold fences of its own; more than this many lines further the end of a program is not looked for.
_FENCES_AHEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A program, the rule that found it, and its lines in the text (1-based, both included, without the fences)."""

    source: str
    rule: Rule
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines `start` to `end` (excluded) of the text, 0-based, as a possible program."""

    source: str
    start: int
    end: int

    def found_by(self, rule: Rule) -> Found:
        return Found(source=self.source, rule=rule, first_line=self.start + 1, last_line=self.end)


def extract_candidate(completion: Completion, language: Language) -> Candidate | None:
    """The program that the completion's text submits, or None: an empty answer, prose only, drafts only."""
    found = find_code(completion.text or "")
    return Candidate(source=found.source, language=language, rule=found.rule) if found else None


def find_code(text: str) -> Found | None:
    """The submitted program of a raw answer. Takes any text and never raises."""
    text = _normalise(text)
    answers = [_Answer.read(part, first_line) for part, first_line in _split_answers(text)]
    for find in (_find_fenced, _find_unclosed, _find_bare, _find_unparsable):
        for answer in reversed(answers):
            if (found := find(answer)) is not None:
                return found
    return None


def _normalise(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode("utf-8")


def _split_answers(text: str) -> Iterator[tuple[str, int]]:
    """The stretches of `text` outside of any reasoning, each with the number of lines before it.

    A stretch is an answer when it begins at the start or after a closing tag, and ends at an opening tag or the end.
    """
    begin, after_reasoning = 0, True
    for tag in _TAG.finditer(text):
        opens = tag["open"] is not None
        if after_reasoning and opens:
            yield text[begin : tag.start()], text.count("\n", 0, begin)
        begin, after_reasoning = tag.end(), not opens
    if after_reasoning:
        yield text[begin:], text.count("\n", 0, begin)


@dataclass(frozen=True, slots=True)
class _Answer:
    """One stretch of answer: its lines, its CommonMark blocks, the lines that look like fences."""

    lines: tuple[str, ...]
    first_line: int
    closed: tuple[_Block, ...]
    unclosed: _Block | None
    fences: tuple[int, ...]

    @classmethod
    def read(cls, text: str, first_line: int) -> _Answer:
        lines = tuple(text.removesuffix("\n").split("\n"))
        blocks = [*_read_blocks(text, lines, first_line)]
        return cls(
            lines=lines,
            first_line=first_line,
            closed=tuple(block for block, closed in blocks if closed),
            unclosed=next((block for block, closed in reversed(blocks) if not closed), None),
            fences=tuple(number for number, line in enumerate(lines) if _FENCE_LINE.match(line)),
        )

    def cut(self, start: int, end: int) -> _Block:
        source = "".join(f"{line}\n" for line in _dedent(self.lines[start:end]))
        return _Block(source, self.first_line + start, self.first_line + end)


def _dedent(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Unlike `textwrap.dedent` it leaves blank lines as they are: they may stand in a string of the program."""
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
    shared = min(indents, key=len, default="")
    return tuple(line.removeprefix(shared) for line in lines)


@cache
def _make_parser() -> MarkdownIt:
    """Only the rules that decide where a fence stands: a tag such as <vector> must not open an HTML block."""
    parser = MarkdownIt("zero").enable(["fence", "code", "blockquote", "list"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _read_blocks(text: str, lines: tuple[str, ...], first_line: int) -> Iterator[tuple[_Block, bool]]:
    for token in _make_parser().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        opening, end = token.map
        closed = end - 1 > opening and _closes(lines[end - 1], token.markup)
        yield _Block(token.content, first_line + opening + 1, first_line + (end - 1 if closed else end)), closed


def _closes(line: str, markup: str) -> bool:
    marks = line.strip(" \t>")
    return marks.startswith(markup) and not marks.strip(markup[0])


def _find_fenced(answer: _Answer) -> Found | None:
    """The later of the last program in a closed block and the last one between two fence lines outside of it."""
    block = _last(answer.closed, _is_program)
    strict = block.found_by("fence") if block else None
    for opening in reversed(range(len(answer.fences))):
        start = answer.fences[opening] + 1
        if strict and answer.first_line + start <= strict.last_line:
            return strict
        for end in answer.fences[opening + 1 : opening + 1 + _FENCES_AHEAD]:
            if _is_program(loose := answer.cut(start, end)):
                return loose.found_by("loose_fence")
    return strict


def _find_unclosed(answer: _Answer) -> Found | None:
    if answer.unclosed and _is_program(answer.unclosed):
        return answer.unclosed.found_by("unclosed_fence")
    if not answer.fences:
        return None
    tail = answer.cut(answer.fences[-1] + 1, len(answer.lines))
    return tail.found_by("unclosed_fence") if _is_program(tail) else None


def _find_bare(answer: _Answer) -> Found | None:
    """The whole answer; a lone fence line at its end closes what a prompt had opened."""
    if len(answer.fences) > 1:
        return None
    bare = answer.cut(0, answer.fences[0] if answer.fences else len(answer.lines))
    return bare.found_by("bare_file") if _is_program(bare) else None


def _find_unparsable(answer: _Answer) -> Found | None:
    blocks = [*answer.closed, answer.unclosed] if answer.unclosed else answer.closed
    block = _last(blocks, _is_broken_program)
    return block.found_by("unparsable_fence") if block else None


def _last(blocks: tuple[_Block, ...] | list[_Block], fits: Callable[[_Block], bool]) -> _Block | None:
    return next((block for block in reversed(blocks) if fits(block)), None)


def _is_program(block: _Block) -> bool:
    tree = _parse(block.source) if ENTRY_POINT in block.source else None
    return tree is not None and _defines_entry_point(tree)


def _is_broken_program(block: _Block) -> bool:
    return _SAYS_ENTRY_POINT.search(block.source) is not None and _parse(block.source) is None


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a "\d" in a string of the candidate is not our affair
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _defines_entry_point(tree: ast.Module) -> bool:
    statements = [*_walk_top_level(tree.body)]
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    if ENTRY_POINT in classes:
        return not _is_ellipsis(classes[ENTRY_POINT], classes)
    return any(_aliases_entry_point(node, classes) for node in statements)


def _walk_top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run on import: those in `if`, `try` and `with` too, those in functions not."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for inner in ("body", "orelse", "finalbody"):
                yield from _walk_top_level(getattr(node, inner, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from _walk_top_level(handler.body)


def _is_ellipsis(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """`class ModelNew(nn.Module): ...` repeats a name in prose; an empty class on one of the program's own does not."""
    inherits = any(isinstance(base, ast.Name) and base.id in classes for base in node.bases)
    return not inherits and all(_does_nothing(statement) for statement in node.body)


def _does_nothing(statement: ast.stmt) -> bool:
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def _aliases_entry_point(node: ast.stmt, classes: dict[str, ast.ClassDef]) -> bool:
    match node:
        case ast.Assign(targets=[*targets], value=ast.Name(id=name)):
            named = [target.id for target in targets if isinstance(target, ast.Name)]
            return name in classes and ENTRY_POINT in named
        case ast.AnnAssign(target=ast.Name(id="ModelNew"), value=ast.Name(id=name)):
            return name in classes
    return False
