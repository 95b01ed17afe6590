"""Merges Python modules that import each other into the source of one module, renames names in it, and adds a class."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from harness.formats.imported import NotPythonError, UnsupportedError
from harness.problems.discovery import defined_names
from harness.syntax import explain_syntax_error, find_first_line, is_docstring, parse_python

_FUTURE = "__future__"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def merge_modules(entry: str, modules: Mapping[str, str], wanted: Collection[str] | None = None) -> str:
    """Put the definitions that `entry` imports from other `modules` (dotted names) in place of its imports, reduced to
    what the names that are `wanted` need. Raises UnsupportedError for other forms and clashes, and NotPythonError.
    """
    merged = _Merged(modules)
    merged.add(entry, wanted)
    return join_parts([*merged.future, *merged.parts])


def join_parts(parts: Iterable[str]) -> str:
    """Join sources with at most two blank lines."""
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(part for part in parts if part)).strip("\n") + "\n"


def write_model(summary: str, parameters: str, result: str) -> str:
    """Return the class `Model`, whose `forward` takes `parameters` and returns the expression `result`."""
    text = summary.replace("\\", "/").replace('"', "'")
    return (
        f'\nclass Model(torch.nn.Module):\n    """{text}"""\n\n'
        f"    def forward(self, {parameters}):\n        return {result}\n\n"
    )


@dataclass
class _Merged:
    modules: Mapping[str, str]
    future: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)  # the text that binds a name

    def add(self, name: str, wanted: Collection[str] | None) -> None:
        source = self.modules[name]
        statements, needed = _choose(parse_module(source, name).body, wanted)
        for statement in statements:
            if isinstance(statement, ast.ImportFrom) and statement.module == _FUTURE:
                self.future += [line for line in [ast.unparse(statement)] if line not in self.future]
            elif isinstance(statement, ast.ImportFrom) and (found := self._find(statement, name)):
                self._add_import(statement, found, needed)
            else:
                self._require_plain(statement, name)
                self._add_statement(statement, source)

    def _find(self, statement: ast.ImportFrom, within: str) -> str:
        parts = within.split(".")[: -statement.level] if statement.level else []
        named = ".".join([*parts, *(statement.module or "").split(".")]).strip(".")
        return named if named in self.modules else ""

    def _add_import(self, statement: ast.ImportFrom, found: str, needed: Collection[str] | None) -> None:
        used = [alias for alias in statement.names if needed is None or (alias.asname or alias.name) in needed]
        names = [alias.name for alias in used]
        self.add(found, None if "*" in names else names)
        for alias in used:
            if alias.asname and alias.asname != alias.name:
                self.parts.append(f"{alias.asname} = {alias.name}")

    def _require_plain(self, statement: ast.stmt, within: str) -> None:
        for node in ast.walk(statement):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and (node.level or self._find(node, within)):
                named = [ast.unparse(node)]
            for one in named:
                if one in self.modules or one.startswith("from "):
                    raise UnsupportedError(f"{within} imports {one!r} in a form that cannot be merged into one file")

    def _add_statement(self, statement: ast.stmt, source: str) -> None:
        lines = source.split("\n")
        first = find_first_line(statement, lines)
        space = "\n\n" if isinstance(statement, _DEFINITIONS) else ""
        text = space + "\n".join(lines[first : statement.end_lineno]) + space.removesuffix("\n")
        names = _list_bound(statement)
        if text in self.parts:
            return
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            clash = next((one for one in sorted(names) if one in self.taken and (self.taken[one] not in source)), None)
            if clash:
                raise UnsupportedError(f"two of its modules define {clash}")
        self.taken |= dict.fromkeys(names, text)
        self.parts.append(text)


def parse_module(source: str, name: str) -> ast.Module:
    """Raises NotPythonError."""
    try:
        return parse_python(source, name)
    except (SyntaxError, ValueError) as error:
        raise NotPythonError(explain_syntax_error(error, name)) from error


def _choose(body: list[ast.stmt], wanted: Collection[str] | None) -> tuple[list[ast.stmt], set[str] | None]:
    """Leave out definitions that no wanted name needs. Other statements may have effects. Return the names, too."""
    if wanted is None:
        return body, None
    needed, size = set(wanted), -1
    while len(needed) > size:
        size = len(needed)
        for statement in body:
            names = _list_bound(statement)
            if not names or needed & names:
                needed |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    kept = [one for one in body if not _list_bound(one) or needed & _list_bound(one)]
    return [one for one in kept if not is_docstring(one)], needed


def _list_bound(statement: ast.stmt) -> frozenset[str]:
    return frozenset() if getattr(statement, "module", "") == _FUTURE else defined_names(statement)


def rename_names(source: str, renamed: Mapping[str, str]) -> str:
    """Rename every occurrence except attributes."""
    if not renamed:
        return source
    lines = source.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    pairs = pairwise(tokens)
    found = [token for before, token in pairs if token.string in renamed and before.string != "."]
    for token in reversed(found):
        row, column = token.start
        line = lines[row - 1]
        lines[row - 1] = line[:column] + renamed[token.string] + line[token.end[1] :]
    return "\n".join(lines)


def rename_clashes(source: str, taken: Collection[str], where: str) -> tuple[str, dict[str, str]]:
    """Rename what a module defines under `taken` names. Return the source and the new names."""
    body = [one for one in parse_module(source, where).body if not isinstance(one, ast.Import | ast.ImportFrom)]
    clashes = {name for one in body for name in _list_bound(one) if name in taken}
    renamed = {name: f"given_{name}" for name in clashes}
    return rename_names(source, renamed), renamed
