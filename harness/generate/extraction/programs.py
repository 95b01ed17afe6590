"""Recognises programs with `ModelNew` at top level, as a class or alias. A class body of only `...` omits code."""

import ast
import re
import warnings
from collections.abc import Iterator

from harness.syntax import is_docstring, try_parse

ENTRY_POINT = "ModelNew"
_MAY_DEFINE = re.compile(rf"\bclass[\s\\]+{ENTRY_POINT}\b|\b{ENTRY_POINT}\s*[=:]")
_SAYS_ENTRY_POINT = re.compile(rf"^[ \t>]*class\s+{ENTRY_POINT}\b", re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)")


def may_define_entry_point(source: str) -> bool:
    return _MAY_DEFINE.search(source) is not None


def is_program(source: str) -> bool:
    tree = try_parse(source) if may_define_entry_point(source) else None
    return tree is not None and _defines_entry_point(tree)


def is_broken_program(source: str) -> bool:
    return _SAYS_ENTRY_POINT.search(source) is not None and try_parse(source) is None


def compiles(source: str) -> bool:
    """Unlike `try_parse`, reject misplaced statements, such as a second `from __future__`."""
    with warnings.catch_warnings(action="ignore"):
        try:
            compile(source, "<joined>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return True


def quote_text(text: str) -> str:
    marks = next((marks for marks in ('"""', "'''") if marks not in text), None)
    return f"r{marks}{text}{marks}" if marks and text.endswith("\n") else repr(text)


def repair(source: str) -> str:
    """Remove interpreter prompts (with their output) and non-breaking spaces."""
    source = source.replace("\xa0", " ")
    lines = source.splitlines(keepends=True)
    if not any(line.lstrip().startswith(">>>") for line in lines[:1]):
        return source
    return "".join(_PROMPT.sub("", line, count=1) for line in lines if _PROMPT.match(line.rstrip("\n")))


def _defines_entry_point(tree: ast.Module) -> bool:
    statements = [*walk_top_level(tree.body)]
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    if ENTRY_POINT in classes:
        return not _is_ellipsis(classes[ENTRY_POINT], classes)
    return any(_aliases_entry_point(node, classes) for node in statements)


def walk_top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements that run on import, including those in `if`, `try` and `with`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for inner in ("body", "orelse", "finalbody"):
                yield from walk_top_level(getattr(node, inner, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from walk_top_level(handler.body)


def _is_ellipsis(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Return True for `class ModelNew(nn.Module): ...`, but not for an empty subclass of a class in the program."""
    inherits = any(isinstance(base, ast.Name) and base.id in classes for base in node.bases)
    return not inherits and all(is_docstring(one) or isinstance(one, ast.Pass) for one in node.body)


def _aliases_entry_point(node: ast.stmt, classes: dict[str, ast.ClassDef]) -> bool:
    match node:
        case ast.Assign(targets=[*targets], value=ast.Name(id=name)):
            named = [target.id for target in targets if isinstance(target, ast.Name)]
            return name in classes and ENTRY_POINT in named
        case ast.AnnAssign(target=ast.Name(id="ModelNew"), value=ast.Name(id=name)):
            return name in classes
    return False
