"""Puts kernels into a model. `harness apply` copies this file, so it imports nothing but torch.

The modules of the model stay: their parameters, state_dict and hooks are unchanged. Only `forward` of the instance is
replaced. Calls for which a kernel was not verified (other shapes, dtypes, constants, gradients) use the module itself.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, fx, nn
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

Plan = Mapping[str, Any]  # problem, paths, inputs, outputs, arguments, shapes, frozen, backward, outlines
Bounds = Sequence[Sequence[tuple[int, int]]]  # of each size of each tensor
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
CONTAINERS = (list, tuple, dict)
CONSTANTS = (int, bool, str, type(None), torch.dtype, torch.device)
TENSOR = "Tensor "  # begins the text of an argument that is one
OUTLINE = "_outline"  # attribute of a module


def list_arguments(arguments: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and value of each argument that is no list, tuple or dict."""
    for key, value in arguments.items() if type(arguments) is dict else enumerate(arguments):
        name = f"{prefix}{key}"
        name = name if name.isidentifier() else re.sub(r"\W", "_", name)
        if type(value) in CONTAINERS:
            yield from list_arguments(value, f"{name}_")
        else:
            yield name, value


def map_arguments(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) is dict:
        return {key: map_arguments(one, change) for key, one in value.items()}
    return type(value)([map_arguments(one, change) for one in value]) if type(value) in CONTAINERS else change(value)


class TensorSlot:
    """Stands for a tensor among the arguments of a call."""

    __slots__ = ()


def take_tensors(module: nn.Module, arguments: Mapping[str, Any], positional: int) -> nn.Module:
    """Return a copy, with the same state, whose `forward` takes the tensors of such a call alone, in their order. The
    first arguments are `positional`."""
    own = copy.copy(module)
    forward = vars(own).pop("forward", None) or partial(type(module).forward, own)
    names = ", ".join(name for name, leaf in list_arguments(arguments) if isinstance(leaf, TensorSlot))

    def call(*tensors: Tensor) -> Any:
        given = iter(tensors)
        filled = map_arguments(arguments, lambda leaf: next(given) if isinstance(leaf, TensorSlot) else leaf)
        names = list(filled)
        return forward(*(filled[one] for one in names[:positional]), **{one: filled[one] for one in names[positional:]})

    written = eval(f"lambda self, {names}: call({names})", {"call": call})  # torch.fx and torch.export read the names
    own.__class__ = type(type(module).__name__, (type(module),), {"forward": written})
    return own


