"""Prepares TileLang in the worker. On the emulated device its kernels are compiled for the target and not run."""

import functools
import sys
from typing import Any

import torch

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer
from harness.worker.languages import Preparation

COMPILED, FAILED = "compiled", "compile_error"


def prepare(preparation: Preparation) -> None:
    preparation.observer.compiled_folders.append(_find_cache)
    if preparation.compiles and preparation.target is not None:
        _compile_only(preparation.link)
    if preparation.observer.ablates:
        _ablate_kernels(preparation.observer)


def _find_cache() -> str | None:
    if "tilelang" not in sys.modules:
        return None
    from tilelang import env

    return str(env.TILELANG_CACHE_DIR)


def _ablate_kernels(observer: Observer) -> None:
    try:
        from tilelang.jit.kernel import JITKernel as Kernel
    except ImportError:
        return
    run = Kernel.__call__
    Kernel.__call__ = lambda kernel, *args, **options: observer.ablate(functools.partial(run, kernel), args, options)


def _compile_only(link: EmulatorLink) -> None:
    """Do nothing without the package."""
    try:
        from tilelang.jit import JITImpl
        from tilelang.jit.kernel import JITKernel
    except ModuleNotFoundError as error:
        if error.name != "tilelang":
            raise
        return

    translate, compile_kernel = JITImpl.compile, JITKernel.__init__

    def translate_or_report(made: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return translate(made, *args, **kwargs)
        except Exception as error:
            name = getattr(getattr(made.func, "orig_func", made.func), "__name__", "-")
            link.report_compilation(FAILED, name, f"{type(error).__name__}: {error}")
            raise

    def compile_and_report(kernel: Any, *args: Any, **kwargs: Any) -> None:
        compile_kernel(kernel, *args, **kwargs)
        name = str(kernel.prim_func.attrs["global_symbol"])
        link.report_compilation(COMPILED, name, f"compiled for {kernel.target}", decides=False)

    JITImpl.compile = translate_or_report
    JITKernel.__init__ = compile_and_report
    JITKernel.__call__ = _make_outputs


def _make_outputs(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Return uninitialised tensors of the shapes that the kernel declares."""
    outputs = [_make_output(kernel.params[at]) for at in kernel.out_idx or ()]
    return outputs[0] if len(outputs) == 1 else outputs or None


def _make_output(parameter: Any) -> torch.Tensor:
    shape = [int(size) for size in parameter.shape]  # raises for sizes that are not constant
    return torch.empty(shape, dtype=parameter.torch_dtype(), device="cuda")
