"""CuTe DSL kernels: Python functions that NVIDIA's cutlass package compiles at their first launch."""

from __future__ import annotations

from importlib.util import find_spec

from harness.domain import EMULATED
from harness.languages.decorated import list_decorated
from harness.languages.rules import LanguageRules

_DECORATORS = ("cute.kernel", "cutlass.cute.kernel")


def _list_kernels(source: str) -> tuple[str, ...]:
    """By the beginning of the names that the compiler gives them; the types of the arguments follow."""
    return tuple(f"kernel_cutlass_{name}_*" for name in list_decorated(source, _DECORATORS))


def _detects(source: str) -> bool:
    return "cutlass" in source and bool(_list_kernels(source))


def _find_missing(emulated: bool) -> str | None:
    if find_spec("cutlass") is None:
        return "CuTe DSL is not installed: pip install 'kernel-harness[cute]'"
    return None


CUTE = LanguageRules(
    name="cute",
    devices=("cuda", EMULATED),
    detects=_detects,
    refuses=lambda request: None,
    list_kernels=_list_kernels,
    is_emulated=False,
    modules=frozenset(("cutlass",)),
    find_missing=_find_missing,
)
