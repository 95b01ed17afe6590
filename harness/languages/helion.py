"""Helion kernels: Python functions that Helion translates to Triton at their first call."""

from __future__ import annotations

from harness.languages.decorated import list_decorated
from harness.languages.rules import LanguageRules, explain_missing
from harness.languages.triton import TRITON

_DECORATORS = ("helion.kernel", "helion.jit")


def _detects(source: str) -> bool:
    return "helion" in source and bool(list_decorated(source, _DECORATORS))


def _list_kernels(source: str) -> tuple[str, ...]:
    """Names of the Triton kernels that Helion generates, and of Triton kernels in the same program."""
    own = tuple(f"_helion_{name}" for name in list_decorated(source, _DECORATORS))
    return (*own, *TRITON.list_kernels(source))


HELION = LanguageRules(
    name="helion",
    devices=TRITON.devices,
    detects=_detects,
    list_kernels=_list_kernels,
    modules=frozenset(("helion", *TRITON.modules)),
    emulation_cost=TRITON.emulation_cost,
    find_missing=lambda emulated: explain_missing("helion", "Helion", "helion") or TRITON.find_missing(emulated),
)
