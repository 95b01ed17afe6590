"""`torch.cuda` in a worker of the emulated device: one GPU like the target, on which everything is done at once.

Candidates and problems run as they are: queries give the target's properties; streams and events have nothing to wait
for; memory is that of the CPU. What cannot be had raises, and says so. The judge's own process is never touched.
"""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.amp.autocast_mode

from harness.worker.emulated_tensors import GPU, HOST, TensorsOnGpu, map_default_device, names_gpu


def install(target: dict[str, Any]) -> None:
    """From now on this process, in this thread, has one GPU. `target` has the names of CUDA's device properties."""
    map_default_device()
    _replace(torch.cuda, _describe_device(target) | _run_at_once() | _count_memory(target) | _seed())
    _replace(
        torch.cuda, {name: type(name, (CUDAGraph,), {}) for name in ("CUDAGraph", "graph", "make_graphed_callables")}
    )
    _replace(torch.cuda.nvtx, _ignore("mark", "range_push", "range_pop"))
    _replace(torch.cuda.nvtx, {"range": type("range", (DeviceContext,), {})})
    _replace(torch, {"compile": _leave_uncompiled, "Stream": Stream, "Event": Event, "Generator": Generator})
    # Recurrent layers would hand their weights to cuDNN, which has nothing to do with tensors of the CPU.
    _replace(torch.backends.cudnn, {"is_acceptable": lambda *_: False})
    _map_autocast()
    _map_library()
    TensorsOnGpu().__enter__()  # type: ignore[no-untyped-call]


class Stream:
    """A stream, or the current one: everything is done when it is asked for, so there is nothing to wait for."""

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
    """A moment; the time between two is the emulation's, and says nothing about a GPU."""

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
    """`with torch.cuda.device(...)` and `with torch.cuda.stream(...)`: there is one of each."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class StreamContext(DeviceContext): ...


class CUDAGraph:
    """Not emulated: a graph would have to record what runs at once here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA graphs are not covered by the emulated device")


class Generator(torch.Generator):
    """A generator of the CPU, for the GPU as well."""

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
        "get_device_name": lambda *_: target["name"],
        "get_device_capability": lambda *_: (target["major"], target["minor"]),
        "get_device_properties": lambda *_: properties,
        "get_arch_list": lambda: [f"sm_{target['major']}{target['minor']}"],
        "is_bf16_supported": lambda *_, **__: target["major"] >= 8,
        "can_device_access_peer": lambda *_: False,
    }


def _run_at_once() -> dict[str, Any]:
    current = Stream()
    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        **_ignore("synchronize", "set_stream", "ipc_collect"),
        "current_stream": lambda *_: current,
        "default_stream": lambda *_: current,
        "stream": StreamContext,
        "StreamContext": StreamContext,
    }


def _count_memory(target: dict[str, Any]) -> dict[str, Any]:
    """What the emulation takes is not what a GPU would."""
    counters = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    reset = ("reset_peak_memory_stats", "reset_max_memory_allocated", "empty_cache", "set_per_process_memory_fraction")
    total = target["total_memory"]
    return {
        **{name: lambda *_: 0 for name in counters},
        **_ignore(*reset),
        "mem_get_info": lambda *_: (total, total),
        "memory_stats": lambda *_: {},
        "memory_summary": lambda *_, **__: "",
    }


def _seed() -> dict[str, Any]:
    """The CPU's generator is the GPU's as well."""
    seed = torch.default_generator.manual_seed
    return {
        "manual_seed": lambda value: seed(int(value)) and None,
        "manual_seed_all": lambda value: seed(int(value)) and None,
        "seed": lambda: torch.default_generator.seed() and None,
        "seed_all": lambda: torch.default_generator.seed() and None,
        "initial_seed": torch.default_generator.initial_seed,
        "get_rng_state": lambda *_: torch.default_generator.get_state(),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state": lambda state, *_: torch.default_generator.set_state(state) and None,
    }


def _map_autocast() -> None:
    """Autocast for CUDA, which means float16 where nothing else is said."""
    autocast = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    def begin_on_cpu(self: Any, device_type: str, dtype: torch.dtype | None = None, *args: Any, **more: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, *args, **more)

    autocast.__init__ = begin_on_cpu  # type: ignore[method-assign]
    is_enabled = torch.is_autocast_enabled
    _replace(torch, {"is_autocast_enabled": lambda kind="cuda": is_enabled("cpu" if kind == "cuda" else kind)})


def _map_library() -> None:
    """Operators that a candidate registers for CUDA are found with tensors of the CPU."""
    library, custom_op = torch.library.Library, torch.library.custom_op
    implement = library.impl

    def implement_on_cpu(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **more: Any) -> Any:
        return implement(self, op_name, fn, "CPU" if dispatch_key == "CUDA" else dispatch_key, **more)  # type: ignore[no-untyped-call]

    def define_on_cpu(*args: Any, device_types: Any = None, **more: Any) -> Any:
        return custom_op(*args, device_types="cpu" if device_types == "cuda" else device_types, **more)

    library.impl = implement_on_cpu  # type: ignore[method-assign]
    _replace(torch.library, {"custom_op": define_on_cpu})


def _leave_uncompiled(model: Any = None, **_: Any) -> Any:
    """`torch.compile` changes how fast a program is, not what it computes."""
    return model if model is not None else lambda function: function


def _ignore(*names: str) -> dict[str, Any]:
    """Functions that do nothing. Each its own: torch's compiler tells functions apart by what they are."""

    def make() -> Any:
        return lambda *_, **__: None

    return {name: make() for name in names}


def _replace(module: ModuleType, stand_ins: dict[str, Any]) -> None:
    for name, stand_in in stand_ins.items():
        setattr(module, name, stand_in)
