"""Finds chains of operators in the `forward` of a module, which become modules of their own."""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx

from harness.capture.graph_code import RANDOM
from harness.capture.runtime import Outline, is_property, list_arguments
from harness.capture.values import TensorFacts
from harness.capture.watch import CallForm, Unsupported
from harness.domain import ProblemError

BARRIERS = (
    "linear", "matmul", "bmm", "mm", "addmm", "baddbmm", "einsum", "conv", "scaled_dot_product_attention", "embedding",
    "multi_head_attention",
)  # fmt: skip
SCALING = ("add", "sub", "mul", "truediv", "div")  # also by numbers that forward computes
NO_TENSORS = ("size", "dim", "ndimension", "numel", "stride", "item", "tolist", "getattr", "is_floating_point", "len")
VIEWS = (
    "getitem", "to", "float", "type_as", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "permute",
    "transpose", "contiguous", "chunk", "split", "unbind",
)  # fmt: skip


def outline_module(module: Any, form: CallForm) -> tuple[Outline, list[list[str]]]:
    """Return the module with its chains as modules, and the names of their nodes. Raises ProblemError."""
    leaves = dict(list_arguments(form.arguments))
    if form.changes_inputs or any(isinstance(one, Unsupported) for one in leaves.values()):
        raise ProblemError("it changes its arguments, or they are not tensors and constants")
    try:
        outline = Outline(module, describe_arguments(form))
        chains = find_chains(outline.graph.graph, module)
        outline.split(chains)
    except Exception as error:  # torch.fx runs the user's code
        raise ProblemError((str(error).strip().splitlines() or [type(error).__name__])[0][:200]) from error
    return outline, chains


def describe_arguments(form: CallForm) -> dict[str, tuple[str, bool]]:
    """Map arguments to dtype or constant, and whether it is a tensor."""
    return {
        name: (leaf.dtype, True) if isinstance(leaf, TensorFacts) else (repr(leaf), False)
        for name, leaf in list_arguments(form.arguments)
    }


def find_chains(graph: fx.Graph, module: Any) -> list[list[str]]:
    """Return the names of the operators of each chain: connected, with the same number of products and modules before
    them, so that none needs a result of another through these. A module of one chain alone has none. Raises
    ValueError."""
    if any(_is_in_place(node, module) for node in graph.nodes):
        raise ValueError("it changes tensors in place")
    level: dict[fx.Node, int] = {}
    chain: dict[fx.Node, list[fx.Node]] = {}
    tensors: set[fx.Node] = set()
    for node in graph.nodes:
        inputs = [one.args[0] if is_property(one) else one for one in node.all_input_nodes]
        if _is_tensor(node, tensors, module):
            tensors.add(node)
        steps = {one for one in inputs if _works(one) and one in tensors and not (node in tensors and one in chain)}
        level[node] = max((level[one] + (one in steps) for one in inputs), default=0)
        if node in tensors and _joins(node, inputs, tensors, chain):
            chain[node] = [node, *filter(is_property, node.all_input_nodes)]
            for one in inputs:
                if one in chain and level[one] == level[node] and chain[one] is not chain[node]:
                    merged = [*chain[one], *chain[node]]
                    chain |= dict.fromkeys(merged, merged)
    if not any(_works(node) and node not in chain and not is_property(node) for node in graph.nodes):
        return []
    order = {node: at for at, node in enumerate(graph.nodes)}
    found = {id(nodes): sorted(nodes, key=order.__getitem__) for nodes in chain.values()}
    return [
        [node.name for node in nodes]
        for nodes in found.values()
        if sum(_name(one) not in (*VIEWS, "getattr") for one in nodes) > 1
    ]


def _works(node: fx.Node) -> bool:
    return node.op in ("call_module", "call_function", "call_method")


def _is_in_place(node: fx.Node, module: Any) -> bool:
    """Its result depends on the order of operators that use the same tensor."""
    if node.op == "call_module":
        return bool(getattr(module.get_submodule(str(node.target)), "inplace", False))
    is_named = _name(node).endswith("_") and not _name(node).endswith("__")
    return _works(node) and (is_named or bool(node.kwargs.get("inplace")) or node.kwargs.get("out") is not None)


def _name(node: fx.Node) -> str:
    return str(node.target if node.op == "call_method" else getattr(node.target, "__name__", node.target))


def _is_tensor(node: fx.Node, tensors: set[fx.Node], module: Any) -> bool:
    if node.op == "get_attr":
        value = module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return isinstance(value, Tensor)
    if node.op in ("placeholder", "call_module"):
        return True
    return _works(node) and _name(node) not in NO_TENSORS and any(one in tensors for one in node.all_input_nodes)


def _joins(node: fx.Node, inputs: list[Any], tensors: set[fx.Node], chain: dict[fx.Node, Any]) -> bool:
    name = _name(node)
    if node.op not in ("call_function", "call_method") or name.startswith(BARRIERS) or name in RANDOM:
        return False
    if name == "getitem" and node.args[0] not in chain:  # an output of a module, or a slice
        return False
    return name in SCALING or all(one in tensors for one in inputs)
