"""Finds the blocks of a raw answer that may contain a program, with their lines and the rule that found them.

- `fence`: a closed CommonMark code block.
- `loose_fence`: between two fence lines that CommonMark pairs otherwise (an extra, unclosed or over-indented fence).
- `unclosed_fence`: from the last fence line to the end of the answer.
- `html`: a `<pre>` element. `json`: a string in an answer or fence that is JSON.
- `tool_call`: an argument of a tool call, as JSON or as a `<parameter>` element.
- `diff`: a patch that creates a whole file; other patches are not applied.
- `bare_file`: the whole answer without fences; `bare_part`: those of its lines that are a program.

Reasoning is excluded (`reasoning`).
"""

import html
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, Self

from markdown_it import MarkdownIt

from harness.generate.extraction.programs import may_define_entry_point
from harness.generate.extraction.reasoning import Part, is_reasoning, split_text
from harness.generate.extraction.remarks import FILE_NAME

Rule = Literal[
    "fence", "loose_fence", "unclosed_fence", "html", "json", "tool_call", "diff", "bare_file", "bare_part",
    "unparsable_fence", "joined",
]  # fmt: skip

_FENCE_LINE = re.compile(r"^[ \t>]*(?:`{3,}[^`]*|~{3,}.*)$")
_ELEMENT = re.compile(r"<(?P<end>/?)(?P<name>pre|tool_call|parameter)\b(?P<rest>[^<>\n]{0,200})>", re.IGNORECASE)
_MARKUP = re.compile(r"</?(?:code|span)\b[^<>\n]{0,200}>", re.IGNORECASE)
_HUNK = re.compile(r"@@ -[01](?:,\d+)? \+1(?:,\d+)? @@")
# Tags and end-of-text tokens on the line of a closing fence, and zero-width characters.
_AFTER_FENCE = re.compile(r"^([ \t>]*(?:`{3,}|~{3,}))(?:</\w{1,40}>|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>)+[ \t]*$", re.M)
_INVISIBLE = ("\ufeff", "\u200b", "\u2060")
_DEEPEST_JSON = 20
_PATH_KEYS = ("path", "filename", "file", "name")
_SEEN_LINES, _SEEN_COLUMNS = 30, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines `start` to `end` of the text (0-based, end excluded); `outer_*` with fences. `info`: string or key."""

    source: str
    rule: Rule
    start: int
    end: int
    outer_start: int
    outer_end: int
    info: str = ""
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """One part of the text outside reasoning; `first_line` is the number of lines before it."""

    text: str
    first_line: int
    lines: tuple[str, ...]
    fences: tuple[int, ...]
    fenced: tuple[Block, ...]
    others: tuple[Block, ...] = field(default=())

    @classmethod
    def read(cls, text: str, first_line: int = 0) -> Self:
        text = _AFTER_FENCE.sub(r"\1", text)
        lines = tuple(text.removesuffix("\n").split("\n"))
        fences = tuple(number for number, line in enumerate(lines) if _FENCE_LINE.match(line))
        fenced = tuple(_read_fenced(text, lines, first_line))
        others = (*_read_elements(text, first_line, fenced), *_read_data(text, lines, first_line, fenced))
        return cls(text, first_line, lines, fences, fenced, others)

    @property
    def closed(self) -> tuple[Block, ...]:
        return tuple(block for block in self.fenced if block.closed)

    def before(self, block: Block) -> str:
        start = max(block.outer_start - self.first_line, 0)
        index = bisect_left(self.fences, start)
        previous = self.fences[index - 1] + 1 if index else 0
        return self._join(max(previous, start - _SEEN_LINES), start)

    def after(self, block: Block) -> str:
        end = block.outer_end - self.first_line
        index = bisect_left(self.fences, end)
        following = self.fences[index] if index < len(self.fences) else len(self.lines)
        return self._join(end, min(following, end + _SEEN_LINES))

    def list_prose(self) -> Iterator[str]:
        start = 0
        for block in self.closed:
            yield "\n".join(self.lines[start : block.outer_start - self.first_line])
            start = block.outer_end - self.first_line
        yield "\n".join(self.lines[start:])

    def _join(self, start: int, end: int) -> str:
        return "\n".join(line[:_SEEN_COLUMNS].lstrip("> \t") for line in self.lines[start:end])

    def cut(self, start: int, end: int, rule: Rule) -> Block:
        # Unlike `textwrap.dedent`, keep blank lines unchanged: they may be inside a string literal.
        lines = self.lines[start:end]
        indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()]
        shared = min(indents, key=len, default="")
        source = "".join(f"{line}\n" for line in tuple(line.removeprefix(shared) for line in lines))
        first, last = self.first_line + start, self.first_line + end
        return Block(source=source, rule=rule, start=first, end=last, outer_start=first - 1, outer_end=last + 1)


def normalise(text: str) -> str:
    """Unify line ends, replace characters that cannot be encoded, remove zero-width ones."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for character in _INVISIBLE:
        text = text.replace(character, "")
    return text.encode("utf-8", "replace").decode("utf-8")


def list_answers(text: str) -> list[Answer]:
    """JSON is one part: its strings are split when they are read."""
    text = normalise(text)
    parts = [Part(text, 0)] if _is_json(text) else split_text(text)
    return [Answer.read(part.text, part.first_line) for part in parts if not part.reason]


