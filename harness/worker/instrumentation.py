"""Attributes the time of a call, in a worker that is never timed.

It wraps functions of extensions, to show them in torch's profiler ("profile") or to suppress their effect ("ablate";
"ablate_generated" for graphs compiled by torch). In mode "count" a profiler outside measures. The candidate can forge
the results.
"""

import bisect
import copy
import functools
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler import record_function

from harness.protocol import count_span, list_leaves, map_leaves

CUSTOM_RANGE = "own::"
CALL_RANGE = "harness::call"
MAX_CALLS = 20
ENOUGH_S = 0.1  # stop repeating after this time
MAX_ROWS = 400
MAX_NAME = 200
USUAL_FLOOR = 1 << 31  # of addresses
_DRIVER_CALL = re.compile(r"cu(da)?[A-Z]")
_HEAP = re.compile(r"^([0-9a-f]+)-.*\[heap\]$", re.MULTILINE)
_MAPPED_FILE = re.compile(r"^\S+ ..x\S* \S+ \S+ \d+ +(/.*)$", re.MULTILINE)


class Observer:
    """Construct it before the candidate is loaded: what is mapped then is not the candidate's."""

    def __init__(self, mode: str, scratch: Path) -> None:
        self._mode = mode
        self._scratch = scratch
        self._mapped_before = frozenset(list_mapped_files())
        self._operators: set[str] = set()
        self._conclusive = True
        self.is_ablating = False
        self.compiled_folders = [_find_inductor_cache, _find_triton_cache]

    @property
    def ablates(self) -> bool:
        return self._mode == "ablate"

    def doubt(self) -> None:
        """Some effect cannot be suppressed."""
        self._conclusive = False

    def watch(self, load: Callable[[], Any]) -> Any:
        if self._mode in ("plain", "count"):
            return load()
        known = _operator_names()
        loaded = load()
        new = _operator_names() - known
        self._operators |= new
        if self.ablates:
            self._replace_operators(new)
        if isinstance(loaded, ModuleType):
            for name, value in list(vars(loaded).items()):
                if isinstance(value, type):
                    self._conclusive = False  # methods of its classes cannot be replaced
                elif callable(value) and not name.startswith("__"):
                    call = self.ablate if self.ablates else functools.partial(_call_in_range, name)
                    setattr(loaded, name, StandIn(value, call))
        elif not new:
            self._conclusive = False  # functions called through ctypes cannot be replaced
        return loaded

    def watch_compiled_graphs(self) -> None:
        if self._mode != "ablate_generated":
            return
        from torch._inductor.output_code import CompiledFxGraph

        run = CompiledFxGraph.__call__
        CompiledFxGraph.__call__ = lambda graph, inputs: call_without_effect(
            functools.partial(run, graph), (inputs,), {}
        )

    def ablates_everything(self) -> bool:
        """True if all candidate code was called as usual and none took effect."""
        return self._conclusive and not self._find_libraries()

    def _find_libraries(self) -> list[str]:
        found = find_candidate_libraries(self._scratch, self.compiled_folders)
        return [path for path in found if path not in self._mapped_before]

    def profile(self, call: Callable[[], None], device: torch.device) -> dict[str, Any]:
        """Profile a few synchronised calls and report the fastest. Times are in µs.

        `host` is self time by range or operator of the calling thread; `kernels` is device time by (launching range,
        kernel).
        """
        if self._mode == "count":
            call()  # compiles, tunes, allocates
            with torch.cuda.profiler.profile():
                call()
            return {}
        on_gpu = device.type == "cuda"
        with torch.autograd.profiler.profile(use_kineto=True, use_device="cuda" if on_gpu else None) as profiler:
            _repeat(call)
        events = list(profiler.function_events or ())
        calls = [event for event in events if event.name == CALL_RANGE and _is_on_host(event)]
        fastest = min(calls, key=lambda event: event.time_range.elapsed_us())
        events = [event for event in events if _lies_in(event, fastest)]
        host = [event for event in events if _is_on_host(event) and event.thread == fastest.thread]
        return {
            "total_us": fastest.time_range.elapsed_us(),
            "host": _largest(((self._mark(event.name),), event.self_cpu_time_total) for event in host),
            "kernels": _largest(self._list_kernels(events, host)) if on_gpu else [],
            "libraries": self._find_libraries()[:20],
        }

    def _replace_operators(self, names: Iterable[str]) -> None:
        for name in names:
            namespace, _, operator = name.partition("::")
            holder = getattr(torch.ops, namespace)
            setattr(holder, operator, StandIn(getattr(holder, operator), self.ablate))

    def ablate(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result is inconclusive if the call raises or may take addresses."""
        so_far, self._conclusive = self._conclusive, False
        if _holds_address((args, kwargs)) or not _holds_tensor((args, kwargs)):
            return None
        outer, self.is_ablating = self.is_ablating, True
        try:
            result = call_without_effect(function, args, kwargs)
        finally:
            self.is_ablating = outer
        self._conclusive = so_far
        return result

    def _mark(self, name: str) -> str:
        return CUSTOM_RANGE + name if name in self._operators else name

    def _list_kernels(self, events: list[Any], host: list[Any]) -> Iterable[tuple[tuple[str, ...], float]]:
        launches = {event.id: event for event in events if _is_on_host(event) and _DRIVER_CALL.match(event.name)}
        ranges = [event for event in host if not _DRIVER_CALL.match(event.name)]
        starts, names = [event.time_range.start for event in ranges], {event.name for event in ranges}
        for event in events:
            launch = launches.get(event.id)
            if _is_on_host(event) or event.name.startswith((CUSTOM_RANGE, CALL_RANGE)):
                continue
            if launch is None and event.name in names:
                continue  # ranges appear on the device too, and Inductor's are named like its kernels
            launcher = "" if launch is None else _find_range(ranges, starts, launch.time_range.start)
            yield (self._mark(launcher), event.name), event.time_range.elapsed_us()


def find_candidate_libraries(scratch: Path, compiled_folders: Iterable[Callable[[], str | None]] = ()) -> list[str]:
    """Excludes the hook's extensions and the files in folders that compilers write."""
    compiled = tuple(filter(None, (find() for find in compiled_folders)))
    found = []
    for path in list_mapped_files():
        inside = path.startswith((f"{scratch}/", "/memfd:"))
        if inside and not path.startswith((f"{scratch}/extensions/", *compiled)):
            found.append(path)
    return found


def list_mapped_files() -> Iterable[str]:
    return dict.fromkeys(_MAPPED_FILE.findall(Path("/proc/self/maps").read_text()))


def _find_inductor_cache() -> str | None:
    if "torch._inductor" not in sys.modules:
        return None
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return str(cache_dir())


def _find_triton_cache() -> str | None:
    """Triton's launchers, also of kernels that Inductor generates."""
    if "triton" not in sys.modules:
        return None
    from triton import knobs

    return str(knobs.cache.dir)


def _operator_names() -> set[str]:
    return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}