def summarise_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return all that decides whether a kernel was verified for the call, or None if it has other arguments."""
    key: list[Any] = [len(args), *kwargs]
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            key += value.shape, value.dtype, value.requires_grad and torch.is_grad_enabled()
        elif type(value) in CONSTANTS:
            key += type(value), value
        elif type(value) is float:
            key.append(repr(value))  # 0.0 and -0.0 are equal
        else:
            return None
    return tuple(key)


class CallPattern:
    """The dtypes and constants that calls of a module have. `arguments` is the text of their form: how many are
    positional, and all by name. A tensor is "Tensor" and its dtype, a constant its expression."""

    def __init__(self, module: nn.Module, arguments: str) -> None:
        parameters = inspect.signature(module.forward).parameters.values()
        self.names = [one.name for one in parameters if one.kind in POSITIONAL]
        self.rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "args")
        self.positional, self.arguments = ast.literal_eval(arguments)
        leaves = dict(list_arguments(self.arguments))
        self.dtypes = {
            name: getattr(torch, one.removeprefix(TENSOR)) for name, one in leaves.items() if one.startswith(TENSOR)
        }
        self.constants = {name: one for name, one in leaves.items() if name not in self.dtypes}

    def list_names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        rest = (f"{self.rest}_{at}" for at in range(len(args) - len(self.names)))
        return [*self.names[: len(args)], *rest, *kwargs]

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor] | None:
        """Return the tensors by name, in the order of the arguments, or None for another call."""
        given = dict(zip(self.list_names(args, kwargs), (*args, *kwargs.values()), strict=True))
        tensors, constants = {}, {}
        for name, value in list_arguments(given):
            if isinstance(value, Tensor):
                tensors[name] = value
            else:
                constants[name] = repr(value)
        if constants != self.constants or {name: one.dtype for name, one in tensors.items()} != self.dtypes:
            return None
        return {name: tensors[name] for name in self.dtypes}


class Dispatch:
    """Replaces `forward` of one module; of a chain, that of the module with the `outline`, too. `check` compares an
    output with the module's own and returns the difference in words; a kernel that fails is not called again, and
    `failures` has the reason."""

    def __init__(self, module: nn.Module, kernel: nn.Module, plan: Plan, outline: Outline | None = None) -> None:
        self.module, self.kernel, self.plan, self.forward = module, kernel, plan, module.forward
        self.outline = outline
        self.is_replaced = "forward" in vars(module)  # by the user's code
        self.pattern = CallPattern(module, plan["arguments"])
        self.outputs = ast.literal_eval(plan["outputs"])
        wanted = {*plan["inputs"], *(one for _, one in list_arguments({"": self.outputs}))}
        self.names = [name for name in self.pattern.dtypes if name in wanted]
        self.check: Callable[[Any, Any], str] | None = None
        self.failures: list[str] = []
        self.used = 0
        self._places: dict[tuple[Any, ...], list[int]] = {}  # of the kernel's inputs among a call's arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = None if self.failures else self._select(args, kwargs)
        if tensors is None:
            return self.forward(*args, **kwargs)
        if not torch.compiler.is_compiling():  # which would compile each call anew
            self.used += 1
        if self.check is not None:
            return self._compare(self.check, tensors, args, kwargs)
        try:
            return self._call_kernel(tensors)
        except Exception as error:  # noqa: BLE001  # of the kernel
            return self._fail(f"{type(error).__name__}: {error}", tensors, args, kwargs)

    def _call_kernel(self, tensors: Mapping[str, Tensor]) -> Any:
        return fill_outputs(self.outputs, self.kernel(*(tensors[name] for name in self.plan["inputs"])), tensors)

    def _compare(self, check: Callable[[Any, Any], str], tensors: Mapping[str, Tensor], args: Any, kwargs: Any) -> Any:
        """Both start from the same buffers, and must leave the same values there."""
        copies = {name: one.clone() for name, one in tensors.items()}
        buffers = [one for one in self.module.buffers() if not one.is_inference()]
        before = [one.clone() for one in buffers]
        expected = self.forward(*args, **kwargs)
        after = [one.clone() for one in buffers]
        _restore(buffers, before)
        try:
            found = self._call_kernel(copies)
        except Exception as error:  # noqa: BLE001  # of the kernel
            _restore(buffers, before)
            return self._fail(f"{type(error).__name__}: {error}", tensors, args, kwargs)
        difference = check(found, expected) or check(buffers, after).replace("off", "buffers are off", 1)
        if not difference:
            return found
        self.failures.append(f"{difference}, with the inputs {_describe(tensors)}")
        _restore(buffers, before)
        return self.forward(*args, **kwargs)

    def _fail(self, reason: str, tensors: Mapping[str, Tensor], args: Any, kwargs: Any) -> Any:
        self.failures.append(f"{reason}, with the inputs {_describe(tensors)}")
        warnings.warn(f"{self.plan['problem']} failed, the model's own module goes on: {reason}", stacklevel=2)
        return self.forward(*args, **kwargs)

    def _select(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor] | None:
        """Return the tensors that the kernel and the outputs need, or None for a call that it was not verified for.
        Calls like an earlier one skip the checks, which would take longer than short kernels."""
        may_skip = not torch.compiler.is_compiling() and (self.plan["backward"] or not torch.is_grad_enabled())
        key = summarise_call(args, kwargs) if may_skip else None
        if key is not None and (places := self._places.get(key)) is not None:
            given = (*args, *kwargs.values())
            return {name: given[at] for name, at in zip(self.names, places, strict=True)}
        inputs = self._match(args, kwargs)
        if inputs is not None and key is not None:
            names = self.pattern.list_names(args, kwargs)
            self._places[key] = [names.index(name) for name in inputs]
        return inputs

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor] | None:
        tensors = self.pattern.match(args, kwargs)
        if tensors is None:
            return None
        shapes = [one.shape for one in tensors.values()]
        if not any(fits(shapes, known) for known in self.plan["shapes"]):
            return None
        inputs = {name: tensors[name] for name in self.names}
        return None if self._needs_gradients(inputs) else inputs

    def _needs_gradients(self, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether the call needs a gradient that was not verified."""
        if not torch.is_grad_enabled():
            return False
        given = {**tensors, **{f"self.{name}": one for name, one in self.module.named_parameters()}}
        unknown = self.plan["frozen"] if self.plan["backward"] else given
        return any(given[name].requires_grad for name in unknown if name in given)


