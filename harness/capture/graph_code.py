"""Prints the graph that torch.export records of a module as plain PyTorch code."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx
from torch.utils import _pytree as pytree

from harness.domain import ProblemError

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "pow": "**",
    "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
    "bitwise_and": "&", "bitwise_or": "|", "__and__": "&", "__or__": "|",
}  # fmt: skip
PYTHON_INFIX = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}
ALIASES = ("alias", "detach_", "lift_fresh_copy", "lift_fresh")
RANDOM = ("dropout", "dropout_", "feature_dropout", "alpha_dropout", "native_dropout", "rrelu")
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")  # with the arguments dropout and train
LAST = 2**63 - 1
MAX_LITERAL = 16


class GraphPrinter:
    """`inputs` are the names of the graph's inputs; a None input is a constant. With `plain`, operators are written as
    torch.ops.aten, which accepts every argument. Raises ProblemError for a graph that a problem cannot contain.
    """

    def __init__(
        self, module: fx.GraphModule, inputs: list[str | None], state: set[str], *, plain: bool = False
    ) -> None:
        self.lines: list[str] = []
        self.operators = 0
        self._plain, self._state = plain, state
        self._names: dict[fx.Node, str] = {}
        self._device = next((name for name in inputs if name), "self") + ".device"
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        names = dict(zip(placeholders, inputs, strict=True))
        results = self._print(module, {node: name or "None" for node, name in names.items()})
        self.lines.append(f"return {', '.join(map(self._show, results))}")

    def _print(self, module: fx.GraphModule, inputs: dict[fx.Node, str]) -> list[Any]:
        self._names |= inputs
        for node in module.graph.nodes:
            if node.op == "get_attr":
                self._names[node] = self._show_stored(module, str(node.target))
            elif node.op == "call_function":
                self._print_call(module, node)
            elif node.op == "output":
                return list(pytree.tree_leaves(node.args[0], is_leaf=lambda one: one is None))
            elif node.op == "call_module":
                raise ProblemError(f"its graph calls a module ({node.target})")
        return []

    def _print_call(self, module: fx.GraphModule, node: fx.Node) -> None:
        name = name_operator(node)
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            self._inline(module, node)
        elif _draws(name, node):
            raise ProblemError(f"it draws random numbers ({name}): capture the model in eval mode, or set p = 0")
        else:
            self.operators += 1
            self._names[node] = node.name
            self.lines.append(f"{node.name} = {self._show_call(name, node)}")

    def _show_stored(self, module: fx.GraphModule, target: str) -> str:
        """Tensors that code makes are written as literals if they are small."""
        if target in self._state or isinstance(getattr(module, target, None), fx.GraphModule):
            return show_attribute(target)
        value = operator.attrgetter(target)(module)
        if not isinstance(value, torch.Tensor) or value.numel() > MAX_LITERAL:
            raise ProblemError(f"it uses {target}, a tensor that is neither a parameter nor a buffer")
        return f"torch.tensor({value.tolist()}, dtype={value.dtype}, device={self._device})"

    def _inline(self, module: fx.GraphModule, node: fx.Node) -> None:
        """A graph under `torch.no_grad` or `torch.autocast(enabled=False)`."""
        graphs = [one for one in node.args if isinstance(one, fx.Node) and one.op == "get_attr"]
        body = getattr(module, str(graphs[0].target), None) if graphs else None
        if not str(node.target).startswith("wrap_with") or not isinstance(body, fx.GraphModule):
            raise ProblemError(f"its control flow depends on data ({node.target})")
        given = [self._show(one) for one in node.args[node.args.index(graphs[0]) + 1 :]]
        placeholders = [one for one in body.graph.nodes if one.op == "placeholder"]
        results = [self._show(one) for one in self._print(body, dict(zip(placeholders, given, strict=True)))]
        for user in node.users:
            self._names[user] = results[int(user.args[1])] if user.target is operator.getitem else results[0]
        self._names[node] = f"({', '.join(results)},)"

    def _show_call(self, name: str, node: fx.Node) -> str:
        args = [self._show(one) for one in node.args]
        named = [f"{key}={self._show(value)}" for key, value in node.kwargs.items() if key != "pin_memory"]
        if node.target is operator.getitem or name == "sym_size":
            return f"{args[0]}.shape[{args[1]}]" if name == "sym_size" else f"{args[0]}[{args[1]}]"
        if node.target in PYTHON_INFIX:
            return f"{args[0]} {PYTHON_INFIX[node.target]} {args[1]}"
        if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
            raise ProblemError(
                f"it calls {getattr(node.target, '__name__', name)}, which is none of torch's own operators"
            )
        if self._plain:
            return f"torch.ops.{node.target}({', '.join([*args, *named])})"
        if name in INFIX and len(args) == 2 and not named:
            return f"{args[0]} {INFIX[name]} {args[1]}"
        if name in ("index", "slice"):
            return f"{args[0]}[{_show_slice(node) if name == 'slice' else self._show_indices(node)}]"
        return _name_function(name, node, args) + f"{', '.join([*args, *named])})"

    def _show_indices(self, node: fx.Node) -> str:
        return ", ".join(":" if one is None else self._show(one) for one in node.args[1])

    def _show(self, value: Any) -> str:
        if isinstance(value, fx.Node):
            return self._names[value]
        if isinstance(value, list | tuple):
            shown = ", ".join(self._show(one) for one in value)
            return (
                f"[{shown}]" if isinstance(value, list) or type(value).__name__ == "immutable_list" else f"({shown},)"
            )
        if isinstance(value, slice):
            return ":".join("" if one is None else self._show(one) for one in (value.start, value.stop))
        if isinstance(value, torch.device):
            return self._device
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return f'float("{value}")'
        return repr(value)


def simplify(module: fx.GraphModule, names: Mapping[fx.Node, str], out_spec: pytree.TreeSpec) -> str:
    """Remove assertions, aliases, and operators that no output depends on, also from the graphs inside, and let the
    graph return each new tensor once. Return the form of the module's outputs, with the positions of these tensors,
    the `names` of inputs that are returned as they are, and numbers. Raises ProblemError.
    """
    parts = [one for one in module.modules() if isinstance(one, fx.GraphModule)]
    for node in [one for part in parts for one in reversed(part.graph.nodes)]:
        if name_operator(node).startswith("_assert"):
            node.graph.erase_node(node)
        elif _is_alias(name_operator(node), node):
            node.replace_all_uses_with(node.args[0])
            node.graph.erase_node(node)
    output = module.graph.output_node()
    leaves = pytree.tree_leaves(output.args[0], is_leaf=lambda one: one is None)
    made = list(dict.fromkeys(one for one in leaves if isinstance(one, fx.Node) and one not in names))
    if not all(isinstance(one.meta["val"], torch.Tensor) for one in made):
        raise ProblemError("it returns numbers that depend on the sizes of tensors")
    forms = [_write_output(one, names, made) for one in leaves]
    output.args = (tuple(made),)
    for part in parts:
        part.graph.eliminate_dead_code()
    if not made and not any(node.op == "call_function" for node in module.graph.nodes):
        raise ProblemError("it returns its arguments as they are")
    return repr(pytree.tree_unflatten(forms, out_spec))


def _write_output(leaf: Any, names: Mapping[fx.Node, str], made: list[fx.Node]) -> Any:
    """Return name or position; the text of a number as bytes."""
    if isinstance(leaf, fx.Node):
        return names.get(leaf) or made.index(leaf)
    return leaf if leaf is None else repr(leaf).encode()


def _is_alias(name: str, node: fx.Node) -> bool:
    if name in RANDOM and (node.args[2:3] == (False,) or node.args[1:2] == (0.0,)):
        return True
    if name in ("to", "_to_copy") and len(node.args) == 2 and not node.kwargs:
        source = node.args[0]
        return isinstance(source, fx.Node) and source.meta["val"].dtype is node.args[1]
    return name in ALIASES


def name_operator(node: fx.Node) -> str:
    target: Any = node.target
    return str(getattr(target, "_opname", None) or getattr(target, "__name__", target))


def _draws(name: str, node: fx.Node) -> bool:
    if name == "scaled_dot_product_attention":
        return bool(node.kwargs.get("dropout_p") or (node.args[4:5] or (0.0,))[0])
    if name in RECURRENT:
        dropout, is_training = node.args[5:7]
        return bool(dropout and is_training)
    return name in RANDOM or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _name_function(name: str, node: fx.Node, args: list[str]) -> str:
    """Return the call up to its remaining arguments; a method's object is taken out of `args`."""
    first = node.args[0] if node.args else None
    if isinstance(first, fx.Node) and isinstance(first.meta.get("val"), torch.Tensor) and hasattr(torch.Tensor, name):
        return f"{args.pop(0)}.{name}("
    for prefix, namespace in (("torch", torch), ("F", F)):
        if hasattr(namespace, name):
            return f"{prefix}.{name}("
    return f"torch.ops.{node.target}("


def _show_slice(node: fx.Node) -> str:
    dim = int(node.args[1]) if len(node.args) > 1 else 0
    bounds = [*node.args[2:4], None, None][:2]
    if any(isinstance(one, fx.Node) for one in bounds):
        bounds = [one.name if isinstance(one, fx.Node) else one for one in bounds]
    steps = f":{node.args[4]}" if len(node.args) > 4 else ""
    low, high = ("" if one in (None, LAST) else str(one) for one in bounds)
    dims = dim % node.args[0].meta["val"].dim()
    return ", ".join([*[":"] * dims, f"{low}:{high}{steps}"]).replace(str(LAST), "")


def show_attribute(target: str) -> str:
    """Children of containers have numbers as names."""
    path = "self"
    for part in filter(None, target.split(".")):
        path = f"{path}.{part}" if part.isidentifier() else f'getattr({path}, "{part}")'
    return path


def list_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and buffers by name. A tensor may have several names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
