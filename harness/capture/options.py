"""Settings of `harness capture`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from harness.domain.options import option

RECORD = "capture.json"
FOLDER = Path("captured")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    title: ClassVar[str] = "Capture"

    calls: int = option(20, "Calls of the model to watch; the script is ended after them.", min=1)
    min_gain: float = option(1.01, "Write problems that could speed up the whole model by this factor.", min=1.0)
    max_problems: int = option(8, "Write this many problems at most.", min=1)
    modules: tuple[str, ...] = option(
        (), "Write problems for these classes or paths of modules instead. Repeatable.", "--module", key="module",
        kind=list[str] | None, text=None, parse=lambda given: tuple(given or ()),
    )  # fmt: skip
    backward: bool = option(False, "Problems of modules with gradients include the backward pass.", "--backward")