def fill_outputs(form: Any, found: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the module's outputs: `form` has positions in what the kernel returned, names of inputs, and numbers as
    bytes."""

    def fill(leaf: Any) -> Any:
        if type(leaf) is int:
            return found if isinstance(found, Tensor) else found[leaf]
        return ast.literal_eval(leaf.decode()) if type(leaf) is bytes else leaf and tensors[leaf]

    return map_arguments(form, fill)


def _restore(buffers: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Leave those alone that did not change: backward passes may need them."""
    for one, value in zip(buffers, values, strict=True):
        if not torch.equal(one, value):
            one.copy_(value)


def _describe(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(one.shape)} {one.dtype} {one.stride()}" for name, one in tensors.items())


def fits(shapes: Sequence[Sequence[int]], known: Bounds) -> bool:
    for shape, bounds in zip(shapes, known, strict=True):
        if len(shape) != len(bounds):
            return False
        for size, (low, high) in zip(shape, bounds, strict=True):
            if not low <= size <= high:
                return False
    return True


class Chain(nn.Module):
    """Operators of the `forward` of another module."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__()
        self.graph = graph
        self.forward = graph.forward

    def extra_repr(self) -> str:
        return str(self.graph.code)


class NoOutline(ValueError):
    """A module has no graph that may replace its `forward`."""


class Outline:
    """Replaces `forward` of one module by its graph, in which chains of operators are modules. Calls with other
    constants use `forward`. Raises whatever torch.fx raises if there is no such graph."""

    def __init__(self, module: nn.Module, arguments: str) -> None:
        if "forward" in vars(module) or hasattr(module, "chain_0"):
            raise NoOutline("its forward was replaced, or it has a chain_0")
        self.module, self.forward, self.training = module, module.forward, module.training
        self.__signature__ = inspect.signature(module.forward)
        self.pattern = CallPattern(module, arguments)
        self.graph = trace(module, self.pattern)
        self.chains: dict[str, Chain] = {}
        self.fails = False

    def split(self, chains: Sequence[Sequence[str]]) -> None:
        nodes = {node.name: node for node in self.graph.graph.nodes}
        fuse_by_partitions(self.graph, [{nodes[name]: None for name in names} for names in chains], prefix="chain_")
        kind = type(f"{type(self.module).__name__}Chain", (Chain,), {})
        for name, _ in list(self.graph.named_children()):
            if name.startswith("chain_"):
                self.chains[name] = kind(getattr(self.graph, name)).train(self.training)
                setattr(self.graph, name, self.chains[name])
        self.graph.recompile()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = None if self.module.training != self.training else self.pattern.match(args, kwargs)
        if tensors is None or self.fails:
            return self.forward(*args, **kwargs)
        try:
            return self.graph(*tensors.values())
        except Exception:  # noqa: BLE001  # of the graph, or of a module inside, which raises it again
            self.fails = True
            return self.forward(*args, **kwargs)


class _Proxy(fx.Proxy):  # type: ignore[misc]
    def _refuse(self, other: Any) -> Any:
        raise NoOutline("it changes tensors in place")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __iand__ = __ior__ = _refuse


class _Tracer(fx.Tracer):  # type: ignore[misc]
    proxy_buffer_attributes = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True

    def proxy(self, node: fx.Node) -> _Proxy:
        return _Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, dict) and is_dataclass(a):  # of which torch.fx makes a dict
            return self.create_node("call_function", type(a), (), {key: self.create_arg(one) for key, one in a.items()})
        if isinstance(a, dict) and type(a) is not dict:
            raise NoOutline(f"it makes an object of type {type(a).__name__}")
        return super().create_arg(a)


def trace(module: nn.Module, pattern: CallPattern) -> fx.GraphModule:
    """Return the graph of `forward` with modules inside as they are. Its arguments are the tensors of the pattern."""
    own = take_tensors(module, map_arguments(pattern.arguments, _read_leaf), pattern.positional)
    with warnings.catch_warnings(action="ignore"):
        graph = _Tracer().trace(own)
    new = [name for name, value in vars(own).items() if vars(module).get(name) is not value]
    if any(name.startswith("_tensor_constant") for name in new):  # torch.fx keeps their values
        raise NoOutline("its forward makes tensors that do not depend on its arguments")
    if new:
        raise NoOutline("its forward assigns attributes")
    for node in list(graph.nodes):
        if is_property(node):  # of which each user gets its own
            for user in list(node.users)[1:]:
                with graph.inserting_before(user):
                    user.replace_input_with(node, graph.node_copy(node))
    return fx.GraphModule(own, graph)


def _read_leaf(text: str) -> Any:
    names = {"torch": torch, "device": torch.device, "inf": float("inf"), "nan": float("nan")}
    return TensorSlot() if text.startswith(TENSOR) else eval(text, names)


def is_property(node: fx.Node) -> bool:
    """Return whether it is the dtype or device of a tensor."""
    return node.target is getattr and node.args[1] in ("dtype", "device")


def find_outline(model: nn.Module, path: str, plan: Plan) -> Outline | None:
    """Return the outline that the chains of one module share, or None for the path of another module."""
    owner = path.rpartition(".")[0]
    if owner not in plan.get("outlines", {}):
        return None
    attributes = vars(model.get_submodule(owner))
    if OUTLINE not in attributes:
        attributes[OUTLINE] = Outline(model.get_submodule(owner), plan["outlines"][owner]["arguments"])
        attributes[OUTLINE].split(plan["outlines"][owner]["chains"])
    return attributes[OUTLINE]  # type: ignore[no-any-return]


def load_kernel(path: Path) -> type[nn.Module]:
    """Return `ModelNew` of a file. torch.compile imports the file by its name."""
    name = f"kernel_{path.stem}_{crc32(str(path.resolve()).encode()):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[nn.Module] = module.ModelNew
    return kind


def make_dispatches(model: nn.Module, plan: Plan, path: Path) -> list[Dispatch]:
    """Construct the kernel of `path` once for each module, with the module's own parameters. The model draws the same
    random numbers afterwards as without it."""
    made = []
    with fork_random_numbers(model):
        kind = load_kernel(path)
        for name in plan["paths"]:
            outline, kernel = find_outline(model, name, plan), kind()
            module = model.get_submodule(name) if outline is None else outline.chains[name.rpartition(".")[2]]
            share_state(module, kernel)
            made.append(Dispatch(module, kernel.train(module.training), plan, outline))
    return made


def list_gpus(model: nn.Module) -> list[torch.device]:
    return list(dict.fromkeys(value.device for value in model.parameters() if value.is_cuda))


def fork_random_numbers(model: nn.Module) -> AbstractContextManager[None]:
    """Keep the random numbers of the CPU and of the model's GPUs as they are."""
    return torch.random.fork_rng(devices=list_gpus(model))


def share_state(module: nn.Module, kernel: nn.Module) -> None:
    """Use the same parameters and buffers in both. Raises ValueError if their names differ."""
    wanted = dict(module.named_parameters(remove_duplicate=False))
    own, held = dict(kernel.named_parameters(remove_duplicate=False)), dict(kernel.named_buffers())
    if wanted.keys() != own.keys():
        raise ValueError(f"its parameters are {sorted(own)}, those of the module {sorted(wanted)}")
    buffers = dict(module.named_buffers(remove_duplicate=False))
    for name, value in (*wanted.items(), *buffers.items()):
        owner, _, last = name.rpartition(".")
        part = kernel.get_submodule(owner) if name in own or name in held else None
        for table in () if part is None else (part._parameters, part._buffers):
            if last in table:
                table[last] = value  # type: ignore[assignment]


def enable(dispatches: Sequence[Dispatch], *, on: bool = True) -> None:
    for one in dispatches:
        if on:
            one.module.forward = one
        elif one.is_replaced:
            one.module.forward = one.forward
        else:
            one.module.__dict__.pop("forward", None)
        if one.outline is not None:
            replace_forward(one.outline, on=on)


def replace_forward(outline: Outline, *, on: bool) -> None:
    vars(outline.module).pop("forward", None)
    if on:
        vars(outline.module)["forward"] = outline


def apply_plans(model: nn.Module, plans: Sequence[Plan], folder: Path) -> nn.Module:
    """Replace the modules of `model` in place, by the kernels in `folder`."""
    model = getattr(model, "_orig_mod", model)
    for plan in plans:
        enable(make_dispatches(model, plan, folder / f"{plan['problem']}.py"))
    return model
