"""CPU tensors that answer as CUDA tensors do, in a worker of the emulated device.

A torch function mode stands between the candidate and torch: whatever names a CUDA device is done on the CPU, and
every tensor says that it lies on `cuda:0`, except those that would lie on the host where there is a GPU: made without
a device or for the CPU, moved there, or computed from such tensors only. That is known of what Python sees; tensors
that an extension returns are taken for CUDA tensors. What `torch.cuda` says is the part of
`harness.worker.emulated_cuda`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._device as default_device
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

GPU, HOST = torch.device("cuda", 0), torch.device("cpu")
_HOST_MARK = "_harness_lies_on_host"


class TensorsOnGpu(TorchFunctionMode):
    """Enter it once, in the thread that runs the candidate."""

    def __init__(self) -> None:
        super().__init__()
        self._constructors = default_device._device_constructors()
        self._some_on_host = False
        tensor: Any = torch.Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: lambda one: HOST if lies_on_host(one) else GPU,
            tensor.is_cuda.__get__: lambda one: not lies_on_host(one),
            tensor.is_cpu.__get__: lies_on_host,
            tensor.get_device: lambda one: -1 if lies_on_host(one) else 0,
            tensor.cpu: lambda one, *_, **__: self._move(one, one, to_host=True),
            tensor.cuda: lambda one, *_, **__: self._move(one, one, to_host=False),
            tensor.to: self._convert,
            tensor.data.__set__: self._set_data,
            tensor.pin_memory: lambda one, *_, **__: one,
            tensor.is_pinned: lambda one, *_, **__: lies_on_host(one),
            tensor.record_stream: lambda *_, **__: None,
        }

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        answer = self._answers.get(func)
        if answer is not None:
            return answer(*args, **(kwargs or {}))
        given = dict(kwargs or {})
        wanted = given.get("device")
        of_tensor = bool(args) and isinstance(args[0], torch.Tensor)
        if wanted is None and func in self._constructors and not of_tensor:
            wanted = default_device.CURRENT_DEVICE or HOST
        if given.get("pin_memory"):
            del given["pin_memory"]
        if wanted is not None and func is not torch._C._nn._parse_to:
            given["device"] = HOST if names_gpu(wanted) else wanted
        on_host = self._would_lie_on_host(wanted, args, given)
        result = func(*args, **given)
        if of_tensor and func in (torch.as_tensor, torch.asarray):
            return self._move(args[0], result, to_host=on_host)
        if on_host:
            self._mark(result)
        return result

    def _would_lie_on_host(self, wanted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if wanted is not None:
            return not names_gpu(wanted)
        if not self._some_on_host:
            return False
        tensors = list(_find_tensors((*args, *kwargs.values())))
        return bool(tensors) and all(map(lies_on_host, tensors))

    def _convert(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """`Tensor.to`: a device, a dtype, both, or those of another tensor."""
        devices = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.device | str | int)]
        devices = [one for one in devices if not isinstance(one, bool)]
        others = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        to_host = lies_on_host(others[0]) if others else lies_on_host(tensor)
        if devices:
            to_host = not names_gpu(devices[0])
        real_args = [HOST if names_gpu(one) else one for one in args]
        real: dict[str, Any] = {name: HOST if names_gpu(one) else one for name, one in kwargs.items()}
        return self._move(tensor, tensor.to(*real_args, **real), to_host=to_host)  # type: ignore[arg-type]

    def _set_data(self, tensor: torch.Tensor, data: torch.Tensor) -> None:
        """How a module moves its parameters."""
        tensor.data = data
        tensor.__dict__.pop(_HOST_MARK, None)
        if lies_on_host(data):
            self._mark(tensor)

    def _move(self, before: torch.Tensor, moved: torch.Tensor, *, to_host: bool) -> torch.Tensor:
        """Another device means another memory."""
        if moved is before:
            if lies_on_host(before) == to_host:
                return before
            moved = before.clone()
            moved.__dict__.pop(_HOST_MARK, None)
        if to_host:
            self._mark(moved)
        return moved

    def _mark(self, result: Any) -> None:
        for tensor in _find_tensors((result,)):
            tensor.__dict__[_HOST_MARK] = True
            self._some_on_host = True


def lies_on_host(tensor: torch.Tensor) -> bool:
    """Whether the tensor would lie in the memory of the CPU where there is a GPU."""
    return _HOST_MARK in tensor.__dict__


def names_gpu(value: Any) -> bool:
    """Whether that is a CUDA device, by name, object or index."""
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, int) and not isinstance(value, bool)


def map_default_device() -> None:
    """Has `with torch.device("cuda")` and `torch.set_default_device` work where torch's own functions ask for a tensor,
    for which no `TensorsOnGpu` is called."""

    def construct(self: Any, func: Any, _: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        given = dict(kwargs or {})
        if given.get("device") is None and func in default_device._device_constructors():
            is_mapped_later = any(isinstance(mode, TensorsOnGpu) for mode in _get_current_function_mode_stack())  # type: ignore[no-untyped-call]
            given["device"] = HOST if names_gpu(self.device) and not is_mapped_later else self.device
        return func(*args, **given)

    default_device.DeviceContext.__torch_function__ = construct  # type: ignore[method-assign]


def _find_tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _find_tensors(value)
        elif isinstance(value, dict):
            yield from _find_tensors(value.values())