def explain_removal(text: str) -> str:
    """Return the tag by which the first program of a raw answer counts as reasoning, or ""."""
    text = normalise(text)
    strings = (
        [string for _, string in _list_strings(json.loads(text, strict=False), "", 0)] if _is_json(text) else [text]
    )
    parts = (part for string in strings for part in split_text(string))
    return next((part.reason for part in parts if part.reason and may_define_entry_point(part.text)), "")


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and isinstance(json.loads(text, strict=False), dict | list)
    except (ValueError, RecursionError):
        return False


@cache
def _make_parser() -> MarkdownIt:
    """Use only the rules that determine fences: a tag such as <vector> must not open an HTML block."""
    parser = MarkdownIt("zero").enable(["fence", "code", "blockquote", "list"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _read_fenced(text: str, lines: tuple[str, ...], first_line: int) -> Iterator[Block]:
    for token in _make_parser().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        opening, end = token.map
        closed = end - 1 > opening and _closes(lines[end - 1], token.markup)
        yield Block(
            source=token.content,
            rule="fence" if closed else "unclosed_fence",
            start=first_line + opening + 1,
            end=first_line + (end - 1 if closed else end),
            outer_start=first_line + opening,
            outer_end=first_line + end,
            info=token.info,
            closed=closed,
        )


def _closes(line: str, markup: str) -> bool:
    marks = line.strip(" \t>")
    return marks.startswith(markup) and not marks.strip(markup[0])


def _read_elements(text: str, first_line: int, fenced: tuple[Block, ...]) -> Iterator[Block]:
    """Read elements outside fences; nesting is not supported."""
    starts = [block.outer_start for block in fenced]
    opened: re.Match[str] | None = None
    line, counted, opened_line = first_line, 0, 0
    for tag in _ELEMENT.finditer(text):
        line, counted = line + text.count("\n", counted, tag.start()), tag.start()
        index = bisect_right(starts, line)
        if index and line < fenced[index - 1].outer_end:
            continue
        if not tag["end"]:
            opened, opened_line = tag, line
        elif opened is not None and opened["name"].lower() == tag["name"].lower():
            yield from _read_element(opened, text[opened.end() : tag.start()], opened_line, line)
            opened = None


def _read_element(tag: re.Match[str], content: str, first: int, last: int) -> Iterator[Block]:
    name = tag["name"].lower()
    if name == "parameter" and is_reasoning(tag["rest"]):
        return
    if name == "tool_call":
        yield from _read_json(content, "tool_call", first, last + 1)
        return
    if name == "pre":
        content = html.unescape(_MARKUP.sub("", content)).replace("\xa0", " ")
    rule: Rule = "html" if name == "pre" else "tool_call"
    source = content.removeprefix("\n").rstrip() + "\n"
    yield Block(source=source, rule=rule, start=first, end=last + 1, outer_start=first, outer_end=last + 1,
                info=tag["rest"])  # fmt: skip


def _read_data(text: str, lines: tuple[str, ...], first_line: int, fenced: tuple[Block, ...]) -> Iterator[Block]:
    if text.strip()[:1] in ("{", "["):
        rule: Rule = "tool_call" if '"arguments"' in text else "json"
        yield from _read_json(text, rule, first_line, first_line + len(lines))
    for block in fenced:
        if block.source.lstrip()[:1] in ("{", "["):
            yield from _read_json(block.source, "json", block.start, block.end)
        elif block.info.startswith(("diff", "patch")) and _is_whole_file(block.source):
            yield replace(block, source=_read_new_side(block.source), rule="diff")


def _read_json(text: str, rule: Rule, first: int, last: int) -> Iterator[Block]:
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.lstrip())  # tokens such as <|call|> may follow
    except (ValueError, RecursionError):
        return
    for key, string in _list_strings(value, "", 0):
        for source in _list_sources(string):
            yield Block(
                source=source, rule=rule, start=first, end=last, outer_start=first - 1, outer_end=last + 1, info=key
            )


def _list_strings(value: object, key: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield (key, string) of all strings in a JSON value, including JSON inside a string."""
    if depth > _DEEPEST_JSON or is_reasoning(key):
        return
    if isinstance(value, dict):
        path = next((one for one in map(value.get, _PATH_KEYS) if isinstance(one, str)), "")
        for name, inner in value.items():
            is_text = isinstance(inner, str) and FILE_NAME.fullmatch(path)
            yield from _list_strings(inner, path if is_text and name not in _PATH_KEYS else name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_strings(inner, key, depth + 1)
    elif isinstance(value, str):
        try:
            arguments = json.loads(value, strict=False) if value.lstrip()[:1] == "{" else None
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            yield from _list_strings(arguments, key, depth + 1)
        else:
            yield key, value


def _list_sources(string: str) -> Iterator[str]:
    for answer in [part.text for part in split_text(normalise(string)) if not part.reason]:
        part = _AFTER_FENCE.sub(r"\1", answer)
        fenced = [block.source for block in _read_fenced(part, tuple(part.split("\n")), 0)] if "```" in part else []
        yield from fenced or [part if part.endswith("\n") else f"{part}\n"]


def _is_whole_file(patch: str) -> bool:
    hunks = [line for line in patch.split("\n") if line.startswith("@@")]
    return not hunks or (len(hunks) == 1 and _HUNK.match(hunks[0]) is not None)


def _read_new_side(patch: str) -> str:
    header = ("---", "+++", "@@", "diff ", "index ", "\\")
    lines = [line for line in patch.split("\n")[:-1] if not line.startswith(("-", *header))]
    return "".join(f"{line[1:]}\n" for line in lines)
