"""Runs a launch's grid in Triton's interpreter, with programs in the order that the sanitizer requests."""

import inspect
import random
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.driver import driver
from triton.runtime.interpreter import InterpretedFunction, TensorHandle
from triton.runtime.jit import _normalize_ty
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.worker.emulated import tensors as emulated_tensors
from harness.worker.emulated.link import EmulatorLink
from harness.worker.emulated.tensors import is_on_host
from harness.worker.emulated.triton import arithmetic, combining, rewriting
from harness.worker.emulated.triton.arithmetic import NotCovered
from harness.worker.emulated.triton.builder import CheckedBuilder, TimeLimit
from harness.worker.emulated.triton.memory import IllegalAccess, LaunchMemory, OtherProgramFailed, Turns, fill_new

_NUMBERS = {
    "u1": tl.int1, "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
    **{f"{name[0]}{name.strip('uint')}": getattr(tl, name) for name in tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES},
}  # fmt: skip
# What a GPU or the kernel's own assertions end a launch with.
GPU_ERRORS = (IllegalAccess, TimeLimit, OtherProgramFailed, AssertionError)
MOST_PROGRAMS = (2**31 - 1, 65535, 65535)
MOST_REGISTERS = 255  # of a thread
COMPILED = ("asm", "src", "hash", "module", "function", "kernel", "metadata_group", "packed_metadata", "run")


def install(link: EmulatorLink) -> None:
    builder = CheckedBuilder(link)
    interpreter.interpreter_builder = builder
    interpreter.interpreter_semantic = TritonSemantic(builder)
    rewriting.install()
    combining.install()
    _patch_language()
    interpreter._get_np_dtype = arithmetic.find_numpy_dtype
    emulated_tensors.fill_new_tensors(fill_new)

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> InterpretedKernel:
        if not warmup:
            Launch(self, builder, link).run(args, kwargs, grid)
        return InterpretedKernel(self, kwargs, count_warps(kwargs), builder.report)

    InterpretedFunction.run = run
    InterpretedFunction.__call__ = lambda self, *args, **kwargs: self.rewrite()(*args, **kwargs)


def _patch_language() -> None:
    """Runs once per process, since it takes longer than a small kernel."""
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    for module in (tl, tl.core):
        module.range, module.map_elementwise = rewriting.count_up, combining.map_elements
    tl.core.tensor.__index__ = lambda self: int(self.handle.data.squeeze())  # Triton 3.6 lacks `squeeze`
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()
    from triton.language.extra import cuda
    from triton.language.extra import libdevice as general
    from triton.language.extra.cuda import libdevice

    for module in (libdevice, cuda):
        interpreter._patch_builtin(module, interpreter.interpreter_builder, interpreter._LangPatchScope())
    for name, value in vars(libdevice).items():
        if hasattr(general, name) and callable(value):
            setattr(general, name, value)


class Launch:
    def __init__(self, function: Any, builder: CheckedBuilder, link: EmulatorLink) -> None:
        self._function = function
        self._builder = builder
        self._link = link

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> None:
        rewritten = self._function.rewrite()
        known = {name: value for name, value in kwargs.items() if name in self._function.arg_names}
        for hook in self._function.pre_run_hooks:
            hook(*args, **known)
        bound = inspect.getcallargs(rewritten, *args, **known)
        sizes = normalize_grid(grid, bound)
        tensors = list(find_arguments(bound))
        refuse_host_tensors(tensors)
        self._builder.kernel, self._builder.file = self._function.fn.__name__, rewritten.__code__.co_filename
        self._builder.grid_idx = None
        self._builder.deadline_s = time.monotonic() + float(self._link.setting("time_limit_s") or 1e9)
        self._builder.options = replace(self._builder.options, num_warps=count_warps(kwargs))
        check_grid(sizes, self._builder)
        if self._link.setting("launches_only"):
            return
        self._builder.set_grid_dim(*sizes)
        self._builder.memory = memory = LaunchMemory(tensors, sizes[0] * sizes[1] * sizes[2], self._builder.report)
        with np.errstate(all="ignore"):
            converted = {name: self._convert(name, value) for name, value in bound.items()}
            self._run_programs(rewritten, converted, memory)

    def _convert(self, name: str, value: Any) -> Any:
        annotation = _normalize_ty(inspect.get_annotations(self._function.fn).get(name) or "")
        if "constexpr" in annotation:
            return value
        usual = {float: tl.float32, bool: tl.int1}.get(type(value))
        kind = _NUMBERS.get(annotation, usual) if isinstance(value, int | float) else None
        return interpreter._implicit_cvt(value) if kind is None else _make_scalar(value, kind)

    def _run_programs(self, rewritten: Any, arguments: dict[str, Any], memory: LaunchMemory) -> None:
        builder = self._builder
        numbers = iter(order_programs(memory.programs, str(self._link.setting("order")), self._link.setting("seed")))

        def run_next() -> bool:
            number = next(numbers, None)
            if number is None:
                return False
            builder.set_grid_idx(*builder.locate_program(number))
            memory.begin(number)
            try:
                rewritten(**arguments)
            except Exception as error:
                if not isinstance(error, (*GPU_ERRORS, NotCovered)):
                    report_failure(error, builder)
                raise
            return True

        builder.turns = Turns(run_next)
        builder.turns.run()


