"""Watches the calls of one model: arguments, work and time of each of its modules.

Calls take turns: in one arguments are described and operations counted, in the next torch's profiler runs, the third is
timed.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler import record_function
from torch.profiler import profile
from torch.utils._python_dispatch import _disable_current_modes

from harness.capture.comparison import choose_clock
from harness.capture.runtime import list_arguments, map_arguments
from harness.capture.values import TensorFacts, describe, merge
from harness.domain import UsageError
from harness.problems.operator_costs import OperatorCosts
from harness.tensors.values import count_bytes, list_tensors, read_version

MAX_FORMS = 64  # different calls of one module that are kept
PREFIX = "harness.capture "
CONSTANTS = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.Size)
Arguments = dict[str, Any]  # by parameter, with TensorFacts in place of tensors


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Replaces an argument that a problem cannot make."""

    kind: str


@dataclass(slots=True)
class CallForm:
    """Calls with equal shapes and constants, the first arguments `positional`. Work is summed over `count` calls."""

    arguments: Arguments
    count: int = 1
    flops_by_dtype: Counter[str] = field(default_factory=Counter[str])
    output_bytes: int = 0
    output_kind: str = ""
    changes_inputs: bool = False
    has_gradients: bool = False
    autocast: bool = False
    positional: int = 0

    def add(self, other: CallForm) -> None:
        """The arguments have the same form."""
        others = iter([leaf for _, leaf in list_arguments(other.arguments)])
        self.arguments = map_arguments(self.arguments, lambda leaf: _merge(leaf, next(others)))
        self.count += other.count
        self.flops_by_dtype.update(other.flops_by_dtype)
        self.output_bytes += other.output_bytes
        self.output_kind = self.output_kind or other.output_kind
        self.changes_inputs |= other.changes_inputs
        self.has_gradients |= other.has_gradients
        self.autocast |= other.autocast


def _merge(one: Any, other: Any) -> Any:
    return merge(one, other) if isinstance(one, TensorFacts) else one


@dataclass(slots=True)
class ModuleRecord:
    module: nn.Module
    forms: dict[str, CallForm] = field(default_factory=dict)
    time_us: float = 0.0
    calls: int = 0  # of those that were profiled
    opaque: str = ""  # why no chains of its forward are known


