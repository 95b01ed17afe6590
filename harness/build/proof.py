"""Which errors of the fast lane's front end the plain lane's would find as well: so much can be told without asking it.

The front end reads the candidate's own text in both lanes, token by token the same, after other headers. So it is final

- that a file to be included is nowhere: the fast lane looks wherever the plain one does;
- that brackets in the candidate's own text do not match, as those of the headers do;
- that a name is unknown which no header has as a word at all, and the candidate's own text not before that line, if
  it is the first error;
- that a declaration is refused whose words all mean the same after either set of headers: `count_names` counts what a
  text names at file scope, and a word that stands there as often after torch's headers as after the façade's is
  declared by the headers of CUDA and C++ that both read. What it takes from other declarations of the candidate counts
  as its own words. So it is with a kernel that names nothing of torch's and of `std`, if its error is the first one and
  belongs to no instance of a template, which somebody else may have asked for.

Whatever cannot be told so is the plain lane's to say. Nothing is compiled here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\d[\w.\']*|<=|>=|->|<<|\S')
_MARKER = re.compile(r'^# (\d+) "([^"]*)"')
_ERROR = re.compile(r"^(\S+?)\((\d+)\): error(: .*| #.*)$", re.MULTILINE)
_MISSING_FILE = re.compile(r"^(\S+):\d+:\d+: fatal error: \S+: No such file or directory$", re.MULTILINE)
_UNKNOWN_NAME = re.compile(r': (?:identifier "(\w+)" is undefined|(?:class|namespace) ".*" has no member "(\w+)")$')
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CLASS_KEYS = frozenset({"struct", "class", "union", "enum"})
# What is a keyword, or the same type wherever it is declared.
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "alignas alignof asm auto bool break case catch char class const constexpr constinit const_cast continue "
        "decltype default delete do double dynamic_cast else enum explicit extern false final float for friend goto if "
        "inline int long mutable namespace new noexcept nullptr operator override private protected public register "
        "reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this "
        "thread_local throw true try typedef typename union unsigned using virtual void volatile while __attribute__ "
        "__restrict __restrict__ __inline__ __forceinline__ __asm__ size_t ptrdiff_t int8_t int16_t int32_t int64_t "
        "uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t",
    )
)
_OF_THE_FACADE = frozenset({"at", "c10", "torch", "caffe2", "detail"})  # namespaces of which it shows a part
_PARAMETER_KINDS = frozenset({"typename", "class", "int", "bool", "unsigned"})
USING_NAMESPACE = "using namespace"


class UnbalancedError(Exception):
    """Brackets do not match."""


@dataclass(slots=True)
class Declaration:
    """One declaration at file scope. `names` are the words outside of its brackets, `words` all of them but those that
    name its template's `parameters`."""

    file: str
    lines: tuple[int, int]
    head: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)


def is_final(
    log: str, source: str, own_text: str, lean: str, real: Mapping[str, int], *, words: Container[str] | None = None
) -> bool:
    """Whether the plain lane's front end refuses this, too.

    `log` is what the front end said of the file `source`; `own_text` the candidate's part, preprocessed; `lean` the
    façade, preprocessed; `real` what torch's headers name at file scope; `words` all that they hold, None: not known.
    """
    if any(found[1] == source for found in _MISSING_FILE.finditer(log)):
        return True
    error = _ERROR.search(log)
    if error is None or error[1] != source or error[3].startswith(" #") or 'R"' in own_text:
        return False
    try:
        declarations = list(split_declarations(own_text, enter_namespaces=True))
    except UnbalancedError:
        return True
    line = int(error[2])
    unknown = _UNKNOWN_NAME.search(error[3])
    if unknown is not None and words is not None and _is_new(unknown[1] or unknown[2], own_text, source, line, words):
        return True
    message = log[error.start() :].partition("\n\n")[0]
    return "detected during" not in message and _means_the_same(declarations, source, line, lean, real)


def _is_new(name: str, own_text: str, source: str, line: int, words: Container[str]) -> bool:
    """Whether nobody can have declared a name before that line: it stands there for the first time."""
    places = ((file, number) for token, file, number, _ in _read_tokens(own_text) if token == name)
    return name not in words and next(places, None) == (source, line)


def list_words(text: str) -> list[str]:
    """All words of a text, in comments and macros, too."""
    return sorted(set(re.findall(r"[A-Za-z_]\w*", text)))


def count_names(text: str) -> dict[str, int]:
    """How often each word stands at file scope of a preprocessed text. Raises UnbalancedError."""
    names: Counter[str] = Counter()
    for declaration in split_declarations(text, enter_namespaces=False):
        names.update(declaration.names)
        names[USING_NAMESPACE] += declaration.head[:2] == ["using", "namespace"]
    return dict(names)


