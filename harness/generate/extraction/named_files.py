"""Joins a program with the files that the answer names and the program uses.

Imported Python modules replace the import; other files (C++, CUDA, headers) are written beside the program when it is
imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from harness.generate.extraction.blocks import Answer, Block
from harness.generate.extraction.programs import compiles, is_program, parse, quote_text
from harness.generate.extraction.remarks import FILE_NAME, find_file_name

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
        path = _find_path(answer.before(block), block, program.source)
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


def _find_path(before: str, block: Block, program: str) -> str:
    """A name within the line above a block counts only if the program uses it."""
    name = find_file_name(before, block.info, block.source)
    if not name:
        above = [found[0] for found in FILE_NAME.finditer(before.rstrip().rsplit("\n", 1)[-1])]
        name = above[0] if len(above) == 1 and _is_used(above[0], program) else ""
    return _clean(name)


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
    tree = parse(source)
    for number, node in enumerate(tree.body if tree else ()):
        is_docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            return min([node.lineno, *(one.lineno for one in decorators)]) - 1
    return 0


def _replace_imports(source: str, modules: list[NamedFile]) -> tuple[str, list[NamedFile]]:
    used: list[NamedFile] = []
    for _ in range(_MOST_FILES):
        tree = parse(source)
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
