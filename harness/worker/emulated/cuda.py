"""`torch.cuda` for a worker of the emulated device: one synchronous GPU with the target's properties and CPU memory.

Unsupported calls raise. Patches this process only.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import torch.amp.autocast_mode
import torch.autograd.graph
from torch.library import Library

from harness.worker.emulated.tensors import GPU, HOST, TensorsOnGpu, is_on_gpu_already, map_default_device, names_gpu

_KEPT: list[Library] = []  # their registrations end with them


def install(target: dict[str, Any]) -> None:
    map_default_device()
    _replace(torch.cuda, _describe_device(target) | _run_at_once() | _count_memory(target) | _seed())
    _replace(
        torch.cuda, {name: type(name, (CUDAGraph,), {}) for name in ("CUDAGraph", "graph", "make_graphed_callables")}
    )
    _replace(torch.cuda.nvtx, _ignore("mark", "range_push", "range_pop"))
    _replace(torch.cuda.nvtx, {"range": type("range", (DeviceContext,), {})})
    _replace(torch, {"compile": _leave_uncompiled, "Stream": Stream, "Event": Event, "Generator": Generator})
    # Recurrent layers would pass their weights to cuDNN, which rejects CPU tensors.
    _replace(torch.backends.cudnn, {"is_acceptable": lambda *_: False})
    _map_autocast()
    _ignore_recorded_streams()
    _map_library()
    _map_callbacks()
    _keep_mathematical_attention()
    _replace(torch.jit, {"script": _script_only_torchs(torch.jit.script)})
    # torch's own function takes the stream before function modes are called, and rejects ours.
    _replace(torch.Tensor, {"record_stream": lambda *_, **__: None})
    TensorsOnGpu().__enter__()  # type: ignore[no-untyped-call]


def _ignore_recorded_streams() -> None:
    library = Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("record_stream", lambda *_: None, "CPU")  # type: ignore[no-untyped-call]
    _KEPT.append(library)


class Stream:
    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device, self.priority = GPU, priority
        self.device_index, self.stream_id, self.cuda_stream = 0, 0, 0

    def synchronize(self) -> None: ...

    def wait_event(self, event: Event) -> None: ...

    def wait_stream(self, stream: Stream) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        recorded = event or Event()
        recorded.record(self)
        return recorded

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)


class Event:
    def __init__(self, enable_timing: bool = False, *_: Any, **__: Any) -> None:
        self._at_s: float | None = None
        self.cuda_event = 0

    def record(self, stream: Stream | None = None) -> None:
        self._at_s = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        if self._at_s is None or end._at_s is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._at_s - self._at_s) * 1e3


class DeviceContext:
    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class StreamContext(DeviceContext): ...


class CUDAGraph:
    """Raises when used: a graph would have to record operations that run immediately here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA graphs are not covered by the emulated device")


class Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> Generator:
        return super().__new__(cls, HOST if names_gpu(device) else device)  # type: ignore[call-arg]


def _describe_device(target: dict[str, Any]) -> dict[str, Any]:
    properties = SimpleNamespace(**target)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        **_ignore("init", "_lazy_init", "set_device"),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "device": DeviceContext,
        "device_of": type("device_of", (DeviceContext,), {}),
        "get_device_name": lambda *_, **__: target["name"],
        "get_device_capability": lambda *_, **__: (target["major"], target["minor"]),
        "get_device_properties": lambda *_, **__: properties,
        "get_arch_list": lambda: [f"sm_{target['major']}{target['minor']}"],
        "is_bf16_supported": lambda *_, **__: target["major"] >= 8,
        "is_current_stream_capturing": lambda: False,
        "can_device_access_peer": lambda *_: False,
    }


def _run_at_once() -> dict[str, Any]:
    current = Stream()
    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        **_ignore("synchronize", "set_stream", "ipc_collect"),
        "current_stream": lambda *_, **__: current,
        "default_stream": lambda *_, **__: current,
        "stream": StreamContext,
        "StreamContext": StreamContext,
    }