def report_failure(error: Exception, builder: CheckedBuilder) -> None:
    """Report an error. It is `uncovered` if the interpreter raised it; others would also occur in the compiler."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "numpy" not in Path(one.filename).parts]
    is_own = frames[-1].filename in (
        interpreter.__file__,
        *(one.__file__ for one in (arithmetic, combining, rewriting)),
    )
    language = [one.name for one in frames if Path(tl.__file__).parent in Path(one.filename).parents]
    operation = (language or [frames[-1].name])[-1].strip("_")
    message = f"{operation} fails in Triton's interpreter: {type(error).__name__}: {error}"
    line = next((one.lineno for one in reversed(frames) if one.filename == builder.file), 0)
    builder.report("uncovered" if is_own else "interpreter", message, decides=is_own, line=line or 0)


def _make_scalar(value: float, kind: Any) -> Any:
    """Make the tensor that a kernel receives for a number: of the annotated type, or float32."""
    wide = interpreter.interpreter_semantic.to_tensor(value)
    if isinstance(value, float):
        wide = tl.tensor(TensorHandle(np.array([value]), tl.float64), tl.float64)
    return wide.to(kind)


def count_warps(options: dict[str, Any]) -> int:
    return int(options.get("num_warps") or 4)


def normalize_grid(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    given = grid(bound) if callable(grid) else grid
    sizes = [int(size) for size in (given if isinstance(given, Sequence) else (given,))]
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid has one to three dimensions, found {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def check_grid(sizes: tuple[int, int, int], reporter: Any) -> None:
    """Raises RuntimeError for the same grids as a GPU."""
    if all(size <= most for size, most in zip(sizes, MOST_PROGRAMS, strict=True)):
        return
    message = f"a grid of {sizes}: at most {MOST_PROGRAMS} programs can be launched"
    reporter.report("too_many_blocks", message)
    raise RuntimeError(f"Triton Error [CUDA]: invalid argument ({message})")


def find_arguments(bound: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in bound.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, TensorDescriptor):
            yield from find_arguments({name: value.base})
        elif isinstance(value, tuple | list):
            yield from find_arguments({f"{name}[{index}]": one for index, one in enumerate(value)})
        elif isinstance(getattr(value, "base", None), torch.Tensor):  # triton.reinterpret
            yield name, value.base


def refuse_host_tensors(tensors: list[tuple[str, torch.Tensor]]) -> None:
    for at, (name, tensor) in enumerate(tensors):
        if is_on_host(tensor):
            raise ValueError(f"Pointer argument (at {at}, {name}) cannot be accessed from Triton (cpu tensor?)")


def order_programs(count: int, order: str, seed: Any) -> Sequence[int]:
    if order == "descending":
        return range(count - 1, -1, -1)
    if order != "random":
        return range(count)
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    return numbers


class InterpretedKernel:
    """Replaces Triton's compiled kernel; its resource use is the maximum for a block of this size."""

    n_spills = 0

    def __init__(self, function: Any, launched: dict[str, Any], num_warps: int, report: Callable[..., None]) -> None:
        limits = driver.active.utils.get_device_properties(0)
        threads = num_warps * limits["warpSize"]
        self.name = function.fn.__name__
        self.n_regs = min(MOST_REGISTERS, limits["max_num_regs"] // threads)
        self.n_max_threads = threads
        self.metadata = SimpleNamespace(name=self.name, shared=limits["max_shared_mem"], num_warps=num_warps)
        self._function, self._launched, self._report = function, launched, report

    def __getattr__(self, name: str) -> Any:
        if name in COMPILED:
            self._report(
                "uncovered", f"{name} of a compiled kernel is not covered by the emulated device", decides=False
            )
        raise AttributeError(f"a kernel in Triton's interpreter has no {name}")

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def run(*args: Any, stream: Any = None) -> None:
            names = self._function.arg_names
            missing = {name: self._launched[name] for name in names[len(args) :] if name in self._launched}
            self._function.run(*args, grid=grid, warmup=False, **missing)

        return run
