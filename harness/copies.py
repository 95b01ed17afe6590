"""Computes fingerprints that find copied programs and kernels: without layout and comments, and with declared names
numbered in the order of their first use. External names (`expf`, `torch.relu`) remain.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Self

from harness.languages import LANGUAGES
from harness.syntax import is_docstring, parse_python, try_parse
from harness.syntax.cpp import Token, tokenize


def normalise(source: str) -> str:
    """Return a digest of the syntax tree, or of the text if it does not parse."""
    return sha256(_normalise_text(source).encode("utf-8", "surrogatepass")).hexdigest()


def _normalise_text(source: str) -> str:
    tree = try_parse(source)
    if tree is not None:
        with suppress(RecursionError):  # nested too deeply
            return ast.dump(Normaliser().visit(tree))
    return " ".join(source.split())


def is_reference_copy(source: str, reference: str) -> bool:
    """True if `ModelNew` is the reference's `Model`, or a subclass that adds nothing. False if nested too deeply."""
    tree, original = try_parse(source), try_parse(reference)
    if tree is None or original is None:
        return False
    copies, models = _find_classes(tree, "ModelNew"), _find_classes(original, "Model")
    if not copies or not models:
        return False
    if all(isinstance(statement, ast.Pass) for statement in drop_docstring(copies[-1].body)):
        return any(isinstance(base, ast.Name) and base.id == "Model" for base in copies[-1].bases)
    try:
        return _dump_body(copies[-1]) == _dump_body(models[-1])
    except RecursionError:
        return False


class Normaliser(ast.NodeTransformer):
    """Removes docstrings, and comments and white space of long strings, which may be kernels."""

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = drop_docstring(node.body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.holds_code(node.value):
            return ast.Constant(value=self.squeeze(node.value))
        return node

    def holds_code(self, text: str) -> bool:
        return "\n" in text

    def squeeze(self, code: str) -> str:
        text = "".join(" " if token.kind == "comment" else token.text for token in tokenize(code))
        lines = [" ".join(line.split()) for line in text.splitlines()]
        return "\n".join(line for line in lines if line)


def drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if body and is_docstring(body[0]) else body


def _dump_body(node: ast.ClassDef) -> str:
    body = ast.Module(body=parse_python(ast.unparse(node)).body[0].body, type_ignores=[])  # type: ignore[attr-defined]
    return re.sub(r"\b(ModelNew|Model)\b", "Model", ast.dump(Normaliser().visit(body)))


def _find_classes(tree: ast.Module, name: str) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]


