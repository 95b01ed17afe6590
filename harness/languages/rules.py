"""Facts about a language that kernels are written in."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from harness.domain import BuildRequest, Language
from harness.shipped import name_install
from harness.syntax import read_dotted_name, try_parse


def list_decorated(source: str, decorators: Collection[str]) -> tuple[str, ...]:
    """Return functions with one of these decorators, even with arguments, or passed to one."""
    tree, found = try_parse(source), dict[str, None]()
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_is_one_of(one, decorators) for one in node.decorator_list):
            found[node.name] = None
        elif isinstance(node, ast.Call) and _is_one_of(node.func, decorators):
            found |= {argument.id: None for argument in node.args if isinstance(argument, ast.Name)}
    return tuple(found)


def _is_one_of(node: ast.expr, decorators: Collection[str]) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return read_dotted_name(called) in decorators


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRules:
    """Prompts ask for `task`. `auto` takes the first of the `devices` that this machine has. `detects` is false for
    every program if the language must be chosen. `refuses` returns the reason why an extension is not allowed, or None.
    `harness doctor` examines `parts`, and `gpu_parts` on a GPU, and evaluates `trial`, which adds 1 to a vector.
    Without `writes_kernels` no kernel is required, and kernels of torch's compiler are the candidate's.

    For a compiler in the worker, `word` occurs in every program that uses it. `preloads` are modules that open no GPU
    and start no threads when imported, and `module:function` to call in them; `emulation_preloads` those of the
    emulated device.

    For kernels that are Python functions, `list_kernels` returns their names in a program (which may end with `*`), and
    `find_missing` the packages to install. `emulation_cost` is relative to compiled code. If it `compiles_only`, the
    emulated device does not run it. If it `compiles_ahead`, a worker without a GPU can compile for a GPU's worker.
    """

    name: Language
    title: str
    task: str
    devices: tuple[str, ...]
    detects: Callable[[str], bool]
    is_distinctive: bool = True  # a program that it detects is not of another language
    refuses: Callable[[BuildRequest], str | None] = lambda request: None
    parts: tuple[str, ...] = ()
    gpu_parts: tuple[str, ...] = ()
    writes_kernels: bool = True
    word: str = ""
    preloads: tuple[str, ...] = ()
    emulation_preloads: tuple[str, ...] = ()
    is_slow_to_start: bool = False
    list_kernels: Callable[[str], tuple[str, ...]] = lambda source: ()
    modules: frozenset[str] = frozenset()
    package: str = ""
    translates_to: LanguageRules | None = None
    emulation_cost: int = 1
    compiles_only: bool = False
    compiles_ahead: bool = False
    find_missing: Callable[[bool], str | None] = lambda emulated: None
    trial: str = ""

    @property
    def uses_gpu(self) -> bool:
        """True if prompts describe a GPU and the sanitizer can check the kernels."""
        return "cuda" in self.devices

    @property
    def chain(self) -> tuple[LanguageRules, ...]:
        return (self, *(self.translates_to.chain if self.translates_to else ()))

    @property
    def version(self) -> str | None:
        from importlib.metadata import PackageNotFoundError, version  # takes 20 ms

        try:
            return version(self.package) if self.package else None
        except PackageNotFoundError:
            return None


def explain_missing(module: str, name: str, language: Language) -> str | None:
    if not find_spec(module):
        return f"{name} is not installed: {name_install(language)}"
    error = _try_import(module)
    return error and f"{name} cannot be imported, perhaps since it needs another version of torch: {error}"


@cache
def _try_import(module: str) -> str | None:
    """Uses a new process, which takes seconds."""
    ran = subprocess.run([sys.executable, "-P", "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
