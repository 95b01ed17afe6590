"""Separates an answer from reasoning, by the marks that models and servers leave in the text.

| form | marks |
| --- | --- |
| `element` | `<think>`, `</thinking>`, `<seed:think>`, `<thought id="1">`, `<|begin_of_thought|>`, `<|END_THINKING|>` |
| `bracket` | `[THINK]`, `[/THINK]`, `[unused16]`, `[unused17]` |
| `harmony` | `<|channel|>analysis<|message|>`, `<|channel|>final <|constrain|>json<|message|>`, `<channel|>` |
| `message` | `<|end|>`, `<|call|>`, `<|return|>`, `<|im_start|>think`, `<|start|>assistant<|message|>` |
| `sections` | `<|open|>think<|sep|>`, `<|close|>think<|sep|>`, `<|open|>response<|sep|>` |
| `stripped` | `analysis...assistantfinal...`: channels whose special tokens were removed |
| `phrase` | `Here is my thought process:` ... `Here is my response:`; `Thinking...` ... `...done thinking.` |

Reasoning lies between an opening and a closing mark, before a first closing one, and after an unclosed opening one.
Quoted marks, and opening marks inside a line of a code block, do not count. A mark inside a sentence ("I skip <think>
here") counts only if another mark closes it, or if it closes the text before the program.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.generate.extraction.programs import may_define_entry_point

# opens, closes: reasoning begins or ends here, and what precedes a closing mark is reasoning even without an opening
# one; leaves: ends all reasoning that is open; ends: ends only what a mark of its name has opened.
Effect = Literal["opens", "closes", "leaves", "ends"]

_REASONING = re.compile(
    r"(?<![^\W_])(?P<word>(?:ant)?think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|analysis|cot|"
    r"scratch(?:pad)?|monologue|rationale|contemplation|deliberation|brainstorm(?:ing)?)(?![^\W_])|^inner_(?:prefix|suffix)$",
    re.IGNORECASE,
)
_ENDS = re.compile(r"(?<![^\W_])(?:end|stop|suffix)(?![^\W_])", re.IGNORECASE)
_ANSWER = re.compile(r"(?<![^\W_])(?:answer|solution|response|output|final)(?![^\W_])", re.IGNORECASE)
_ANSWER_CHANNELS = ("final", "answer", "response", "output")
_OPENING_PHRASES = ("Here's my thought", "Here is my thought", "Thinking")

# Three backticks before a mark are a closing fence, not a quotation.
_NOT_QUOTED = r"(?<![\"'])(?<!(?<!``)`)"
_PLACE = r"(?:(?P<line_{0}>^[ \t>]{{0,20}})|" + _NOT_QUOTED + ")"
_NOT_MENTIONED = r"(?!`(?!``)|[ \t]+(?:tags?|blocks?|tokens?|sections?|markers?)\b)"
_FORMS = {
    "harmony": _NOT_QUOTED + r"(?:(?:<\|start\|>(?P<role>[^<\n]{0,80}))?<\|channel\|?>\s?(?P<channel>\w+)"
    r"(?P<header>[^<\n]{0,80}(?:<\|constrain\|?>[^<\n]{0,80})?<\|message\|?>)?|<channel\|>)",
    "message": _NOT_QUOTED + r"(?:<\|(?:end|call|return)\|>|<\|im_start\|>(?P<turn>\w+(?:/think)?)"
    r"|<\|start\|>assistant<\|message\|>)",
    "sections": _NOT_QUOTED + r"<\|(?P<side>open|close)\|>(?P<section>\w+)<\|sep\|>",
    "element": _PLACE.format("e") + r"(?:[<\u25c1]|&lt;)[|\uff5c]?\s{0,2}(?P<end>/?)[ \t]{0,2}"
    r"(?P<name>[\w:|\u2581-]{1,60}?)(?P<attributes>\s[^<>]{0,200}?)?\s{0,2}[|\uff5c]?(?:[>\u25b7]|&gt;)"
    + _NOT_MENTIONED,
    "bracket": _PLACE.format("b")
    + r"\[(?:(?P<bracket_end>/?)(?:THINK|THINKING|THOUGHT|REASONING)|unused1[67])\]"
    + _NOT_MENTIONED,
    "stripped": r"(?:\A\s*(?=(?:analysis|commentary)(?:[^\W_]|[`*#<]| to=| [A-Z]|[ \t]*\n))"
    r"|assistant|assistant (?=\w+ {0,2}[A-Z`*#\n])|^assistant\n)"
    r"(?P<bare>analysis|commentary|final)(?P<recipient>\s+to=[\w.]+[^\n{]{0,40})?",
    "phrase": r"\A\s*Here(?:'s| is) my thought process:(?=[\s\S]*Here(?:'s| is) my response:)"
    r"|^Here(?:'s| is) my response:"
    r"|\A\s*Thinking\.\.\.\n(?=[\s\S]*^\.\.\.done thinking\.)|^\.\.\.done thinking\.",
}
_MARK = re.compile("|".join(f"(?P<{form}>{pattern})" for form, pattern in _FORMS.items()), re.MULTILINE)
_FENCE_LINE = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
# In the text around a mark, which is written as \0. Reasoning begins with a sentence of its own.
_MENTION = re.compile(
    r"""(?i:\b(?:no|without|any|skip(?:ping)?|omit(?:ting)?|avoid(?:ing)?|drop(?:ping|ped)?))[ \t]+[(*_\u201c\u2018]*\0
    | (?:(?:>(?=[,;])|[\w)&+/"'`*\]]|\b(?:e\.g|i\.e)\.)(?P<comma>[,;])?(?<!assistant)[ \t]+[(*_\u201c\u2018]*
        | [(/\u201c\u2018])
    \0[)*_"'\u201d\u2019]*
    (?:[,;:!?)/] | \.(?!\.) | -[a-z] | [ \t]+(?:is|are|was|were|and|or|nor)\b
        | (?(comma)(?!)) [ \t]+(?!(?:ok|okay|alright|hmm+|wait|let|we|i|first[, ]+(?:i|we|let)|the\ user)\b)
            [a-z\u00df-\u00ff&/])
    """,
    re.VERBOSE,
)
_SEEN_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class Part:
    """`reason` tells why it is reasoning; "" for a part of the answer. `first_line` counts the lines before it."""

    text: str
    first_line: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Mark:
    effect: Effect
    name: str
    starts_line: bool = True


def is_reasoning(name: str) -> bool:
    return _REASONING.search(name) is not None


def split_text(text: str) -> Iterator[Part]:
    """A closing mark also ends marks opened after its opening one; without an opening one it ends all reasoning."""
    begin, line, fenced, counted, reason = 0, 0, False, 0, ""
    opened: list[str] = []
    for found, mark in _list_marks(text):
        fenced ^= len(_FENCE_LINE.findall(text, counted, found.start())) % 2 == 1
        counted = found.start()
        is_code = fenced and not mark.starts_line and not opened
        if (
            (is_code and (mark.effect == "opens" or _is_mentioned(found)))
            or (mark.effect == "leaves" and not opened)
            or (mark.effect == "ends" and mark.name not in opened)
        ):
            continue
        mark_line = line + text.count("\n", begin, found.end()) + 1
        named = f"the mark {found[0].strip()} in line {mark_line}"
        if opened or mark.effect == "closes":
            yield Part(text[begin : found.start()], line, reason or f"before {named}")
        else:
            yield Part(text[begin : found.start()], line)
        if mark.effect != "opens":
            opened = opened[: opened.index(mark.name)] if mark.name in opened else []
        elif mark.name not in opened:
            opened.append(mark.name)
        reason = (reason or f"after {named}") if opened else ""
        line, begin, counted = mark_line - 1, found.end(), found.end()
        fenced = False
    yield Part(text[begin:], line, reason)


def _list_marks(text: str) -> Iterator[tuple[re.Match[str], _Mark]]:
    kept: list[tuple[re.Match[str], _Mark]] = []
    following: dict[str, Effect] = {}
    defines, end = False, len(text)
    for found in reversed([*_MARK.finditer(text)]):
        mark = _read_mark(found)
        defines = defines or may_define_entry_point(text[found.end() : end])
        end = found.start()
        if mark is None:
            continue
        if not _is_mentioned(found):
            following[mark.name] = mark.effect
        elif not (defines if mark.effect == "closes" else following.get(mark.name, "opens") != "opens"):
            continue
        kept.append((found, mark))
    return reversed(kept)


def _is_mentioned(found: re.Match[str]) -> bool:
    start, end, text = *found.span(), found.string
    around = f"{text[max(start - _SEEN_CHARACTERS, 0) : start]}\0{text[end : end + _SEEN_CHARACTERS]}"
    return _MENTION.search(around) is not None


def _read_mark(found: re.Match[str]) -> _Mark | None:
    match found.lastgroup:
        case "element":
            return _read_element(found)
        case "harmony" | "stripped":
            header = (found["role"], found["header"], found["recipient"])
            return _read_channel(found["channel"] or found["bare"], "".join(filter(None, header)))
        case "sections":
            return _read_tag(found["section"], closes=found["side"] == "close")
        case "bracket":
            closes = found["bracket_end"] == "/" or found[0].endswith("17]")
            return _Mark("closes" if closes else "opens", "bracket", found["line_b"] is not None)
        case "message" if found["turn"] is None:
            return _Mark("ends", "channel")
    opens = is_reasoning(found["turn"]) if found["turn"] else found[0].strip().startswith(_OPENING_PHRASES)
    return _Mark("opens" if opens else "leaves", "turn")


def _read_element(found: re.Match[str]) -> _Mark | None:
    name, attributes, starts_line = found["name"], found["attributes"] or "", found["line_e"] is not None
    closes = bool(found["end"]) or _ENDS.search(name) is not None
    if name.lower() == "details" and (closes or "reasoning" in attributes):
        return _Mark("ends" if closes else "opens", "details", starts_line)
    return None if attributes.endswith("/") else _read_tag(name, closes=closes, starts_line=starts_line)


def _read_tag(name: str, *, closes: bool, starts_line: bool = True) -> _Mark | None:
    if word := _REASONING.search(name):
        return _Mark("closes" if closes else "opens", (word["word"] or "inner").lower(), starts_line)
    return _Mark("leaves", "answer") if starts_line and not closes and _ANSWER.search(name) else None


def _read_channel(channel: str | None, header: str) -> _Mark:
    """A function call is an answer, unless it is inside reasoning."""
    is_call = channel != "analysis" and "to=" in header
    is_answer = channel is None or channel.lower() in _ANSWER_CHANNELS or is_call
    return _Mark("closes" if is_answer else "opens", "channel")
