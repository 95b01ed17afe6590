"""CPU tensors that behave as CUDA tensors, in a worker of the emulated device.

A torch function mode redirects CUDA devices to the CPU and marks results as host or GPU tensors; mixing both raises.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._device as default_device
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from harness.protocol import list_leaves, map_leaves

GPU, HOST = torch.device("cuda", 0), torch.device("cpu")
_MARK, _PINNED = "_harness_lies_on", "_harness_is_pinned"
_EMPTY = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"))
_MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
# Operations that accept host and device tensors together, or check devices by their own rules, as torch's private ones
# do. The result of those that return their first argument's values is on that argument's device.
_OF_THE_FIRST = ("__getitem__", "expand_as", "view_as", "reshape_as", "tensor_split")
_MIXING = frozenset({
    *_OF_THE_FIRST, "__setitem__", "copy_", "index_put", "index_put_", "new_tensor", "set_",
    "ctc_loss", "result_type", "can_cast", "broadcast_tensors", "is_same_size", "is_set_to", "as_tensor", "asarray",
    "tensor", "pack_padded_sequence", "__set__",
})  # fmt: skip
# Position of the values among the arguments: a sparse tensor is on their device, wherever its indices are.
_SPARSE_VALUES = {"sparse_coo_tensor": 1} | dict.fromkeys(
    ("sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor"), 2
)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")  # with batch sizes of a packed sequence, which are host tensors
_PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")  # return batch sizes or lengths as their second result
# What autocast runs in float32 on a GPU (torch's list), but not on a CPU.
_IN_FLOAT32 = frozenset({
    "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "binary_cross_entropy_with_logits", "cdist",
    "cosh", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp",
    "expm1", "group_norm", "hinge_embedding_loss", "huber_loss", "interpolate", "kl_div", "l1_loss", "layer_norm",
    "log", "log10", "log1p", "log2", "log_softmax", "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nll_loss", "norm", "normalize", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal",
    "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan",
    "triplet_margin_loss", "upsample",
})  # fmt: skip

_FILLS: list[Callable[[torch.Tensor], None]] = []  # called for every new tensor without values
_WATCHERS: list[Callable[[torch.Tensor], None]] = []  # called for every tensor that is marked as on the GPU


class TensorsOnGpu(TorchFunctionMode):
    """Enter once, in the thread that runs the candidate."""

    def __init__(self) -> None:
        super().__init__()
        self._constructors = default_device._device_constructors()
        tensor: Any = torch.Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: lambda one: one.device if one.is_meta else HOST if is_on_host(one) else GPU,
            tensor.is_cuda.__get__: lambda one: not is_on_host(one),
            tensor.is_cpu.__get__: is_on_host,
            tensor.get_device: lambda one: -1 if is_on_host(one) else 0,
            tensor.cpu: lambda one, *_, **__: self._move(one, one, HOST),
            tensor.cuda: lambda one, *_, **__: self._move(one, one, GPU),
            tensor.to: self._convert,
            tensor.type_as: self._convert,
            tensor.data.__set__: self._set_data,
            tensor.numpy: lambda one, *args, **more: _require_host(one).numpy(*args, **more),
            tensor.__array__: lambda one, dtype=None: _require_host(one).__array__(dtype),  # type: ignore[no-untyped-call]
            tensor.__deepcopy__: self._copy_deeply,
            torch._C._nn._parse_to: self._parse_to,
            tensor.pin_memory: self._pin,
            tensor.is_pinned: lambda one, *_, **__: is_on_host(one),
        }

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        answer = self._answers.get(func)
        if answer is not None:
            return answer(*args, **(kwargs or {}))
        given, name = dict(kwargs or {}), getattr(func, "__name__", "")
        wanted = given.get("device")
        of_tensor = bool(args) and isinstance(args[0], torch.Tensor)
        if wanted is None and func in self._constructors and not of_tensor and name not in _SPARSE_VALUES:
            wanted = default_device.CURRENT_DEVICE or HOST
        wants_pinned = given.pop("pin_memory", False)
        if wanted is not None:
            given["device"] = HOST if names_gpu(wanted) else wanted
        location = _choose_device(func, wanted, args, given)
        if name in _IN_FLOAT32 and torch.is_autocast_enabled("cuda"):
            args, given = map_tensors(_to_float32, (args, given))
        result = func(*args, **given)
        if of_tensor and func in (torch.as_tensor, torch.asarray):
            return self._move(args[0], result, location or _device_of(args[0]))
        if name in _PACKING:
            self._mark(result[0], _device_of(args[0]))
            self._mark(result[1], HOST)
        self._mark(result, location)
        if _FILLS and name in _EMPTY:
            with torch._C.DisableTorchFunction():
                _FILLS[0](result)
        return self._pin(result) if wants_pinned else result

    def _convert(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        devices = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.device | str | int)]
        devices = [one for one in devices if not isinstance(one, bool)]
        location = _find_example(args, kwargs) or _device_of(tensor)
        if devices:
            location = GPU if names_gpu(devices[0]) else HOST
        real_args = [HOST if names_gpu(one) else one for one in args]
        real: dict[str, Any] = {name: HOST if names_gpu(one) else one for name, one in kwargs.items()}
        return self._move(tensor, tensor.to(*real_args, **real), location)  # type: ignore[arg-type]

    def _parse_to(self, *args: Any, **kwargs: Any) -> Any:
        """Read the arguments of `to` here, since torch would use the real device of a tensor argument."""
        device, *more = torch._C._nn._parse_to(*args, **kwargs)
        return (_find_example(args, kwargs) or device, *more)

    def _copy_deeply(self, tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        """Copy the mark too. The memo may hold tensors of both devices."""
        copied: torch.Tensor = tensor.__deepcopy__(memo)  # type: ignore[no-untyped-call]
        copied.__dict__.pop(_MARK, None)  # the mark was copied too
        self._mark(copied, _device_of(tensor))
        return copied

    def _pin(self, tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        if is_pinned(tensor):
            return tensor
        pinned = tensor.clone()
        pinned.__dict__.update({_MARK: HOST, _PINNED: True})
        return pinned

    def _set_data(self, tensor: torch.Tensor, data: torch.Tensor) -> None:
        tensor.data = data
        tensor.__dict__.pop(_MARK, None)
        self._mark(tensor, _device_of(data))

    def _move(self, before: torch.Tensor, moved: torch.Tensor, location: torch.device | None) -> torch.Tensor:
        if moved is before:
            if location is None or _device_of(before) is location:
                return before
            if is_lazy(before):  # has no memory yet
                before.__dict__[_MARK] = location
                return before
            # If its device is unknown, return another view of the same memory.
            moved = before.clone() if is_on_host(before) or location is HOST else torch.ops.aten.alias(before)
            moved.__dict__.pop(_MARK, None)
        self._mark(moved, location)
        return moved

    def _mark(self, result: Any, location: torch.device | None) -> None:
        """Keep an existing mark: the operation wrote into that tensor."""
        if location is not None:
            for tensor in find_tensors(result):
                if tensor.__dict__.setdefault(_MARK, location) is GPU:
                    _tell_watchers(tensor)


def fill_new_tensors(fill: Callable[[torch.Tensor], None]) -> None:
    _FILLS[:] = [fill]


def watch_gpu_tensors(watch: Callable[[torch.Tensor], None]) -> None:
    _WATCHERS.append(watch)


def mark_as_gpu(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        tensor.__dict__[_MARK] = GPU
        _tell_watchers(tensor)


def _tell_watchers(tensor: torch.Tensor) -> None:
    for watch in _WATCHERS:
        with torch._C.DisableTorchFunction():
            watch(tensor)


def is_on_host(tensor: torch.Tensor) -> bool:
    return _device_of(tensor) is HOST


def is_pinned(tensor: torch.Tensor) -> bool:
    return _PINNED in tensor.__dict__


def forget_device(tensor: torch.Tensor) -> torch.Tensor:
    other: torch.Tensor = torch.ops.aten.alias(tensor)
    other.__dict__.pop(_MARK, None)
    return other


def _device_of(tensor: torch.Tensor) -> torch.device | None:
    mark = tensor.__dict__.get(_MARK)  # a copied or loaded mark is another object
    return None if mark is None else GPU if mark == GPU else HOST


def _find_example(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Return the device of the first tensor argument (GPU if unknown); None without tensors."""
    others = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
    return (_device_of(others[0]) or GPU) if others else None


