"""Joins a block with the blocks that define its unbound names: imports, Triton kernels, wrappers, and C++ or CUDA
blocks, which become string literals.

A block with an entry point (an earlier version) supplies names only to a block without imports; rejected blocks and
tests supply none.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.generate.extraction.blocks import Answer, Block
from harness.generate.extraction.programs import ENTRY_POINT, compiles, is_program, parse, quote_text, walk_top_level

_KERNEL_CODE = re.compile(r"#include|__global__|\b(?:torch|at)::Tensor\b|PYBIND11_MODULE")
_NAMES_SOURCE = re.compile(r"source|src|code|cuda|cpp|kernel|header|decl", re.IGNORECASE)
_NAMES_DECLARATION = re.compile(r"cpp|decl|header|binding", re.IGNORECASE)
_MOST_SEARCHED = 200  # the nearest blocks
_MOST_KERNELS = 20
_ON_OWN_LINE = "\n"
_BUILTIN_NAMES = {*dir(builtins), "__file__", "__name__", "__doc__", "__spec__"}


@dataclass(frozen=True, slots=True)
class Names:
    bound: frozenset[str]
    exported: frozenset[str]
    missing: frozenset[str]
    imports: bool

    @classmethod
    def read(cls, tree: ast.Module) -> Names:
        bound = set(_list_bound(tree))
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _is_read(node)}
        statements = [*walk_top_level(tree.body)]
        if "*" in bound:  # `from ... import *` may bind anything
            loaded = set()
        return cls(
            bound=frozenset(bound),
            exported=frozenset(name for node in statements for name in _list_exported(node)),
            missing=frozenset(loaded - bound - _BUILTIN_NAMES),
            imports=any(isinstance(node, ast.Import | ast.ImportFrom) for node in statements),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    block: Block
    names: Names


def join_blocks(block: Block, answer: Answer, is_rejected: Callable[[Block], bool]) -> tuple[Block, tuple[Block, ...]]:
    """Return (joined block, added blocks); (`block`, ()) if no name is missing or the result does not compile."""
    others = [one for one in (*answer.closed, *answer.others) if one.end <= block.start or one.start >= block.end]
    others = sorted(others, key=lambda one: abs(one.start - block.start))[:_MOST_SEARCHED]
    others.sort(key=lambda one: one.start)
    tree = parse(block.source) if others else None
    main = None if tree is None else _Part(block, Names.read(tree))
    if main is None or not main.names.missing:
        return block, ()
    helpers, missing = _find_suppliers(main, [one for one in others if not is_rejected(one)])
    kernels = [one for one in others if looks_like_kernel(one.source) and not is_rejected(one)]
    sources = _assign_kernels(missing, answer, [one for one in kernels if one.start < block.start] or kernels)
    source = "\n\n".join(
        [
            *(f"{name} = {quote_text(_ON_OWN_LINE + one.source)}\n" for name, one in sources.items()),
            *_order_sources(main, helpers),
        ]
    )
    used = tuple(sorted([*sources.values(), *(helper.block for helper in helpers)], key=lambda one: one.start))
    if not used or not is_program(source) or not compiles(source):
        return block, ()
    return replace(block, source=source, rule="joined"), used


def _find_suppliers(main: _Part, others: Sequence[Block]) -> tuple[list[_Part], frozenset[str]]:
    parts = sorted(_read_suppliers(main, others), key=lambda part: _distance(part, main), reverse=True)
    suppliers = {name: part for part in parts for name in part.names.exported}  # the nearest comes last
    chosen: list[_Part] = []
    waiting, bound, unknown = sorted(main.names.missing), set(main.names.bound), set()
    while waiting:
        name = waiting.pop()
        if name in bound:
            continue
        if (supplier := suppliers.get(name)) is None:
            unknown.add(name)
            continue
        chosen.append(supplier)
        bound |= supplier.names.exported
        waiting += sorted(supplier.names.missing)
    return chosen, frozenset(unknown)


def _read_suppliers(main: _Part, others: Sequence[Block]) -> Iterator[_Part]:
    for one in others:
        tree = parse(one.source)
        names = None if tree is None else Names.read(tree)
        if names is None or ENTRY_POINT in names.missing:
            continue
        is_earlier_version = ENTRY_POINT in names.exported
        if not is_earlier_version or (one.start < main.block.start and not main.names.imports):
            yield _Part(one, names)


def _distance(part: _Part, main: _Part) -> tuple[bool, bool, int]:
    is_after = part.block.start > main.block.start
    return ENTRY_POINT in part.names.exported, is_after, abs(part.block.start - main.block.start)


def _order_sources(main: _Part, helpers: Sequence[_Part]) -> Iterator[str]:
    """Move blocks after the main one before it unless they need its names."""
    placed = sorted(helpers, key=lambda part: part.block.start)
    later = [part for part in placed if part.names.missing & main.names.bound]
    yield from (part.block.source for part in placed if part not in later or part.block.start < main.block.start)
    yield main.block.source
    yield from (part.block.source for part in later if part.block.start > main.block.start)


def looks_like_kernel(source: str) -> bool:
    return _KERNEL_CODE.search(source) is not None and parse(source) is None


def _assign_kernels(missing: frozenset[str], answer: Answer, kernels: Sequence[Block]) -> dict[str, Block]:
    wanted = sorted(name for name in missing if _NAMES_SOURCE.search(name))[:_MOST_KERNELS]
    chosen: dict[str, Block] = {}
    for block in kernels:
        said = set(re.findall(r"\w+", answer.before(block)))
        chosen |= {name: block for name in wanted if name in said and block not in chosen.values()}
    for name in wanted:
        left = [block for block in kernels if block not in chosen.values()]
        declares = _NAMES_DECLARATION.search(name) is not None
        fitting = [block for block in left if ("__global__" not in block.source) == declares]
        if name not in chosen and (fitting or len(wanted) == len(left) == 1):
            chosen[name] = (fitting or left)[-1]
    return chosen


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _list_bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from _list_exported(node)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def _list_exported(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (inner for target in targets for inner in ast.walk(target))
            yield from (inner.id for inner in names if isinstance(inner, ast.Name) and not _is_read(inner))
