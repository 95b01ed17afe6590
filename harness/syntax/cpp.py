"""C++ lexer. Does not expand macros or evaluate conditions."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["space", "newline", "comment", "string", "character", "number", "word", "mark"]

# A character literal is bounded, since an unclosed quote would be searched for to the end of its line, once per quote.
_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|\\\r?\n|[^"\\\n])*"?)
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n]){1,32}')
    | (?P<number>\.?[0-9](?:'[0-9A-Za-z_]|[eEpP][+-]|[\w.])*)
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<newline>\r?\n)
    | (?P<space>(?:[ \t\f\v]|\\\r?\n)+)
    | (?P<mark><<<|::|->|==|!=|&&|\|\||\#\#|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_PAIRS.values())
# Precede a kernel's name, with arguments.
LAUNCH_BOUNDS = frozenset({"__launch_bounds__", "C10_LAUNCH_BOUNDS_1", "C10_LAUNCH_BOUNDS_2"})


@dataclass(frozen=True, slots=True)
class Token:
    """`directive` is the number of the preprocessor line, 0 for none; negative after #else or #elif."""

    kind: Kind
    text: str
    line: int
    directive: int = 0

    @property
    def is_blank(self) -> bool:
        return self.kind in ("space", "newline", "comment")


class _Conditions:
    def __init__(self) -> None:
        self._open: list[int] = []
        self._alternatives = 0

    def meet(self, word: str) -> None:
        if word in ("if", "ifdef", "ifndef"):
            self._open.append(self._open[-1] if self._open else 0)
        elif word in ("else", "elif") and self._open:
            self._alternatives += 1
            self._open[-1] = -self._alternatives
        elif word == "endif" and self._open:
            self._open.pop()

    @property
    def alternative(self) -> int:
        return self._open[-1] if self._open else 0


def tokenize(text: str) -> list[Token]:
    """`join(tokenize(text)) == text` holds."""
    tokens: list[Token] = []
    conditions = _Conditions()
    line, directive, directives, at_line_start, is_named = 1, 0, 0, True, True
    for found in _TOKEN.finditer(text):
        kind: Kind = "string" if found.lastgroup in ("raw", "delimiter") else found.lastgroup  # type: ignore[assignment]
        word = found[0]
        if kind == "newline":
            directive, at_line_start = 0, True
        elif word == "#" and at_line_start:
            directives += 1
            directive, at_line_start, is_named = directives, False, False
        elif kind not in ("space", "comment"):
            at_line_start = False
            if directive and not is_named:
                conditions.meet(word)
                is_named = True
        tokens.append(Token(kind, word, line, directive or conditions.alternative))
        line += word.count("\n")
    return tokens


def join(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


def step(tokens: Sequence[Token], at: int | None, by: int = 1) -> int | None:
    """Return the next index (`by=-1`: previous) that is neither white space nor comment; None at the end.

    Stay within one directive; ordinary tokens skip directives.
    """
    if at is None:
        return None
    home = tokens[at].directive if 0 <= at < len(tokens) else 0
    at += by
    while 0 <= at < len(tokens):
        token = tokens[at]
        if home and token.directive != home:
            return None
        if not token.is_blank and token.directive == home:
            return at
        at += by
    return None


def text_at(tokens: Sequence[Token], at: int | None) -> str:
    return "" if at is None else tokens[at].text


def step_over(tokens: Sequence[Token], at: int | None, words: Collection[str], by: int = 1) -> int | None:
    """Like `step`, to the first token that is none of these words."""
    at = step(tokens, at, by)
    while at is not None and tokens[at].text in words:
        at = step(tokens, at, by)
    return at


def list_texts(tokens: Sequence[Token], low: int, high: int) -> list[str]:
    """Return those of tokens `low` to `high` (exclusive) that are neither blank nor of a directive."""
    return [token.text for token in tokens[low:high] if not token.is_blank and not token.directive]


def split_at(tokens: Sequence[Token], low: int, high: int, marks: Mapping[str, int]) -> list[list[Token]]:
    """Split tokens `low` to `high` (exclusive) outside of brackets. `marks` counts the separators that each one is."""
    parts: list[list[Token]] = [[]]
    at = low
    while at < high:
        end = match_forward(tokens, at) if tokens[at].text in _PAIRS else None
        following = at + 1 if end is None else end + 1
        if tokens[at].text in marks:
            parts += [[] for _ in range(marks[tokens[at].text])]
        else:
            parts[-1] += tokens[at:following]
        at = following
    return parts


def find_directive_end(tokens: Sequence[Token], at: int) -> int:
    """Return the index behind the preprocessor line that holds a token."""
    end = at + 1
    while end < len(tokens) and tokens[end].directive == tokens[at].directive:
        end += 1
    return end


def skip_template_arguments(tokens: Sequence[Token], at: int | None) -> int | None:
    """Return the index after the `>` of the `<` at `at`; None for a comparison."""
    angles, where = 0, at
    while where is not None and tokens[where].text not in (";", "{", "<<<", "&&", "||"):
        text = tokens[where].text
        angles += (text == "<") - (text == ">")
        where = step(tokens, match_forward(tokens, where) if text == "(" else where)
        if angles == 0:
            return where
    return None


def find_arguments(tokens: Sequence[Token], at: int | None) -> tuple[int, int] | None:
    """Return the parentheses that follow a token."""
    opening = step(tokens, at)
    closing = match_forward(tokens, opening) if text_at(tokens, opening) == "(" else None
    return None if opening is None or closing is None else (opening, closing)


def match_forward(tokens: Sequence[Token], at: int | None) -> int | None:
    """Return the index of the bracket that closes the one at `at`."""
    depth, where = 0, at
    while where is not None:
        text = tokens[where].text
        if tokens[where].kind == "mark":
            depth += (text in _PAIRS) - (text in _CLOSING)
            if depth == 0:
                return where
        where = step(tokens, where)
    return None


def match_backward(tokens: Sequence[Token], at: int | None) -> int | None:
    """Return the index of the bracket opened before the one at `at`; `>` matches `<`."""
    depth, angles, closer, where = 0, 0, text_at(tokens, at), at
    while where is not None:
        text = tokens[where].text
        if tokens[where].kind == "mark":
            if text in _CLOSING:
                depth += 1
            elif text in _PAIRS:
                depth -= 1
                if depth < 0:
                    return None
            elif depth == 0 and closer == ">":
                if text in (";", "<<<"):
                    return None
                angles += (text == ">") - (text == "<")
            if depth == 0 and angles == 0:
                return where
        where = step(tokens, where, -1)
    return None
