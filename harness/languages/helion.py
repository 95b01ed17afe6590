"""Helion kernels: Python functions that Helion translates to Triton at their first call."""

from __future__ import annotations

from importlib.util import find_spec

from harness.languages.decorated import list_decorated
from harness.languages.rules import LanguageRules
from harness.languages.triton import TRITON

_DECORATORS = ("helion.kernel", "helion.jit")
_IMPORT = "helion"


def _detects(source: str) -> bool:
    return _IMPORT in source and bool(list_decorated(source, _DECORATORS))


def _list_kernels(source: str) -> tuple[str, ...]:
    """By the names of the Triton kernels that Helion writes; and those of Triton in the same program."""
    own = tuple(f"_helion_{name}" for name in list_decorated(source, _DECORATORS))
    return (*own, *TRITON.list_kernels(source))


def _find_missing(emulated: bool) -> str | None:
    if find_spec(_IMPORT) is None:
        return "Helion is not installed: pip install 'kernel-harness[helion]'"
    return TRITON.find_missing(emulated)


HELION = LanguageRules(
    name="helion",
    devices=TRITON.devices,
    detects=_detects,
    refuses=lambda request: None,
    list_kernels=_list_kernels,
    modules=frozenset(("helion", *TRITON.modules)),
    emulation_cost=TRITON.emulation_cost,
    find_missing=_find_missing,
)
