"""TileLang kernels: Python functions that TileLang translates to CUDA and compiles with nvcc when they are made."""

from harness.domain import EMULATED
from harness.languages.rules import LanguageRules, explain_missing, list_decorated

_DECORATORS = ("T.prim_func", "tilelang.language.prim_func", "tilelang.jit", "tilelang.lazy_jit")


def _list_kernels(source: str) -> tuple[str, ...]:
    """Return prefixes of the names that TileLang generates: several kernels of one function are numbered."""
    return tuple(f"{name}_kernel*" for name in list_decorated(source, _DECORATORS))


def _detects(source: str) -> bool:
    return "tilelang" in source and bool(_list_kernels(source))


RULES = LanguageRules(
    name="tilelang",
    title="TileLang",
    task="""TileLang kernels of your own: functions decorated with `@T.prim_func`,
compiled by `@tilelang.jit`""",
    devices=("cuda", EMULATED),
    detects=_detects,
    list_kernels=_list_kernels,
    compiles_only=True,
    parts=("TileLang", "nvcc"),
    word="tilelang",
    is_slow_to_start=True,
    modules=frozenset(("tilelang", "tvm")),
    package="tilelang",
    find_missing=lambda emulated: explain_missing("tilelang", "TileLang", "tilelang"),
)
