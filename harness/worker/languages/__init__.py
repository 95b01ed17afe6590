"""Languages of Python functions that are compiled in the worker: a module for each, with a function `prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """`target`: the emulated GPU. `compiles`: kernels are compiled for it, and not run."""

    observer: Observer
    link: EmulatorLink
    target: dict[str, Any] | None = None
    compiles: bool = False


def prepare_languages(names: Sequence[str], preparation: Preparation) -> None:
    """Before the program is imported. The names are the evaluator's, which the program does not choose."""
    for name in names:
        import_module(f"harness.worker.languages.{name}").prepare(preparation)
