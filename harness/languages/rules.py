"""Facts about a language that kernels are written in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from harness.domain import BuildRequest, Language
from harness.shipped import name_install


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRules:
    """`devices`: `auto` takes the first kind that this machine has. `refuses`: the reason why an extension is not
    allowed, or None. `writes_kernels` False: no kernel is required, and kernels of torch's compiler count as the
    candidate's.

    For kernels that are Python functions: `list_kernels`: their names in a program (may end with `*`); `modules`:
    Python modules of the language; `find_missing`: what must be installed for the emulated device or a GPU;
    `emulation_cost`: of an operation on the emulated device, relative to compiled code; `is_emulated` False: the
    emulated device only compiles.
    """

    name: Language
    devices: tuple[str, ...]
    detects: Callable[[str], bool]
    refuses: Callable[[BuildRequest], str | None] = lambda request: None
    writes_kernels: bool = True
    list_kernels: Callable[[str], tuple[str, ...]] = lambda source: ()
    modules: frozenset[str] = frozenset()
    emulation_cost: int = 1
    is_emulated: bool = True
    find_missing: Callable[[bool], str | None] = lambda emulated: None

    @property
    def uses_gpu(self) -> bool:
        """True if prompts describe a GPU and the sanitizer can check the kernels."""
        return "cuda" in self.devices


def explain_missing(module: str, name: str, language: Language) -> str | None:
    """None if the module is installed and can be imported."""
    if not find_spec(module):
        return f"{name} is not installed: {name_install(language)}"
    error = _try_import(module)
    return error and f"{name} cannot be imported, perhaps since it needs another version of torch: {error}"


@cache
def _try_import(module: str) -> str | None:
    """In a new process, which takes seconds."""
    ran = subprocess.run([sys.executable, "-P", "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
