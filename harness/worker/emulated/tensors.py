"""CPU tensors that answer as CUDA tensors do, in a worker of the emulated device.

A torch function mode stands between the candidate and torch: whatever names a CUDA device is done on the CPU, and
every tensor says that it lies on `cuda:0`, except those that would lie on the host where there is a GPU: made without
a device or for the CPU, moved there, or computed from such tensors only. That is known of what Python sees: each
tensor bears a mark. One without, such as what an extension returns, is taken for a CUDA tensor, but nothing is refused
for its sake; host and device in one operation are, as on a GPU. What `torch.cuda` says is the part of
`harness.worker.emulated.cuda`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._device as default_device
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

GPU, HOST = torch.device("cuda", 0), torch.device("cpu")
_MARK, _PINNED = "_harness_lies_on", "_harness_is_pinned"
_MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
# Operations that take host and device tensors together, or judge them by rules of their own, as torch's private ones
# do. Where the result lies is known of those that give what their first argument holds.
_OF_THE_FIRST = ("__getitem__", "expand_as", "view_as", "reshape_as", "tensor_split")
_MIXING = frozenset({
    *_OF_THE_FIRST, "__setitem__", "copy_", "index_put", "index_put_", "new_tensor", "set_",
    "ctc_loss", "result_type", "can_cast", "broadcast_tensors", "is_same_size", "is_set_to", "as_tensor", "asarray",
    "tensor", "pack_padded_sequence", "__set__",
})  # fmt: skip
# Where the values stand among the arguments: a sparse tensor lies where they do, wherever its indices came from.
_SPARSE_VALUES = {"sparse_coo_tensor": 1} | dict.fromkeys(
    ("sparse_compressed_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor"), 2
)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")  # with the batch sizes of a packed sequence, which lie on the host
_PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")  # give them, or lengths, as their second result
# What autocast does in float32 on a GPU, by torch's list of such operations, and not on a CPU.
_IN_FLOAT32 = frozenset({
    "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "binary_cross_entropy_with_logits", "cdist",
    "cosh", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp",
    "expm1", "group_norm", "hinge_embedding_loss", "huber_loss", "interpolate", "kl_div", "l1_loss", "layer_norm",
    "log", "log10", "log1p", "log2", "log_softmax", "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nll_loss", "norm", "normalize", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal",
    "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan",
    "triplet_margin_loss", "upsample",
})  # fmt: skip


class TensorsOnGpu(TorchFunctionMode):
    """Enter it once, in the thread that runs the candidate."""

    def __init__(self) -> None:
        super().__init__()
        self._constructors = default_device._device_constructors()
        tensor: Any = torch.Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: lambda one: one.device if one.is_meta else HOST if lies_on_host(one) else GPU,
            tensor.is_cuda.__get__: lambda one: not lies_on_host(one),
            tensor.is_cpu.__get__: lies_on_host,
            tensor.get_device: lambda one: -1 if lies_on_host(one) else 0,
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
            tensor.is_pinned: lambda one, *_, **__: lies_on_host(one),
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
        place = _choose_place(func, wanted, args, given)
        if name in _IN_FLOAT32 and torch.is_autocast_enabled("cuda"):
            args = map_tensors(_to_float32, args)
            given = {key: map_tensors(_to_float32, one) for key, one in given.items()}
        result = func(*args, **given)
        if of_tensor and func in (torch.as_tensor, torch.asarray):
            return self._move(args[0], result, place or _place_of(args[0]))
        if name in _PACKING:
            self._mark(result[0], _place_of(args[0]))
            self._mark(result[1], HOST)
        self._mark(result, place)
        return self._pin(result) if wants_pinned else result

    def _convert(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """`Tensor.to`: a device, a dtype, both, or those of another tensor."""
        devices = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.device | str | int)]
        devices = [one for one in devices if not isinstance(one, bool)]
        place = _find_example(args, kwargs) or _place_of(tensor)
        if devices:
            place = GPU if names_gpu(devices[0]) else HOST
        real_args = [HOST if names_gpu(one) else one for one in args]
        real: dict[str, Any] = {name: HOST if names_gpu(one) else one for name, one in kwargs.items()}
        return self._move(tensor, tensor.to(*real_args, **real), place)  # type: ignore[arg-type]

    def _parse_to(self, *args: Any, **kwargs: Any) -> Any:
        """What `Module.to` was asked for: torch would say of a tensor that it lies where it lies here."""
        device, *more = torch._C._nn._parse_to(*args, **kwargs)
        return (_find_example(args, kwargs) or device, *more)

    def _copy_deeply(self, tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        """The memo holds tensors of everywhere."""
        copied: torch.Tensor = tensor.__deepcopy__(memo)  # type: ignore[no-untyped-call]
        copied.__dict__.pop(_MARK, None)  # it has copied the mark as well
        self._mark(copied, _place_of(tensor))
        return copied

    def _pin(self, tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """In memory of the host that kernels reach."""
        if is_pinned(tensor):
            return tensor
        pinned = tensor.clone()
        pinned.__dict__.update({_MARK: HOST, _PINNED: True})
        return pinned

    def _set_data(self, tensor: torch.Tensor, data: torch.Tensor) -> None:
        """How a module moves its parameters."""
        tensor.data = data
        tensor.__dict__.pop(_MARK, None)
        self._mark(tensor, _place_of(data))

    def _move(self, before: torch.Tensor, moved: torch.Tensor, place: torch.device | None) -> torch.Tensor:
        """Another device means another memory."""
        if moved is before:
            if place is None or _place_of(before) is place:
                return before
            if is_lazy(before):  # it has no memory yet
                before.__dict__[_MARK] = place
                return before
            # Where it lies may not be known: then it is another view of the same memory.
            moved = before.clone() if lies_on_host(before) or place is HOST else torch.ops.aten.alias(before)
            moved.__dict__.pop(_MARK, None)
        self._mark(moved, place)
        return moved

    def _mark(self, result: Any, place: torch.device | None) -> None:
        """What has a mark keeps it: it is what an operation wrote into."""
        if place is not None:
            for tensor in find_tensors((result,)):
                tensor.__dict__.setdefault(_MARK, place)


def place_on_gpu(tensors: Iterable[torch.Tensor]) -> None:
    """Says of tensors that were made in other ways where they lie."""
    for tensor in tensors:
        tensor.__dict__[_MARK] = GPU


def lies_on_host(tensor: torch.Tensor) -> bool:
    """Whether the tensor would lie in the memory of the CPU where there is a GPU."""
    return _place_of(tensor) is HOST


def is_pinned(tensor: torch.Tensor) -> bool:
    return _PINNED in tensor.__dict__


def forget_place(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory in a tensor of which it is not known where it lies."""
    other: torch.Tensor = torch.ops.aten.alias(tensor)
    other.__dict__.pop(_MARK, None)
    return other


