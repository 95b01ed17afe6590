"""What harness must know about a language that kernels are written in."""

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
    """`devices`: the kinds of device that it runs on; `auto` takes the first that this machine has. `detects` tells
    whether a program is written in it. `refuses` gives the reason why an extension is not allowed in it, or None.
    `writes_kernels`: if not, none is required, and kernels that torch's compiler generates count as the candidate's.

    For a language whose kernels are Python functions with a compiler of their own: `list_kernels` gives their names in
    a program, `modules` are Python's modules of the language, which the emulated device supports, and `find_missing`
    says what must be installed, if anything, for the emulated device or a GPU. `emulation_cost`: of an operation on
    the emulated device, where 1 is that of compiled code; sizes are reduced accordingly. `is_emulated`: if not, the
    emulated device only compiles the kernels. A kernel's name may end with `*`.
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
        """Whether prompts describe a GPU and the sanitizer can check the kernels."""
        return "cuda" in self.devices


def explain_missing(module: str, name: str, language: Language) -> str | None:
    """None if the module is installed and can be imported."""
    if not find_spec(module):
        return f"{name} is not installed: {name_install(language)}"
    error = _try_import(module)
    return error and f"{name} cannot be imported, perhaps since it needs another version of torch: {error}"


@cache
def _try_import(module: str) -> str | None:
    """The error of an import in a new process, which takes seconds."""
    ran = subprocess.run([sys.executable, "-P", "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
