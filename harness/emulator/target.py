"""The emulated GPU. Not used for timing."""

from __future__ import annotations

from dataclasses import dataclass

from harness.hardware.gpus import GpuModel

DEFAULT_TARGET = "A100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """`checked`: the built library also checks memory accesses and synchronisation."""

    target: GpuModel
    checked: bool = False