def _means_the_same(
    declarations: list[Declaration], source: str, line: int, lean: str, real: Mapping[str, int]
) -> bool:
    """Whether nothing that the declaration at a line needs depends on which headers were read."""
    found = count_names(lean)
    words = set().union(*(declaration.words for declaration in declarations))
    open_words = {word for word in words if word in _OF_THE_FACADE or found.get(word, 0) != real.get(word, 0)}
    if found.get(USING_NAMESPACE, 0) != real.get(USING_NAMESPACE, 0):
        return False
    while grown := {name for one in declarations if one.words & open_words for name in one.names} - open_words:
        open_words |= grown
    directives = [one for one in declarations if one.head[:1] == ["using"] and "=" not in one.head]
    at_line = [one for one in declarations if one.file == source and one.lines[0] <= line <= one.lines[1]]
    return bool(at_line) and not any(one.words & open_words for one in (*at_line, *directives))


def split_declarations(text: str, *, enter_namespaces: bool) -> Iterator[Declaration]:
    """What stands at file scope, in order. `extern "C"` and enumerations hide nothing; nor do namespaces, if they are
    entered: what stands in one has its name among its words. Raises UnbalancedError."""
    splitter = _Splitter(enter_namespaces)
    for token, file, line, is_parameter in _read_tokens(text):
        yield from splitter.take(token, file, line, is_parameter)
    yield from splitter.finish()


def _read_tokens(text: str) -> Iterator[tuple[str, str, int, bool]]:
    """(token, file, line, whether it stands among a template's parameters) of a preprocessed text."""
    file, number, angles, parentheses = "", 0, -1, 0
    for line in text.splitlines():
        if found := _MARKER.match(line):
            file, number = found[2], int(found[1]) - 1
            continue
        number += 1
        for token in _TOKEN.findall(line) if not line.startswith("#") else ():
            if angles < 0:
                angles, parentheses = (0, 0) if token == "template" else (-1, 0)
                yield token, file, number, False
                continue
            parentheses += (token == "(") - (token == ")")
            if parentheses == 0:
                angles += (token == "<") - (token == ">")
            is_over = angles == 0 or token in ("{", ";")  # also after an instance, or `x.template f()`
            yield token, file, number, not is_over
            angles = -1 if is_over else angles


class _Splitter:
    """Cuts tokens into declarations."""

    def __init__(self, enter_namespaces: bool) -> None:
        self._enter_namespaces = enter_namespaces
        self._brackets: list[tuple[str, tuple[str, ...] | None]] = []  # what closes it; names entered, None: it hides
        self._hidden = 0
        self._current: Declaration | None = None
        self._may_end = False
        self._before = ("", "")

    def take(self, token: str, file: str, line: int, is_parameter: bool) -> Iterator[Declaration]:
        if self._may_end and token not in ("{", ",", "catch"):
            yield from self.finish_one()
        self._may_end = False
        current = self._current
        if current is None:
            current = self._current = Declaration(file=file, lines=(line, line))
            current.words.update(name for _, names in self._brackets for name in names or ())
        current.lines = (current.lines[0], line)
        if token in _CLOSERS:
            yield from self._open(token, current)
        elif token in _CLOSERS.values():
            self._close(token, current)
        else:
            self._read(token, current, is_parameter)
        self._before = (self._before[1], token)
        if token == ";" and not self._hidden:
            yield from self.finish_one()

    def _open(self, token: str, current: Declaration) -> Iterator[Declaration]:
        names = _entered(current.head, self._enter_namespaces) if token == "{" and not self._hidden else None
        self._brackets.append((_CLOSERS[token], names))
        self._hidden += names is None
        if "namespace" in current.head[:2]:
            del current.names[1:]  # of `namespace a::b` only `a` stands at file scope
        if names is not None and "enum" not in current.head:
            yield from self.finish_one()

    def _close(self, token: str, current: Declaration) -> None:
        if not self._brackets or self._brackets[-1][0] != token:
            raise UnbalancedError
        self._hidden -= self._brackets.pop()[1] is None
        ends = token == "}" and not self._hidden
        self._may_end = ends and "=" not in current.head and not _CLASS_KEYS & set(current.head)

    def _read(self, token: str, current: Declaration, is_parameter: bool) -> None:
        if not self._hidden and not is_parameter:
            current.head.append(token)
        if not (token[0].isalpha() or token[0] == "_") or token in _NO_NAMES:
            return
        if is_parameter and self._before[1] in _PARAMETER_KINDS:
            current.parameters.add(token)
        if token not in current.parameters:
            current.words.add(token)
        # In `void (*name)(int)` the name stands in brackets.
        if not is_parameter and (not self._hidden or self._before == ("(", "*")):
            current.names.append(token)

    def finish_one(self) -> Iterator[Declaration]:
        if self._current is not None:
            yield self._current
        self._current = None
        self._may_end = False

    def finish(self) -> Iterator[Declaration]:
        if self._brackets:
            raise UnbalancedError
        yield from self.finish_one()


def _entered(head: list[str], enter_namespaces: bool) -> tuple[str, ...] | None:
    """The names of what a brace opens where it hides nothing, or None where it hides what it holds."""
    if head[:1] == ["extern"] and len(head) == 2:
        return ()
    if "namespace" in head[:2]:
        names = tuple(word for word in head if word.isidentifier() and word not in _NO_NAMES)
        return names if enter_namespaces or not names else None
    return () if "enum" in head else None