# Programs and kernels below these sizes (tokens) are alike without having been copied.
MIN_PROGRAM, MIN_KERNEL = 350, 250
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_KEYWORDS = (
    "auto bool break case char const constexpr continue do double else false float for goto half if int long namespace "
    "new nullptr operator return short signed sizeof size_t static struct switch template this true typename unsigned "
    "using void while"
)
_RESERVED = frozenset(_KEYWORDS.split())
_NO_TYPES = ("return", "else", "case", "goto", "new", "delete", "sizeof", "throw", "operator")
_AFTER_NAME = (")", ",", ";", "=", "[", "{", ":")
_BEFORE_BODY = (")", "const", "noexcept")
_FREE_KEYWORDS = ("name", "verbose")  # of load_inline


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    value: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """`exact` excludes layout and comments, `program` also names; None if the program does not parse."""

    exact: str
    program: Part | None = None
    kernels: tuple[Part, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        program = () if self.program is None or self.program.size < MIN_PROGRAM else (self.program.value,)
        return (*program, *(kernel.value for kernel in self.kernels if kernel.size >= MIN_KERNEL))


@lru_cache(maxsize=256)
def take_fingerprint(source: str) -> Fingerprint:
    exact, tree = normalise(source), try_parse(source)
    if tree is None:
        return Fingerprint(exact=exact, kernels=tuple(_list_cpp_kernels(source)))
    try:
        program, kernels = _describe_program(source, tree)
    except RecursionError:  # nested too deeply
        return Fingerprint(exact=exact)
    return Fingerprint(exact=exact, program=program, kernels=kernels)


def _describe_program(source: str, tree: ast.Module) -> tuple[Part, tuple[Part, ...]]:
    texts = list(_list_texts(tree))
    kernels = [part for text in texts for part in _list_cpp_kernels(text)]
    names = _Names.of(tree, texts)
    kernels += (_describe([node], names) for node in _find_python_kernels(source, tree))
    body = [one for one in drop_docstring(tree.body) if not isinstance(one, ast.Import | ast.ImportFrom)]
    return _describe(body, names), tuple(kernels)


def find_own_values(source: str, given: Sequence[str]) -> tuple[str, ...]:
    fingerprint = take_fingerprint(source)
    known = {value for text in given for value in take_fingerprint(text).values}
    if fingerprint.program is not None and _measure_own(source, given) < MIN_PROGRAM:
        known.add(fingerprint.program.value)
    return tuple(value for value in fingerprint.values if value not in known)


def list_fenced(prompt: str) -> list[str]:
    return _FENCED.findall(prompt)


def _measure_own(source: str, given: Sequence[str]) -> int:
    known = {_dump_unit(unit) for text in given for unit in _list_units(try_parse(text))}
    return sum(_measure(unit) for unit in _list_units(try_parse(source)) if _dump_unit(unit) not in known)


def _list_units(tree: ast.Module | None) -> Iterator[ast.stmt]:
    for statement in drop_docstring(tree.body) if tree is not None else ():
        if isinstance(statement, ast.ClassDef):
            yield from drop_docstring(statement.body)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement


def _dump_unit(unit: ast.stmt) -> str:
    return re.sub(r"\bModelNew\b", "Model", ast.dump(unit))


def _measure(node: ast.AST) -> int:
    nodes = sum(1 for part in ast.walk(node) if not isinstance(part, ast.expr_context))
    return nodes + sum(len(_list_code(text)) for text in _list_texts(node))


def _list_texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _holds_code(node.value):
            yield node.value


def _holds_code(text: str) -> bool:
    return "\n" in text or ";" in text


def _describe(nodes: Sequence[ast.AST], names: "_Names") -> Part:
    renamer = _Renamer(names)
    text = "\n".join(ast.dump(renamer.visit(deepcopy(node))) for node in nodes)
    return Part(value=_digest(text), size=sum(map(_measure, nodes)))


def _find_python_kernels(source: str, tree: ast.Module) -> Iterator[ast.FunctionDef]:
    kernels = {name for rules in LANGUAGES.values() for name in rules.list_kernels(source)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            yield node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    bound: frozenset[str]
    attributes: frozenset[str]

    @classmethod
    def of(cls, tree: ast.Module, texts: Iterable[str]) -> Self:
        bound, attributes = set[str](), set[str]()
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    bound.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    bound.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    attributes.add(name)
        attributes.update(name for text in texts for name in _find_declared(_list_code(text)))
        return cls(bound=frozenset(bound), attributes=frozenset(attributes | bound))


class _Renamer(Normaliser):
    def __init__(self, names: _Names) -> None:
        self._names = names
        self._numbers: dict[str, str] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call) and self._is_own(node.func):
            for keyword in node.keywords:
                keyword.arg = keyword.arg and self._number(keyword.arg)
        node = super().visit(node)
        match node:
            case ast.Name(id=name) if name in self._names.bound:
                node.id = self._number(name)
            case ast.arg(arg=name):
                node.arg, node.annotation = self._number(name), None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                node.name, node.returns = self._number(name), None
            case ast.ClassDef(name=name):
                node.name = self._number(name)
            case ast.keyword(arg=name) if name in _FREE_KEYWORDS:
                node.value = ast.Constant(value="")
            case ast.Attribute(attr=name) if name in self._names.attributes:
                node.attr = "_"
            case ast.Constant(value=str(text)) if text in self._names.attributes:
                node.value = "_"
        return node

    def _is_own(self, function: ast.expr) -> bool:
        """Recognise `f(...)`, and Triton's `kernel[grid](...)`."""
        called = function.value if isinstance(function, ast.Subscript) else function
        return isinstance(called, ast.Name) and called.id in self._names.bound

    def holds_code(self, text: str) -> bool:
        return _holds_code(text)

    def squeeze(self, code: str) -> str:
        tokens = _list_code(code)
        return _rename(tokens, _find_declared(tokens))

    def _number(self, name: str) -> str:
        return self._numbers.setdefault(name, f"_{len(self._numbers)}")


def _list_cpp_kernels(text: str) -> Iterator[Part]:
    """Yield functions marked `__global__`; all functions if none is."""
    tokens = _list_code(text)
    functions = list(_split_functions(tokens))
    on_gpu = [one for one in functions if any(token.text == "__global__" for token in one)]
    declared = _find_declared(tokens)
    for function in on_gpu or functions:
        yield Part(value=_digest(_rename(function, declared)), size=len(function))


def _split_functions(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Split from the end of the previous declaration to the closing brace of the body, in one pass."""
    start, within, braces = 0, 0, list[bool]()  # of each open brace: whether it is that of a body
    for at, token in enumerate(tokens):
        if token.directive:
            start = start if within else at + 1
        elif token.text == "{":
            braces.append(tokens[at - 1].text in _BEFORE_BODY)
            within += braces[-1]
        elif token.text == "}" and braces:
            was_body = braces.pop()
            within -= was_body
            if was_body and not within:
                yield tokens[start : at + 1]
        if token.text in ("{", "}", ";") and not within:
            start = at + 1


@lru_cache(maxsize=64)
def _list_code(text: str) -> Sequence[Token]:
    return tuple(token for token in tokenize(text) if not token.is_blank)


def _find_declared(tokens: Sequence[Token]) -> frozenset[str]:
    """Recognise names after a type by their position: a parser would need the headers."""
    found = set()
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind != "word" or token.text in _RESERVED:
            continue
        after_word = before.kind == "word" and before.text not in _NO_TYPES
        after_mark = before.text in ("*", "&", ">") and after.text in _AFTER_NAME
        if (after_word and (after.text in (*_AFTER_NAME, "(", ">"))) or after_mark or before.text == "define":
            found.add(token.text)
    return frozenset(found)


def _rename(tokens: Sequence[Token], declared: frozenset[str]) -> str:
    numbers: dict[str, str] = {}
    return " ".join(
        numbers.setdefault(token.text, f"_{len(numbers)}") if token.text in declared else token.text for token in tokens
    )


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
