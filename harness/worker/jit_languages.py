"""Prepares the JIT compilers that a program uses, before it is imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer

TRANSLATED_TO_TRITON = ("triton", "helion")
PLAIN = (bool, int, float, str)


def prepare_languages(
    source: str,
    observer: Observer,
    *,
    link: EmulatorLink,
    target: dict[str, Any] | None,
    compiles: bool,
) -> None:
    """`target` is the emulated GPU; if `compiles`, kernels are compiled for it and not run."""
    if any(name in source for name in TRANSLATED_TO_TRITON):
        os.environ["HELION_AUTOTUNE_EFFORT"] = "none"  # its search takes minutes: the default configuration instead
        if target is not None:
            _emulate_triton(link, target, compiles=compiles, with_helion="helion" in source)
        else:
            keep_autotuned()
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


def keep_autotuned() -> None:
    """Make Triton store autotuning results beside the compiled files, so that later workers choose the same
    configuration.
    """
    try:
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return  # a program may name the package without using it
    tune: Callable[..., bool] | None = getattr(Autotuner, "check_disk_cache", None)
    if tune is None:
        return  # older versions

    def tune_what_can_be_written(tuner: Any, key: Any, configs: Sequence[Any], measure: Callable[[], None]) -> bool:
        """Store only values that Triton can serialise; it fails for others, such as its dtypes."""
        if all(type(value) in PLAIN for config in configs for value in config.kwargs.values()):
            return tune(tuner, key, configs, measure)
        measure()
        return False

    Autotuner.check_disk_cache = tune_what_can_be_written
    os.environ["TRITON_CACHE_AUTOTUNING"] = "1"


def _emulate_triton(link: EmulatorLink, target: dict[str, Any], *, compiles: bool, with_helion: bool) -> None:
    from harness.worker.emulated.triton.device import install

    install(link, target, compiles=compiles)
    if with_helion:
        from harness.worker.emulated.helion import choose_first_configurations

        choose_first_configurations()
