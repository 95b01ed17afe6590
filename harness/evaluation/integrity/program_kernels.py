"""Tells whether the text of a program gives recorded machine code, by compiling it again."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from harness.sandbox.gpu.recorded_code import RecordedFunction
from harness.syntax import try_parse

# Takes descriptions that a worker gave, and returns the code of each, which is empty if it cannot be compiled.
CompileAgain = Callable[[Sequence[str]], Sequence[bytes]]
# "same": the program's text gives this code. "said": a worker says so. "other": a worker says that it compiled another
# text, and the program has a kernel of this name.
Agreement = Literal["same", "said", "other"]
FEWEST_CHARACTERS = 100  # of PTX


@dataclass(frozen=True)
class ProgramKernels:
    """`built` are names of kernels in its extensions."""

    source: str
    compile_again: CompileAgain
    built: tuple[str, ...] = ()

    def compare(self, functions: Sequence[RecordedFunction]) -> dict[bytes, Agreement]:
        """By image, where a worker says how it compiled it."""
        found: dict[bytes, Agreement] = {one.image: "same" for one in functions if self._has_assembly(one.image)}
        said = {one.image: one for one in functions if one.compilation and one.image not in found}
        own = {image: one.compilation for image, one in said.items() if self._has_texts(one.compilation)}
        codes = self.compile_again(list(own.values())) if own else ()
        for (image, _), code in zip(own.items(), codes, strict=True):
            found[image] = "same" if code == image else "said"
        names = self._decorated.union(self.built)
        return found | {image: "other" for image, one in said.items() if image not in own and one.name in names}

    def _has_assembly(self, image: bytes) -> bool:
        """Return whether the program has the PTX as text."""
        text = image.rstrip(b"\0").strip()
        return len(text) >= FEWEST_CHARACTERS and any(text in one.encode() for one in self._strings)

    def _has_texts(self, compilation: str) -> bool:
        """Return whether the kernel, and the functions that it calls, stand in the program."""
        try:
            texts = [facts["text"] for facts in json.loads(compilation)["functions"]]
            trees = [try_parse(textwrap.dedent(text)) for text in texts]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return False
        return bool(trees) and all(tree and len(tree.body) == 1 and self._defines(tree.body[0]) for tree in trees)

    def _defines(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.FunctionDef) and bool(one := _outline(statement)) and one in self._definitions

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        tree = try_parse(self.source)
        return list(ast.walk(tree)) if tree else []

    @cached_property
    def _strings(self) -> list[str]:
        return [one.value for one in self._nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]

    @cached_property
    def _decorated(self) -> set[str]:
        return {one.name for one in self._nodes if isinstance(one, ast.FunctionDef) and one.decorator_list}

    @cached_property
    def _definitions(self) -> set[str]:
        """Syntax trees of all functions of the program, also in its strings."""
        trees = [try_parse(textwrap.dedent(one)) for one in self._strings if "def " in one]
        nodes = [*self._nodes, *(node for tree in trees if tree for node in ast.walk(tree))]
        return {_outline(one) for one in nodes if isinstance(one, ast.FunctionDef)}


def _outline(definition: ast.FunctionDef) -> str:
    """Without its decorators."""
    fields: dict[str, Any] = {name: getattr(definition, name, None) for name in definition._fields}
    with suppress(RecursionError):
        return ast.dump(ast.FunctionDef(**(fields | {"decorator_list": []})))
    return ""