@dataclass(slots=True, repr=False)  # which the repr of some modules would include
class Watch:
    """`max_calls` ends the script; `profiled` and `timed` are numbers of calls. `described` is called once, after the
    first call, and returns whether to describe another."""

    max_calls: int
    described: Callable[[], bool] = lambda: False
    modules: dict[str, ModuleRecord] = field(default_factory=dict)
    wall_us: float = 0.0
    calls: int = 0
    profiled: int = 0
    timed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    last: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    _handles: list[Any] = field(default_factory=list)
    _open: ExitStack | None = None
    _ranges: list[record_function] = field(default_factory=list)
    _starts: list[tuple[str, CallForm, list[tuple[Tensor, int]]]] = field(default_factory=list)
    _costs: OperatorCosts | None = None
    _profile: Any = None
    _start_s: float | None = None
    _turn: int = 0
    _was_described: bool = False
    _depth: int = 0  # of calls of the model inside of each other

    def attach(self, model: nn.Module) -> None:
        """Install hooks at all modules. Raises UsageError."""
        devices = [value.device for value in (*model.parameters(), *model.buffers())] or [torch.device("cpu")]
        found = next((one for one in devices if one.type != "meta"), None)
        if found is None:
            raise UsageError("the model is on the meta device: its calls compute nothing")
        self.device = found
        for path, module in model.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):  # it has no hooks
                self.add(path, module)

    def add(self, path: str, module: nn.Module) -> None:
        self.modules[path] = ModuleRecord(module)
        self._handles += (
            module.register_forward_pre_hook(partial(self.before, path), with_kwargs=True),
            module.register_forward_hook(partial(self.after, path), with_kwargs=True, always_call=True),
        )

    def detach(self) -> None:
        while self._handles:
            self._handles.pop().remove()

    def start_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call before each call of the model."""
        if self.calls >= self.max_calls:
            raise SystemExit
        self._open, self._ranges, self._starts = ExitStack(), [], []
        match self._turn % 3:
            case 0:
                self.last = args, kwargs
                self._costs = self._open.enter_context(OperatorCosts())
            case 1:
                self._profile = self._open.enter_context(profile(acc_events=True))
            case _:
                self._start_s = choose_clock(self.modules[""].module)()

    def end_call(self, *, failed: bool) -> None:
        """A call that raised an exception does not count, except as one of `max_calls`."""
        assert self._open is not None
        now_s = choose_clock(self.modules[""].module)()
        self._open.close()
        profiled, start_s = self._profile, self._start_s
        self._open, self._profile, self._costs, self._start_s = None, None, None, None
        self.calls += 1
        if not failed:
            if profiled is not None:
                self._add_times(profiled)
            if start_s is not None:
                self.wall_us += (now_s - start_s) * 1e6
                self.timed += 1
            self._turn += 1
            if not self._was_described:
                self._was_described = True
                self._turn = 0 if self.described() else self._turn
        if self.calls >= self.max_calls:
            raise SystemExit

    def _add_times(self, profiled: Any) -> None:
        self.profiled += 1
        for event in profiled.key_averages():
            if not event.key.startswith(PREFIX) or event.device_type != DeviceType.CPU:
                continue
            record = self.modules[event.key.removeprefix(PREFIX)]
            on_gpu = self.device.type == "cuda"
            record.time_us += event.device_time_total if on_gpu else event.cpu_time_total
            record.calls += event.count

    def before(self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if path == "":
            if self._open is None:
                self.start_call(args, kwargs)
            self._depth += 1
        if self._open is None:
            return  # the script calls a part of the model by itself
        if self._profile is not None:
            entered = record_function(PREFIX + path)
            entered.__enter__()  # type: ignore[no-untyped-call]
            self._ranges.append(entered)
        elif self._costs is not None:
            versions = [(tensor, read_version(tensor)) for tensor in list_tensors((args, kwargs))]
            self._starts.append((*self._note(module, args, kwargs), versions))

    def _note(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, CallForm]:
        """Return the call, which equals others in the text. Its operations are those before it, negated."""
        assert self._costs is not None
        with _disable_current_modes(), torch.no_grad():
            arguments = map_arguments(bind_arguments(module, args, kwargs), _describe)
        shapes = map_arguments(arguments, lambda one: (one.shape, one.dtype) if isinstance(one, TensorFacts) else one)
        form = CallForm(arguments, positional=len(args))
        form.flops_by_dtype.subtract(self._costs.flops_by_dtype)
        return repr(shapes), form

    def after(self, path: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._ranges:
            self._ranges.pop().__exit__(None, None, None)
        failed = output is None and sys.exc_info()[0] is not None
        if self._starts and self._costs is not None:
            self._finish(path, output, self._costs.flops_by_dtype, failed=failed)
        if path == "" and self._depth:
            self._depth -= 1
            if not self._depth:
                self.end_call(failed=failed)

    def _finish(self, path: str, output: Any, flops_by_dtype: Counter[str], *, failed: bool) -> None:
        key, form, versions = self._starts.pop()
        if failed:
            return
        results = list_tensors(output)
        form.flops_by_dtype.update(flops_by_dtype)
        form.output_bytes = count_bytes(results)
        form.output_kind = describe_structure(output)
        form.changes_inputs = any(read_version(tensor) != version for tensor, version in versions)
        form.autocast = torch.is_autocast_enabled(self.device.type)
        form.has_gradients = any(one.requires_grad for one in results)
        forms = self.modules[path].forms
        if key in forms:
            forms[key].add(form)
        elif len(forms) < MAX_FORMS:
            forms[key] = form


def bind_arguments(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by parameter of `forward`, in its order. Arguments of `*args` are named `args_0` and so on."""
    signature = inspect.signature(module.forward)
    bound: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                bound |= {f"{name}_{at}": one for at, one in enumerate(value)}
            case inspect.Parameter.VAR_KEYWORD:
                bound |= value
            case _:
                bound[name] = value
    return bound


def _describe(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value if isinstance(value, CONSTANTS) else Unsupported(type(value).__name__)
    is_plain = value.layout is torch.strided and not value.is_quantized and not value.is_nested
    if not is_plain or torch._C._functorch.is_functorch_wrapped_tensor(value):
        return Unsupported("tensor that is sparse, quantised, nested or of torch.func")
    return describe(value)


def describe_structure(output: Any) -> str:
    """Return "" for tensors and numbers in plain containers, else the type that a problem cannot return."""
    leaves = (leaf for _, leaf in list_arguments({"": output}))
    return next((type(one).__name__ for one in leaves if not isinstance(one, Tensor | int | float | None)), "")
