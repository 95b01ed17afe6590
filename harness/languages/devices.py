"""Selects the devices for a language."""

from __future__ import annotations

import re

from harness.domain import Language, UsageError
from harness.hardware.cuda_driver import list_gpus
from harness.languages import LANGUAGES


def find_devices(wanted: str, language: Language) -> tuple[str, ...]:
    """`auto` selects the CPU for cpp, and all GPUs or else `emulated` for cuda. Empty if `wanted` does not suit the
    language. Raises UsageError.
    """
    kinds = LANGUAGES[language].devices
    if wanted == "auto":
        wanted = next(kind for kind in kinds if kind != "cuda" or list_gpus())
    kind, _, indices = wanted.partition(":")
    if not re.fullmatch(r"cpu|emulated|cuda(:\d+(,\d+)*)?", wanted):
        raise UsageError(f"unknown device {wanted!r}; expected auto, cpu, emulated, cuda, cuda:N or cuda:N,M")
    count = len(list_gpus()) if kind == "cuda" else 0
    if kind == "cuda" and not count:
        raise UsageError(
            f"{wanted} was requested with --device, but no NVIDIA GPU was found on this machine: leave the option "
            "out, or see what `harness doctor` reports"
        )
    if kind not in kinds:
        return ()
    if kind != "cuda":
        return (wanted,)
    chosen = sorted({int(index) for index in indices.split(",")}) if indices else list(range(count))
    if not chosen or chosen[-1] >= count:
        raise UsageError(f"{wanted} was requested, but this machine has {count} usable GPUs")
    return tuple(f"cuda:{index}" for index in chosen)