def _place_of(tensor: torch.Tensor) -> torch.device | None:
    """HOST, GPU, or None: not known."""
    mark = tensor.__dict__.get(_MARK)  # another object, in what was copied or loaded
    return None if mark is None else GPU if mark == GPU else HOST


def _find_example(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Where the tensor lies beside which something is to be put: on the GPU, if that is not known. None: no tensor."""
    others = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
    return (_place_of(others[0]) or GPU) if others else None


def _choose_place(func: Any, wanted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Where the result of an operation would lie. Raises RuntimeError, as torch does, where it takes tensors of both
    places; a number in a tensor without dimensions may lie on the host."""
    if wanted is not None:
        return GPU if names_gpu(wanted) else HOST
    name = getattr(func, "__name__", "")
    if name in _SPARSE_VALUES:
        values = kwargs.get("values", next(iter(args[_SPARSE_VALUES[name] :]), None))
        return _place_of(values) if isinstance(values, torch.Tensor) else HOST
    if name in _RECURRENT and len(args) > 1 and isinstance(args[1], torch.Tensor) and args[1].dtype is torch.int64:
        args = (args[0], *args[2:])
    tensors = list(find_tensors((*args, *kwargs.values())))
    if name in _MIXING or re.match("_(?!_)", name):
        return _place_of(tensors[0]) if tensors and name in _OF_THE_FIRST else None
    places = {_place_of(tensor) for tensor in tensors}
    if places == {HOST}:
        return HOST
    if GPU not in places:
        return None
    is_torchs = not isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    if is_torchs and any(lies_on_host(tensor) and tensor.dim() and tensor.numel() for tensor in tensors):
        raise RuntimeError(_MIXED)
    return GPU


def _require_host(tensor: torch.Tensor) -> torch.Tensor:
    if _place_of(tensor) is GPU:
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return tensor


def names_gpu(value: Any) -> bool:
    """Whether that is a CUDA device, by name, object or index."""
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, int) and not isinstance(value, bool)


def is_on_gpu_already() -> bool:
    """Whether a `TensorsOnGpu` is asked before torch does something."""
    return any(isinstance(mode, TensorsOnGpu) for mode in _get_current_function_mode_stack())  # type: ignore[no-untyped-call]


def map_default_device() -> None:
    """Has `with torch.device("cuda")` and `torch.set_default_device` work where torch's own functions ask for a tensor,
    for which no `TensorsOnGpu` is called."""

    def construct(self: Any, func: Any, _: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        given = dict(kwargs or {})
        if given.get("device") is None and func in default_device._device_constructors():
            given["device"] = HOST if names_gpu(self.device) and not is_on_gpu_already() else self.device
        return func(*args, **given)

    default_device.DeviceContext.__torch_function__ = construct  # type: ignore[method-assign]


def find_tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from find_tensors(value)
        elif isinstance(value, dict):
            yield from find_tensors(value.values())


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """A tensor, or those in lists and tuples, changed; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return change(value)
    return type(value)(map_tensors(change, one) for one in value) if type(value) in (list, tuple) else value


def _to_float32(tensor: torch.Tensor) -> torch.Tensor:
    """Of half precision; where it lies stays known."""
    if tensor.dtype not in (torch.float16, torch.bfloat16):
        return tensor
    converted = tensor.float()
    converted.__dict__.update({_MARK: place} if (place := _place_of(tensor)) else {})
    return converted