def _is_on_host(event: Any) -> bool:
    return bool(event.device_type == DeviceType.CPU and not event.is_async)


def _lies_in(event: Any, outer: Any) -> bool:
    return bool(outer.time_range.start <= event.time_range.start <= outer.time_range.end)


def _repeat(call: Callable[[], None]) -> None:
    began_s = time.perf_counter()
    for _ in range(MAX_CALLS):
        with record_function(CALL_RANGE):
            call()
        if time.perf_counter() - began_s > ENOUGH_S:
            return


def _largest(times: Iterable[tuple[tuple[str, ...], float]]) -> list[list[Any]]:
    totals: dict[tuple[str, ...], float] = defaultdict(float)
    for names, spent_us in times:
        totals[tuple(name[:MAX_NAME] for name in names)] += spent_us
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return [[*names, spent_us] for names, spent_us in ordered[:MAX_ROWS]]


def _find_range(ranges: list[Any], starts: list[float], at_us: float) -> str:
    position = bisect.bisect_right(starts, at_us) - 1
    while position >= 0 and ranges[position].time_range.end < at_us:
        position -= 1
    return str(ranges[position].name) if position >= 0 else ""


class StandIn:
    """Callable proxy. Like compiled functions, it does not become a method when stored in a class."""

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        self._function = function
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._function, args, kwargs)

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "_function":
            raise AttributeError(name)  # copy.copy asks before the object is filled
        value = getattr(self._function, name)
        return StandIn(value, self._call) if callable(value) else value


def _call_in_range(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with record_function(CUSTOM_RANGE + name):
        return function(*args, **kwargs)


def call_without_effect(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call on copies; results and tensors that would have changed get wrong values."""
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    def make_copy(tensor: torch.Tensor) -> torch.Tensor:
        pairs.append((tensor, _copy_with_strides(tensor.detach())))
        return pairs[-1][1]

    args, kwargs = _map_tensors((args, kwargs), make_copy)
    result = function(*args, **kwargs)
    for original, worked_on in pairs:
        if not torch.equal(original.reshape(-1).view(torch.uint8), worked_on.reshape(-1).view(torch.uint8)):
            original.copy_(poison(original))
            worked_on.copy_(poison(worked_on))  # its memory may be reused as if correctly written
    return _map_tensors(result, lambda tensor: tensor.copy_(poison(tensor)))


def _copy_with_strides(tensor: torch.Tensor) -> torch.Tensor:
    """Keep the gaps of a view, which `clone` would close: kernels get strides as numbers."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return tensor.clone()
    flat = tensor.as_strided((count_span(tensor.shape, tensor.stride()),), (1,))
    return flat.clone().as_strided(tensor.shape, tensor.stride())


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fill with wrong values; finite ones, so that multiplication by zero does not expose them."""
    if tensor.dtype == torch.bool:
        return tensor.logical_not()
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.full_like(tensor, torch.finfo(tensor.dtype).max / 4)
    return tensor + 1


def _map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def change_leaf(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return change(leaf)
        wrapped = _find_wrapped(leaf)
        return leaf if wrapped is None else _wrap_again(leaf, change(wrapped))

    return map_leaves(value, change_leaf)


def _find_wrapped(value: Any) -> torch.Tensor | None:
    base = getattr(value, "base", None)
    return base if isinstance(base, torch.Tensor) else None


def _wrap_again(wrapper: Any, tensor: torch.Tensor) -> Any:
    other = copy.copy(wrapper)
    other.base = tensor
    if hasattr(other, "data"):  # of `triton.reinterpret`
        other.data = tensor
    return other


def _leaves(value: Any) -> Iterator[Any]:
    for leaf in list_leaves(value):
        wrapped = _find_wrapped(leaf)
        yield leaf if wrapped is None else wrapped


def _holds_tensor(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in _leaves(value))


@functools.cache
def _find_pointer_floor() -> int:
    """Larger integers may be addresses. The heap of a Python that is always loaded at the same address lies low."""
    found = _HEAP.search(Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"))
    return min(int(found[1], 16) if found else USUAL_FLOOR, USUAL_FLOOR)


def _holds_address(value: Any) -> bool:
    floor = _find_pointer_floor()
    return any(
        bool((leaf >= floor).any())
        if isinstance(leaf, torch.Tensor) and leaf.dtype is torch.int64
        else isinstance(leaf, int) and leaf >= floor
        for leaf in _leaves(value)
    )
