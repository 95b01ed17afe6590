"""Joins a block with the blocks that define its unbound names: imports, Triton kernels, wrappers, and C++ or CUDA
blocks, which become string literals. A block with an entry point (an earlier version) supplies names only to a block
without imports; rejected blocks and tests supply none.

Also joins a program with the files that the answer names and the program uses: Python modules replace their import;
other files (C++, CUDA, headers) are written beside the program when it is imported.
"""

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from harness.generate.extraction.blocks import Answer, Block
from harness.generate.extraction.programs import ENTRY_POINT, compiles, is_program, quote_text, walk_top_level
from harness.generate.extraction.remarks import FILE_NAME, find_file_name
from harness.problems.discovery import defined_names
from harness.syntax import try_parse

_Import = ast.Import | ast.ImportFrom
_MOST_FILES = 50
_WRITER = """\
import pathlib as _pathlib


def _write_file(name, text):
    path = _pathlib.Path(__file__).parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


"""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """`path` is the answer's name for it, without leading dots and slashes."""

    path: str
    block: Block

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".") if self.path.endswith(".py") else ""


def list_files(program: Block, answer: Answer, is_rejected: Callable[[Block], bool]) -> tuple[NamedFile, ...]:
    """If several blocks have one name, return the last."""
    files: dict[str, NamedFile] = {}
    for block in (*answer.closed, *answer.others):
        apart = block.end <= program.start or block.start >= program.end or block.source != program.source
        # A name within the line above a block counts only if the program uses it.
        before = answer.before(block)
        name = find_file_name(before, block.info, block.source)
        if not name:
            above = [found[0] for found in FILE_NAME.finditer(before.rstrip().rsplit("\n", 1)[-1])]
            name = above[0] if len(above) == 1 and _is_used(above[0], program.source) else ""
        path = _clean(name)
        if path and apart and not is_program(block.source) and not is_rejected(block):
            files[path] = NamedFile(path, block)
    return tuple(files.values())[:_MOST_FILES]


def join_files(program: Block, files: tuple[NamedFile, ...]) -> tuple[Block, tuple[Block, ...]]:
    """Return (joined program, added blocks); (`program`, ()) if it uses no file or the result does not compile."""
    source, modules = _replace_imports(program.source, [one for one in files if one.module])
    written = _list_used(source, [one for one in files if not one.module])
    if written:
        source = _insert_writer(source, written)
    if source == program.source or not is_program(source) or not compiles(source):
        return program, ()
    used = {one.path: one.block for one in (*modules, *written)}
    return replace(program, source=source, rule="joined"), tuple(used.values())


def _clean(path: str) -> str:
    return "" if ".." in path.split("/") else re.sub(r"^[./]+", "", path)


def _is_used(path: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(path.rsplit('/', 1)[-1])}(?![\w-])", text) is not None


def _list_used(source: str, files: list[NamedFile]) -> list[NamedFile]:
    used: list[NamedFile] = []
    texts = [source]
    while texts:
        text = texts.pop()
        found = [one for one in files if one not in used and any(_is_used(part, text) for part in one.path.split("/"))]
        used += found
        texts += [one.block.source for one in found]
    return used


def _insert_writer(source: str, files: list[NamedFile]) -> str:
    calls = []
    for one in files:
        named = re.findall(rf"(?<![\w-])[\w./-]*(?<![\w-]){re.escape(one.name)}(?![\w-])", source)
        paths = dict.fromkeys(filter(None, (one.path, *map(_clean, named))))
        calls += [f"_write_file({path!r}, {quote_text(one.block.source)})\n" for path in paths]
    lines = source.splitlines(keepends=True)
    line = _find_first_line(source)
    return "".join([*lines[:line], _WRITER, *calls, "\n\n", *lines[line:]])


def _find_first_line(source: str) -> int:
    """Return the 0-based line of the first statement after a docstring and imports from `__future__`."""
    tree = try_parse(source)
    for number, node in enumerate(tree.body if tree else ()):
        is_docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            return min([node.lineno, *(one.lineno for one in decorators)]) - 1
    return 0


def _replace_imports(source: str, modules: list[NamedFile]) -> tuple[str, list[NamedFile]]:
    used: list[NamedFile] = []
    for _ in range(_MOST_FILES):
        tree = try_parse(source)
        found = next(_list_imports(tree, modules), None) if tree else None
        if found is None:
            break
        node, module = found
        lines = source.splitlines(keepends=True)
        text = [] if module in used else [module.block.source]
        source = "".join([*lines[: node.lineno - 1], *text, *_bind_names(node, module), *lines[node.end_lineno :]])
        used = [*used, module] if module not in used else used
    return source, used


def _list_imports(tree: ast.Module, modules: list[NamedFile]) -> Iterator[tuple[_Import, NamedFile]]:
    for node in tree.body:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import) and len(node.names) == 1:
            names = [node.names[0].name]
        for one in modules:
            if isinstance(node, ast.Import | ast.ImportFrom) and any(_is_module(name, one.module) for name in names):
                yield node, one


def _is_module(name: str, module: str) -> bool:
    return name == module or module.endswith(f".{name}") or name.endswith(f".{module}")


def _bind_names(node: _Import, module: NamedFile) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from (f"{one.asname} = {one.name}\n" for one in node.names if one.asname and one.asname != one.name)
        return
    [alias] = node.names
    yield f"{alias.asname or alias.name} = __import__('sys').modules[__name__]\n"


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
    def read(cls, tree: ast.Module) -> Self:
        bound = set(_list_bound(tree))
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        statements = [*walk_top_level(tree.body)]
        if "*" in bound:  # `from ... import *` may bind anything
            loaded = set()
        return cls(
            bound=frozenset(bound),
            exported=frozenset(name for node in statements for name in defined_names(node)),
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
    tree = try_parse(block.source) if others else None
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
        tree = try_parse(one.source)
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
    return _KERNEL_CODE.search(source) is not None and try_parse(source) is None


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


def _list_bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from defined_names(node)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