def _count_memory(target: dict[str, Any]) -> dict[str, Any]:
    counters = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    reset = ("reset_peak_memory_stats", "reset_max_memory_allocated", "empty_cache", "set_per_process_memory_fraction")
    total = target["total_memory"]
    return {
        **{name: lambda *_, **__: 0 for name in counters},
        **_ignore(*reset),
        "mem_get_info": lambda *_, **__: (total, total),
        "memory_stats": lambda *_, **__: {},
        "memory_summary": lambda *_, **__: "",
    }


def _seed() -> dict[str, Any]:
    def seed_all(seed: int) -> None:
        torch.default_generator.manual_seed(int(seed))

    return {
        "manual_seed": seed_all,
        "manual_seed_all": seed_all,
        "seed": lambda: torch.default_generator.seed() and None,
        "seed_all": lambda: torch.default_generator.seed() and None,
        "initial_seed": torch.default_generator.initial_seed,
        "get_rng_state": lambda *_, **__: torch.default_generator.get_state(),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state": lambda new_state, *_, **__: torch.default_generator.set_state(new_state) and None,
    }


def _map_autocast() -> None:
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def begin_on_cpu(self: Any, device_type: str, dtype: torch.dtype | None = None, *args: Any, **more: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, *args, **more)

    autocast.__init__ = begin_on_cpu  # type: ignore[method-assign]
    is_enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype

    def find_dtype(kind: str = "cuda") -> torch.dtype:
        of_cpu = dtype_of("cpu") if is_enabled("cpu") else torch.float16
        return of_cpu if kind == "cuda" else dtype_of(kind)

    mapped = {
        "is_autocast_enabled": lambda kind="cuda": is_enabled("cpu" if kind == "cuda" else kind),
        "get_autocast_dtype": find_dtype,
        "get_autocast_gpu_dtype": find_dtype,
    }
    _replace(torch, mapped)


def _map_library() -> None:
    """Exchange CPU and CUDA in the candidate's registered operators: CUDA tensors are CPU tensors here."""
    implement = Library.impl
    exchanged = {"CUDA": "CPU", "CPU": "CUDA"}

    def implement_exchanged(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **more: Any) -> Any:
        key = exchanged.get(dispatch_key, dispatch_key)
        return implement(self, op_name, _on_gpu(fn), key, **more)  # type: ignore[no-untyped-call]

    Library.impl = implement_exchanged  # type: ignore[method-assign]


def _map_callbacks() -> None:
    """Enter the mode in callbacks and other threads, which torch starts without it."""
    engine = _on_gpu(torch.autograd.graph._engine_run_backward)
    for module in (torch.autograd.graph, torch.autograd):
        _replace(module, {"_engine_run_backward": engine})
    _replace(threading.Thread, {"run": _on_gpu(threading.Thread.run)})


def _on_gpu(function: Any) -> Any:
    if not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_on_gpu_already():
            return function(*args, **kwargs)
        with TensorsOnGpu():
            return function(*args, **kwargs)

    return call


def _keep_mathematical_attention() -> None:
    torch._C._set_sdp_use_math(True)
    _replace(torch._C, {"_set_sdp_use_math": lambda _: None})


def _script_only_torchs(script: Callable[..., Any]) -> Callable[..., Any]:
    """Leave candidate functions unscripted: scripted code bypasses the mode and sees the CPU."""

    def leave_unscripted(function: Any, *args: Any, **more: Any) -> Any:
        is_torchs = getattr(function, "__module__", "").partition(".")[0] == "torch"
        return script(function, *args, **more) if is_torchs else function

    return leave_unscripted


def _leave_uncompiled(model: Any = None, **_: Any) -> Any:
    return model if model is not None else lambda function: function


def _ignore(*names: str) -> dict[str, Any]:
    """Return no-op functions, one object per name: torch's compiler identifies functions by object."""

    def make() -> Any:
        return lambda *_, **__: None

    return {name: make() for name in names}


def _replace(owner: Any, stand_ins: dict[str, Any]) -> None:
    for name, stand_in in stand_ins.items():
        setattr(owner, name, stand_in)
