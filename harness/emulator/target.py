"""The GPU that is emulated."""

from __future__ import annotations

from dataclasses import dataclass

from harness.hardware.gpus import GpuModel

DEFAULT_TARGET = "A100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """The emulated GPU, and whether the built library also checks each access and each synchronisation."""

    target: GpuModel
    checked: bool = False
