"""CuTe DSL kernels: Python functions that NVIDIA's cutlass package compiles at their first launch."""

from harness.domain import EMULATED
from harness.languages.rules import LanguageRules, explain_missing, list_decorated

_DECORATORS = ("cute.kernel", "cutlass.cute.kernel")


def _list_kernels(source: str) -> tuple[str, ...]:
    """Return prefixes of the names that the compiler generates; the types of the arguments follow."""
    return tuple(f"kernel_cutlass_{name}_*" for name in list_decorated(source, _DECORATORS))


def _detects(source: str) -> bool:
    return "cutlass" in source and bool(_list_kernels(source))


RULES = LanguageRules(
    name="cute",
    title="CuTe DSL",
    task="""CuTe DSL kernels of your own: functions decorated with `@cute.kernel`,
launched by functions decorated with `@cute.jit`""",
    devices=("cuda", EMULATED),
    detects=_detects,
    list_kernels=_list_kernels,
    compiles_only=True,
    parts=("CuTe DSL",),
    word="cutlass.cute",
    is_slow_to_start=True,
    modules=frozenset(("cutlass",)),
    package="nvidia-cutlass-dsl",
    find_missing=lambda emulated: explain_missing("cutlass", "CuTe DSL", "cute"),
)
