"""Prepares the languages that a program's kernels are compiled by, before it is imported."""

from __future__ import annotations

import os
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer

TRANSLATED_TO_TRITON = ("triton", "helion")


def prepare_languages(
    source: str,
    observer: Observer,
    *,
    link: EmulatorLink,
    target: dict[str, Any] | None,
    compiles: bool,
) -> None:
    """Those that the source names. `target`: the emulated GPU. `compiles`: kernels are compiled for it, and not run."""
    if any(name in source for name in TRANSLATED_TO_TRITON):
        os.environ["HELION_AUTOTUNE_EFFORT"] = "none"  # its search takes minutes: the default configuration instead
        if target is not None:
            _emulate_triton(link, target, compiles=compiles, with_helion="helion" in source)
        observer.watch_triton()
    if "cutlass.cute" in source:
        if compiles and target is not None:
            from harness.worker.emulated.cute import install

            install(link, target)
        observer.watch_cute()
    if "tilelang" in source:
        if compiles and target is not None:
            from harness.worker.emulated.tilelang import install as install_tilelang

            install_tilelang(link)
        observer.watch_tilelang()
    observer.watch_compiled_graphs()


def _emulate_triton(link: EmulatorLink, target: dict[str, Any], *, compiles: bool, with_helion: bool) -> None:
    from harness.worker.emulated.triton.device import install

    install(link, target, compiles=compiles)
    if with_helion:
        from harness.worker.emulated.helion import choose_first_configurations

        choose_first_configurations()
