"""Helion kernels: Python functions that Helion translates to Triton at their first call."""

from harness.languages.rules import LanguageRules, explain_missing, list_decorated
from harness.languages.torch import INDUCTOR
from harness.languages.triton import RULES as TRITON

_DECORATORS = ("helion.kernel", "helion.jit")


def _detects(source: str) -> bool:
    return "helion" in source and bool(list_decorated(source, _DECORATORS))


def _list_kernels(source: str) -> tuple[str, ...]:
    """Names of generated kernels are prefixes, since their code is in a file that Helion writes."""
    own = tuple(f"_helion_{name}*" for name in list_decorated(source, _DECORATORS))
    return (*own, *TRITON.list_kernels(source))


RULES = LanguageRules(
    name="helion",
    title="Helion",
    task="Helion kernels of your own: functions decorated with `@helion.kernel`",
    devices=TRITON.devices,
    detects=_detects,
    list_kernels=_list_kernels,
    parts=("Helion", *TRITON.parts),
    word="helion",
    preloads=INDUCTOR,
    is_slow_to_start=True,
    modules=frozenset(("helion", *TRITON.modules)),
    package="helion",
    translates_to=TRITON,
    emulation_cost=TRITON.emulation_cost,
    find_missing=lambda emulated: explain_missing("helion", "Helion", "helion") or TRITON.find_missing(emulated),
)
