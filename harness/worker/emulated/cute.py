"""Compiles the CuTe DSL kernels that a program launches for the target, without running them."""

from __future__ import annotations

import os
import re
from typing import Any

from harness.worker.emulated.link import EmulatorLink

COMPILED, FAILED = "compiled", "compile_error"
_GENERATED = re.compile(r"kernel_cutlass_(?P<name>\w+?)_(tensorptr|ptr|\d)\w*")  # with the types of its arguments


def install(link: EmulatorLink, target: dict[str, Any]) -> None:
    """Must run before the candidate is imported. Does nothing without the package."""
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