def _choose_device(func: Any, wanted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Return the result's device. Raises RuntimeError for mixed devices, as torch; 0-dim host tensors may be mixed."""
    if wanted is not None:
        return GPU if names_gpu(wanted) else HOST
    name = getattr(func, "__name__", "")
    if name in _SPARSE_VALUES:
        values = kwargs.get("values", next(iter(args[_SPARSE_VALUES[name] :]), None))
        return _device_of(values) if isinstance(values, torch.Tensor) else HOST
    if name in _RECURRENT and len(args) > 1 and isinstance(args[1], torch.Tensor) and args[1].dtype is torch.int64:
        args = (args[0], *args[2:])
    tensors = list(find_tensors((*args, *kwargs.values())))
    if name in _MIXING or re.match("_(?!_)", name):
        return _device_of(tensors[0]) if tensors and name in _OF_THE_FIRST else None
    locations = {_device_of(tensor) for tensor in tensors}
    if locations == {HOST}:
        return HOST
    if GPU not in locations:
        return None
    is_torchs = not isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    if is_torchs and any(is_on_host(tensor) and tensor.dim() and tensor.numel() for tensor in tensors):
        raise RuntimeError(_MIXED)
    return GPU


def _require_host(tensor: torch.Tensor) -> torch.Tensor:
    if _device_of(tensor) is GPU:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return tensor


def names_gpu(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, int) and not isinstance(value, bool)


def is_on_gpu_already() -> bool:
    return any(isinstance(mode, TensorsOnGpu) for mode in _get_current_function_mode_stack())  # type: ignore[no-untyped-call]


def map_default_device() -> None:
    """torch's own functions bypass function modes."""

    def construct(self: Any, func: Any, _: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        given = dict(kwargs or {})
        if given.get("device") is None and func in default_device._device_constructors():
            given["device"] = HOST if names_gpu(self.device) and not is_on_gpu_already() else self.device
        return func(*args, **given)

    default_device.DeviceContext.__torch_function__ = construct  # type: ignore[method-assign]


def find_tensors(value: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in list_leaves(value) if isinstance(leaf, torch.Tensor))


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    return map_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def _to_float32(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype not in (torch.float16, torch.bfloat16):
        return tensor
    converted = tensor.float()
    converted.__dict__.update({_MARK: location} if (location := _device_of(tensor)) else {})
    return converted
