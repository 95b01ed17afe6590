"""Compiles the Triton kernels that a program launches for the target, without running them."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from triton.backends.nvidia import driver as nvidia
from triton.compiler.errors import CompilationError
from triton.runtime.autotuner import OutOfResources
from triton.runtime.jit import JITFunction

from harness.worker.emulated.link import EmulatorLink
from harness.worker.emulated.triton.launch import MOST_PROGRAMS, find_arguments, normalize_grid, refuse_host_tensors

COMPILED, FAILED = "compiled", "compile_error"
STDERR = 2


class KernelCompiler:
    def __init__(self, link: EmulatorLink, target: dict[str, Any], *, compiles_launchers: bool = False) -> None:
        self._link = link
        self._target = target
        self._compiles_launchers = compiles_launchers and _compiles_launchers()
        self._compile = JITFunction.run

    def install(self) -> None:
        compiler = self

        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            return compiler.run(self, args, kwargs, grid, warmup=warmup)

        JITFunction.run = run

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, *, warmup: bool) -> Any:
        bound = function.signature.bind_partial(
            *args, **{name: one for name, one in kwargs.items() if name in function.arg_names}
        )
        bound.apply_defaults()
        refuse_host_tensors(list(find_arguments(bound.arguments)))
        with _copy_stderr() as read_stderr:
            try:
                kernel = self._compile(function, *args, grid=grid, warmup=True, **kwargs)
            except Exception as error:
                self._report(FAILED, function, *_explain(error, function, read_stderr()))
                raise
        if self._compiles_launchers:
            nvidia.CudaLauncher(kernel.src, kernel.metadata)
        self._check_resources(function, kernel.metadata)
        if not warmup:
            self._check_grid(function, normalize_grid(grid, dict(bound.arguments)))
        self._report(COMPILED, function, f"compiled for {kernel.metadata.target.arch}", 0, decides=False)
        return kernel

    def _check_resources(self, function: Any, metadata: Any) -> None:
        """Raises OutOfResources, which autotuning catches."""
        limits = (
            ("too_much_shared", "shared memory", metadata.shared, self._target["shared_memory_per_block_optin"]),
            ("too_many_threads", "threads", metadata.num_warps * 32, self._target["max_threads_per_block"]),
        )
        for check, what, needed, most in limits:
            if needed > most:
                text = f"the kernel needs {needed} bytes of shared memory" if "shared" in what else f"{needed} threads"
                message = f"{text}; {self._target['name']} has {most} per block"
                self._report(check, function, message, _find_definition(function))
                raise OutOfResources(needed, most, what)

    def _check_grid(self, function: Any, sizes: tuple[int, int, int]) -> None:
        if any(size > most for size, most in zip(sizes, MOST_PROGRAMS, strict=True)):
            message = f"a grid of {sizes}: at most {MOST_PROGRAMS} programs can be launched"
            self._report("too_many_blocks", function, message, _find_definition(function))

    def _report(self, check: str, function: Any, message: str, line: int, *, decides: bool = True) -> None:
        file = Path(inspect.getsourcefile(function.fn) or "").name
        self._link.report_compilation(check, function.__name__, message, decides=decides, file=file, line=line)


def _compiles_launchers() -> bool:
    """Triton before 3.7 compiles C code that launches and loads kernels, and asserts that there is a driver library."""
    if not hasattr(nvidia, "make_launcher"):
        return False
    try:
        nvidia.CudaUtils()
    except (AssertionError, OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def _copy_stderr() -> Iterator[Callable[[], str]]:
    sys.stderr.flush()
    usual, copy = os.dup(STDERR), os.memfd_create("stderr")

    def read() -> str:
        sys.stderr.flush()
        return os.pread(copy, os.fstat(copy).st_size, 0).decode(errors="replace")

    os.dup2(copy, STDERR)
    try:
        yield read
    finally:
        written = read()
        os.dup2(usual, STDERR)
        os.close(usual)
        os.close(copy)
        sys.stderr.write(written)


def _explain(error: BaseException, function: Any, stderr: str) -> tuple[str, int]:
    """Return message, source line and number. Compiler passes use `stderr`: `FILE:LINE:COLUMN: error: MESSAGE`."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    innermost = next((one for one in reversed(chain) if isinstance(one, CompilationError)), None)
    if innermost is None:
        file = re.escape(inspect.getsourcefile(function.fn) or "")
        told = re.search(rf"^{file}:(\d+):\d+: error: (.+)$", stderr, re.MULTILINE)
        if told is None:
            return f"{type(error).__name__}: {error}", _find_definition(function)
        return f"{told[2]}\n    {_read_line(function, int(told[1]))}", int(told[1])
    # Triton counts lines from the kernel's definition. Errors in called functions may come with their source.
    within = getattr(innermost.node, "lineno", 1)
    source = innermost.src if innermost.src and _is_part(innermost.node, innermost.src) else function.src
    head = source.lstrip().splitlines()[0].strip()
    lines = _read_lines(function)
    found = [number for number, line in enumerate(lines, start=1) if line.strip() == head]
    line = (found[0] if found else _find_definition(function)) + within - 1
    text = innermost.error_message or f"{type(chain[-1]).__name__}: {chain[-1]}"
    return f"{text.strip()}\n    {_read_line(function, line)}", line


def _is_part(node: ast.AST | None, source: str) -> bool:
    if not isinstance(node, ast.Call):
        return True
    lines = source.splitlines()
    line = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
    return line.encode()[node.col_offset :].startswith(ast.unparse(node.func).encode())


def _find_definition(function: Any) -> int:
    """Triton's attribute for it is named differently in other versions."""
    lines, first = inspect.getsourcelines(function.fn)
    return first + next(index for index, line in enumerate(lines) if line.lstrip().startswith("def "))


def _read_line(function: Any, number: int) -> str:
    lines = _read_lines(function)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _read_lines(function: Any) -> list[str]:
    source = inspect.getsourcefile(function.fn)
    return Path(source).read_text(encoding="utf-8").splitlines() if source else []
