"""Finds a module's own names for the parts of a state."""

from __future__ import annotations

import string
from collections.abc import Mapping

from harness.protocol import TensorSpec


def match_state(own: Mapping[str, TensorSpec], wanted: Mapping[str, TensorSpec]) -> dict[str, str]:
    """Map each wanted part of a state to the module's own name. Names match if equal, else in order if they end alike
    (`running_mean`, `bn_running_mean` or `running_mean_2` for `bn.running_mean`) and their number is the same.
    """
    found = {name: name for name, spec in wanted.items() if fits(own.get(name), spec)}
    missing, free = [name for name in wanted if name not in found], [name for name in own if name not in wanted]
    for ending in dict.fromkeys(map(_last_part, missing)):
        asked = [name for name in missing if _last_part(name) == ending]
        left = [name for name in free if name not in found.values()]
        offered = [name for name in left if _ends_with(name, ending)]
        if len(asked) == len(offered) and all(map(fits, map(own.get, offered), map(wanted.__getitem__, asked))):
            found.update(zip(asked, offered, strict=True))
    return found


def _ends_with(name: str, ending: str) -> bool:
    last = f"_{_last_part(name)}"
    return any(one.endswith(f"_{ending}") for one in (last, last.rstrip(string.digits).rstrip("_")))


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def fits(own: TensorSpec | None, spec: TensorSpec) -> bool:
    return own is not None and (own.dtype, own.shape) == (spec.dtype, spec.shape)
