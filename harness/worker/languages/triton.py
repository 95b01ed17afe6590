"""Prepares Triton in the worker. Autotuning results are kept; emulated kernels are interpreted or compiled."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer, StandIn
from harness.worker.languages import Preparation
from harness.worker.triton_compilations import REPEATABLE, keep_compilations

PLAIN = (bool, int, float, str)


def prepare(preparation: Preparation) -> None:
    if preparation.target is None:
        keep_autotuned()
        keep_compilations()
    else:
        compiles, compiles_all = preparation.compiles, preparation.compiles_all
        emulate(preparation.link, preparation.target, compiles=compiles, compiles_all=compiles_all)
    if preparation.observer.ablates:
        _ablate_kernels(preparation.observer)


def keep_autotuned() -> None:
    """Make Triton store autotuning results beside compiled files, so that later workers choose the same."""
    try:
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return  # a program may name the package without using it
    tune: Callable[..., bool] | None = getattr(Autotuner, "check_disk_cache", None)
    if tune is None:
        return  # older versions

    def tune_what_can_be_written(tuner: Any, key: Any, configs: Sequence[Any], measure: Callable[[], None]) -> bool:
        """Tune only with values that Triton can store: it fails for others, such as its dtypes."""
        if all(type(value) in PLAIN for config in configs for value in config.kwargs.values()):
            return tune(tuner, key, configs, measure)
        measure()
        return False

    Autotuner.check_disk_cache = tune_what_can_be_written
    os.environ["TRITON_CACHE_AUTOTUNING"] = "1"


def emulate(link: EmulatorLink, target: dict[str, Any], *, compiles: bool, compiles_all: bool = False) -> None:
    """Interpret kernels, or compile them for the target (see `Preparation`). Do nothing without Triton."""
    os.environ["TRITON_INTERPRET"] = "0" if compiles else "1"
    if compiles_all:
        # The files of many configurations are sent on, to workers that `keep_compilations`.
        os.environ |= {"TRITON_STORE_BINARY_ONLY": "1", **REPEATABLE}
    else:  # as Triton 3.9 does, which warns where it is not set; it is part of the compiled files' key
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    if compiles and (preloaded := sys.modules.get("harness.worker.emulated.triton.preloaded")):
        preloaded.choose_compiler()
    try:
        from harness.worker.emulated.triton import block_pointers, driver
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        return
    driver.activate(target)
    block_pointers.install(lambda: _warn_of_block_pointers(link) if compiles else None)
    if compiles:
        from harness.worker.emulated.triton.compilation import KernelCompiler

        if not compiles_all:
            _skip_cache_key()
        driver.choose_compilable(compiles_all=compiles_all)
        KernelCompiler(link, target, compiles_launchers=compiles_all).install()
    else:
        from harness.worker.emulated.triton.launch import install as install_interpreter

        driver.choose_by_order(link)
        install_interpreter(link)


def _skip_cache_key() -> None:
    """The key digests the compiler's files, longer than a small kernel takes. No other worker looks for the files."""
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        module: Any = sys.modules.get(name)
        if hasattr(module, "triton_key"):
            module.triton_key = lambda: ""


def _warn_of_block_pointers(link: EmulatorLink) -> None:
    message = "block pointers exist only in Triton before 3.9; compiled as earlier versions do"
    link.report_compilation("removed_interface", "", message, decides=False)


def _ablate_kernels(observer: Observer) -> None:
    try:
        from triton import knobs
        from triton.compiler import CompiledKernel
        from triton.runtime.jit import JITFunction as Kernel
    except ImportError:
        return
    if knobs.runtime.interpret:
        from triton.runtime.interpreter import InterpretedFunction as Kernel
    run = Kernel.run

    def launch(kernel: Any, *args: Any, warmup: bool = False, **options: Any) -> Any:
        bound = functools.partial(run, kernel, warmup=warmup)
        return bound(*args, **options) if warmup else observer.ablate(bound, args, options)

    Kernel.run = launch
    _ablate_compiled(observer, CompiledKernel)


def _ablate_compiled(observer: Observer, kernel: Any) -> None:
    """Suppress launches of precompiled kernels: `kernel[grid](...)`, and `kernel.run(...)` with addresses."""
    choose_grid, find_launcher = kernel.__getitem__, kernel.run.fget

    def find_either(one: Any) -> Any:
        launcher = find_launcher(one)
        return launcher if observer.is_ablating else StandIn(launcher, observer.ablate)

    kernel.__getitem__ = lambda one, grid: StandIn(choose_grid(one, grid), observer.ablate)
    kernel.run = property(find_either)
