"""TileLang kernels: Python functions that TileLang translates to CUDA, and nvcc compiles, when they are made."""

from __future__ import annotations

from importlib.util import find_spec

from harness.domain import EMULATED
from harness.languages.decorated import list_decorated
from harness.languages.rules import LanguageRules

_DECORATORS = ("T.prim_func", "tilelang.language.prim_func", "tilelang.jit", "tilelang.lazy_jit")


def _list_kernels(source: str) -> tuple[str, ...]:
    """By the beginning of the names that TileLang gives them: several kernels of one function are numbered."""
    return tuple(f"{name}_kernel*" for name in list_decorated(source, _DECORATORS))


def _detects(source: str) -> bool:
    return "tilelang" in source and bool(_list_kernels(source))


def _find_missing(emulated: bool) -> str | None:
    if find_spec("tilelang") is None:
        return "TileLang is not installed: pip install 'kernel-harness[tilelang]'"
    return None


TILELANG = LanguageRules(
    name="tilelang",
    devices=("cuda", EMULATED),
    detects=_detects,
    refuses=lambda request: None,
    list_kernels=_list_kernels,
    is_emulated=False,
    modules=frozenset(("tilelang", "tvm")),
    find_missing=_find_missing,
)
