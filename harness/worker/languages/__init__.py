"""Prepares languages whose Python functions are compiled in the worker. Each has a module with a function `prepare`."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """`target` is the emulated GPU. With `compiles`, kernels are compiled for it and not run; with `compiles_all`, in
    every configuration and exactly as in the worker of a real GPU, which takes over the files.
    """

    observer: Observer
    link: EmulatorLink
    target: dict[str, Any] | None = None
    compiles: bool = False
    compiles_all: bool = False


def prepare_languages(names: Sequence[str], preparation: Preparation) -> None:
    """Must run before the program is imported. The evaluator chooses the names; a language may need no module."""
    for name in names:
        if find_spec(f"harness.worker.languages.{name}"):
            import_module(f"harness.worker.languages.{name}").prepare(preparation)
