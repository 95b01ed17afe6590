"""Prepares CuTe DSL in the worker. On the emulated device its kernels are compiled for the target and not run."""

import os
import re
from typing import Any

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer
from harness.worker.languages import Preparation

COMPILED, FAILED = "compiled", "compile_error"
_GENERATED = re.compile(r"kernel_cutlass_(?P<name>\w+?)_(tensorptr|ptr|\d)\w*")  # with the types of its arguments


def prepare(preparation: Preparation) -> None:
    if preparation.compiles and preparation.target is not None:
        _compile_only(preparation.link, preparation.target)
    if preparation.observer.ablates:
        _launch_nothing(preparation.observer)


def _compile_only(link: EmulatorLink, target: dict[str, Any]) -> None:
    """Do nothing without the package."""
    os.environ["CUTE_DSL_ARCH"] = f"sm_{target['major']}{target['minor']}" + ("a" if target["major"] >= 9 else "")
    try:
        from cutlass.base_dsl.dsl import BaseDSL
        from cutlass.base_dsl.jit_executor import JitCompiledFunction
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cutlass":
            raise
        return

    def skip(compiled: Any, arguments: Any) -> None:
        for name in compiled.kernel_info:
            found = _GENERATED.fullmatch(name)
            kernel, message = found["name"] if found else name, f"compiled for {os.environ['CUTE_DSL_ARCH']}"
            link.report_compilation(COMPILED, kernel, message, decides=False)

    compile_function = BaseDSL._func

    def compile_or_report(dsl: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compile_function(dsl, function, *args, **kwargs)
        except Exception as error:
            link.report_compilation(FAILED, getattr(function, "__name__", "-"), f"{type(error).__name__}: {error}")
            raise

    JitCompiledFunction.run_compiled_program = skip
    BaseDSL._func = compile_or_report


def _launch_nothing(observer: Observer) -> None:
    """Calls through TVM's interface make the result inconclusive."""
    try:
        from cutlass.base_dsl.jit_executor import JitExecutor
    except ImportError:
        return  # a program may name the package without using it
    JitExecutor.run_compiled_program = lambda executor, arguments: None
    try:
        from cutlass.cutlass_dsl.tvm_ffi_provider import TVMFFIJitCompiledFunctionBase as CalledByTvm
    except ImportError:
        return
    create = CalledByTvm._create_tvm_ffi_function

    def create_inconclusively(function: Any) -> Any:
        observer.doubt()
        return create(function)

    CalledByTvm._create_tvm_ffi_function = create_inconclusively
