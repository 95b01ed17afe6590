"""The files that a module depends on by imports, read from the sources: nothing is imported.

An import may stand in a function, or in the program text of a process that a module starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

# Each begins with a fixed text, which is fast.
_FROM = re.compile(r"from (harness[\w.]*) import (\([^)]*\)|[^\n;\"]*)")
_IMPORT = re.compile(r"import (harness[\w.]*)")
_RUN = re.compile(r"\"-m\", \"(harness[\w.]*)\"")


def find_closure(package: Path, module: str) -> set[Path]:
    """Of `module` in the folder `package`, itself included, with the other files in its packages, such as headers."""
    files = [Path(folder, name) for folder, _, names in os.walk(package) for name in names]
    modules = {_name_module(path.relative_to(package)): path for path in files if path.suffix == ".py"}
    found, waiting = set[str](), {module}
    while waiting:
        new = {name for one in waiting for name in accumulate(one.split("."), "{}.{}".format) if name in modules}
        waiting = {name for one in new - found for name in _list_imports(modules[one].read_text(encoding="utf-8"))}
        found |= new
    closure = {modules[name] for name in found}
    packages = {path.relative_to(package).parts[0] for path in closure}
    data = (path for path in files if path.suffix not in (".py", ".pyc"))
    return closure | {path for path in data if path.relative_to(package).parts[0] in packages}


def _name_module(path: Path) -> str:
    return ".".join(("harness", *path.parts)).removesuffix(".py").removesuffix(".__init__")


def _list_imports(text: str) -> Iterator[str]:
    """What is imported from a package may be a module or a name."""
    for found in _FROM.finditer(text):
        yield found[1]
        yield from (f"{found[1]}.{name}" for name in re.findall(r"\w+", found[2]))
    yield from (*_IMPORT.findall(text), *_RUN.findall(text))
