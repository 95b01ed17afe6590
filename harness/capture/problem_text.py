"""Writes one module of a model as a problem file."""

from __future__ import annotations

import inspect
import io
import logging
import operator
import textwrap
import traceback
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

import harness
from harness.capture.graph_code import GraphPrinter, list_state, name_operator, show_attribute, simplify
from harness.capture.runtime import list_arguments, map_arguments, take_tensors
from harness.capture.values import TensorFacts, describe, merge, write_tensor
from harness.capture.watch import Arguments, CallForm, Unsupported
from harness.domain import ProblemError
from harness.domain.errors import name_cause

OF_PROXIES = ("Proxy", "symbolic tracing", "__index__")  # in messages about what torch.fx has instead of tensors
MAX_CASES = 4
MAX_RANGES = 8
COLUMNS = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`names` has a name or a number for each dimension of each input, `values` those of each form by name. Sizes with
    `ranges` do not depend on each other."""

    names: tuple[tuple[str, ...], ...]
    values: tuple[dict[str, int], ...]
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    def find_ranges(self) -> dict[str, tuple[int, int]]:
        """Return least and largest sizes, of three forms or more."""
        if len(self.values) < 3 or len(self.values[0]) > MAX_RANGES:
            return {}
        seen = {name: [one[name] for one in self.values] for name in self.values[0]}
        return {name: (max(min(found), 1), max(found)) for name, found in seen.items()}

    def list_mixed(self) -> list[dict[str, int]]:
        """Return combinations of least and largest sizes that no form has: all alike, and one unlike the others."""
        ranges = self.find_ranges()
        unlike = [(other, name) for other in (0, 1) for name in (None, *ranges)]
        mixed = [{one: ends[other ^ (one == name)] for one, ends in ranges.items()} for other, name in unlike]
        return [one for at, one in enumerate(mixed) if ranges and one not in (*self.values, *mixed[:at])]

    def resize(self, form: CallForm, values: Mapping[str, int]) -> CallForm:
        shapes = iter(self.names)

        def change(leaf: Any) -> Any:
            is_tensor = isinstance(leaf, TensorFacts)
            return replace(leaf, shape=tuple(int(values.get(one, one)) for one in next(shapes))) if is_tensor else leaf

        return replace(form, arguments=map_arguments(form.arguments, change))


@dataclass(slots=True, kw_only=True)
class ProblemText:
    text: str
    inputs: tuple[str, ...]
    sizes: Sizes
    forms: list[CallForm]
    shapes: list[list[list[tuple[int, int]]]]
    operators: int
    outputs: str
    frozen: list[str]
    left_out: list[str] = field(default_factory=list)


def list_facts(arguments: Arguments) -> list[tuple[str, TensorFacts]]:
    return [(name, leaf) for name, leaf in list_arguments(arguments) if isinstance(leaf, TensorFacts)]


def describe_family(form: CallForm) -> str:
    """Forms that differ in sizes alone have equal descriptions."""
    return repr(
        [(n, (v.dtype, len(v.shape)) if isinstance(v, TensorFacts) else v) for n, v in list_arguments(form.arguments)]
    )


def require_plain(form: CallForm) -> None:
    """Raises ProblemError for arguments and outputs that a problem cannot have."""
    for name, leaf in list_arguments(form.arguments):
        if isinstance(leaf, Unsupported):
            raise ProblemError(f"its argument {name} is a {leaf.kind}, not a tensor or a number")
    if form.output_kind:
        raise ProblemError(f"it returns {form.output_kind}, not tensors in tuples, lists or dicts")
    if form.autocast:
        raise ProblemError("it runs under torch.autocast: convert the model's weights to that dtype instead")
    if not list_facts(form.arguments):
        raise ProblemError("it takes no tensors")


def require_plain_state(module: nn.Module) -> None:
    """Raises ProblemError for quantised, sharded and offloaded weights."""
    if any(not isinstance(value, Tensor) for value in module.state_dict().values()):
        raise ProblemError("its weights are quantised or packed: their state is not made of tensors")
    devices = set()
    for name, value in list_state(module).items():
        if type(value.data) is not Tensor or value.is_quantized or value.layout is not torch.strided:
            raise ProblemError(f"its weight {name} is quantised or sharded ({type(value.data).__name__} {value.dtype})")
        devices.add(value.device)
    if any(device.type == "meta" for device in devices):
        raise ProblemError("its weights are offloaded (on the meta device)")
    if len(devices) > 1:
        raise ProblemError(f"its weights are on several devices: {', '.join(sorted(map(str, devices)))}")


def name_sizes(forms: Sequence[CallForm]) -> Sizes:
    """Dimensions that have equal sizes in all forms share a name; a size that never changes is a number."""
    facts = [list_facts(form.arguments) for form in forms]
    known: dict[tuple[int, ...], str] = {}
    names: list[tuple[str, ...]] = []
    for at, (_, first) in enumerate(facts[0]):
        shape: list[str] = []
        for dim in range(len(first.shape)):
            sizes = tuple(one[at][1].shape[dim] for one in facts)
            if len(set(sizes)) > 1 and sizes not in known:
                base = "batch" if dim == 0 and len(first.shape) > 1 else "length"
                taken = sum(name.split("_")[0] == base for name in known.values())
                known[sizes] = f"{base}_{taken + 1}" if taken else base
            shape.append(known.get(sizes, str(sizes[0])))
        names.append(tuple(shape))
    values = tuple({name: sizes[at] for sizes, name in known.items()} for at in range(len(forms)))
    return Sizes(names=tuple(names), values=values)


def export_module(module: nn.Module, form: CallForm, tensors: Iterable[Tensor], sizes: Sizes) -> Any:
    """`tensors` are like those of `form`. Raises ProblemError."""
    dynamic = [
        {at: torch.export.Dim.AUTO for at, name in enumerate(shape) if not name.isdigit()} or None
        for shape in sizes.names
    ]
    try:
        with torch.no_grad(), _quiet(), _attention_as_called():
            taking = take_tensors(module, form.arguments, form.positional)
            return torch.export.export(taking, tuple(tensors), dynamic_shapes=tuple(dynamic), strict=False)
    except Exception as error:  # export runs the user's code
        raise ProblemError(f"torch.export cannot record {describe_failure(error)}") from error


@contextmanager
def _attention_as_called() -> Iterator[None]:
    """Record self-attention as the operators of torch's fast path, which nn.MultiheadAttention takes in calls, and not
    while it is recorded."""
    usual = nn.MultiheadAttention.forward

    def forward(
        self: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        given = inspect.signature(usual).bind(self, query, key, value, *args, **kwargs)
        given.apply_defaults()
        masks = (given.arguments["key_padding_mask"], given.arguments["attn_mask"])
        is_plain = self._qkv_same_embed_dim and self.in_proj_bias is not None and self.bias_k is None
        takes_path = self.batch_first and not self.training and not self.add_zero_attn and self.num_heads % 2 == 0
        is_self = query is key is value and query.dim() == 3
        if given.arguments["need_weights"] or masks != (None, None) or not (is_plain and takes_path and is_self):
            return usual(self, query, key, value, *args, **kwargs)
        rows = F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        q, k, v = (one.view(*one.shape[:2], self.num_heads, self.head_dim).transpose(1, 2) for one in rows)
        joined = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        return self.out_proj(joined), None

    nn.MultiheadAttention.forward = forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.MultiheadAttention.forward = usual  # type: ignore[method-assign]


def describe_failure(error: Exception) -> str:
    """Return the line of the model at which torch failed to record it, and why."""
    ours = (f"{Path(torch.__file__).parent}/", f"{Path(harness.__file__).parent}/")
    frames = [
        one for one in traceback.extract_tb(error.__traceback__) if one.line and not one.filename.startswith(ours)
    ]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}, `{frames[-1].line}`" if frames else "its forward"
    if isinstance(error, GuardOnDataDependentSymNode):
        return f"{place}: it depends on values of tensors"
    if isinstance(error, fx.proxy.TraceError) or any(one in str(error) for one in OF_PROXIES):
        return f"{place}: it depends on values or sizes of tensors"
    return f"{place}: {name_cause(error)[:200]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what torch prints about graphs that it cannot record: the reason is in the exception."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def write_text(
    module: nn.Module, exported: Any, forms: Sequence[CallForm], sizes: Sizes, *, summary: str, settings: Iterable[str],
    nonnegative: Collection[str], plain: bool, constant: Collection[str] | None = None,
) -> ProblemText:  # fmt: skip
    """The first of `forms` has the sizes of the file. With gradients, `constant` parameters have none."""
    graph = exported.module(check_guards=False)
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    names = [name for name, _ in list_facts(forms[0].arguments)]
    outputs = simplify(graph, dict(zip(nodes, names, strict=True)), exported.call_spec.out_spec)
    seen = _merge_facts(forms)
    inputs = {name: node for name, node in zip(names, nodes, strict=True) if node.users}
    if not inputs:
        raise ProblemError("its outputs depend on the shapes of its arguments alone, not on their values")
    shapes = dict(zip(seen, sizes.names, strict=True))
    symbols = _name_symbols(dict(zip(names, nodes, strict=True)), shapes)
    limits = {name: find_index_limit(node, graph, symbols) for name, node in inputs.items()}
    facts = {name: widen_facts(seen[name], limits[name]) for name in inputs}
    indices = [name for name, one in facts.items() if one is not seen[name]]
    for name, one in facts.items():
        bags = [names[nodes.index(bag)] for bag in _find_bags(inputs[name]) if bag in nodes]
        place = find_end(name, forms)
        if name not in indices and (bags or place):
            limit = shapes[place[0]][place[1]] if place else shapes[bags[0]][0]
            facts[name] = replace(one, pattern="offsets", limit=limit, full=place is not None)
    given = [name if name in inputs else None for name in names]
    printer = GraphPrinter(graph, given, set(list_state(module)), plain=plain)
    still = [name for name, one in facts.items() if "float" in one.dtype and not one.learns]
    detached = [] if constant is None else [f"{name} = {name}.detach()  # needs no gradient" for name in still]
    text = "\n".join(
        [
            *_write_docstring(summary),
            "", "import torch", "import torch.nn.functional as F", "from torch import nn",
            *(["", *(f"{name} = {value}" for name, value in sizes.values[0].items())] if sizes.values[0] else []),
            "", *settings, *write_contracts(facts, indices, nonnegative), *_write_cases(forms, sizes), "", "",
            "class Model(nn.Module):",
            "    def __init__(self):", "        super().__init__()",
            *_indent(write_state(module, constant or ())), "",
            f"    def forward(self, {', '.join(inputs)}):", *_indent([*detached, *printer.lines]), "", "",
            "def get_inputs():", "    return [",
            *_indent((f"{write_tensor(one, shapes[name])}," for name, one in facts.items())), "    ]", "", "",
            "def get_init_inputs():", "    return []", "",
        ]
    )  # fmt: skip
    return ProblemText(
        text=text, inputs=tuple(inputs), sizes=sizes, forms=list(forms), shapes=list_shapes(forms, sizes),
        operators=printer.operators, outputs=outputs,
        frozen=[*still, *(f"self.{name}" for name, one in module.named_parameters() if not one.requires_grad)],
    )  # fmt: skip


def _merge_facts(forms: Sequence[CallForm]) -> dict[str, TensorFacts]:
    """Return what holds for each tensor in all calls, with the shapes of the first."""
    merged, *others = (dict(list_facts(form.arguments)) for form in forms)
    for other in others:
        merged = {name: merge(facts, other[name]) for name, facts in merged.items()}
    return merged


def _write_docstring(summary: str) -> list[str]:
    first, *rest = textwrap.wrap(summary, COLUMNS)
    return [f'"""{first}', *rest, '"""'] if rest else [f'"""{first}"""']


def _indent(lines: Iterable[str]) -> list[str]:
    return [" " * 8 + line for line in lines]


def _write_cases(forms: Sequence[CallForm], sizes: Sizes) -> list[str]:
    if not sizes.values[0]:
        return []
    total = sum(form.count for form in forms)
    lines = []
    for at in _choose_cases(forms):
        values = sizes.values[at]
        name = " ".join(f"{key} {value}" for key, value in values.items())
        weight = max(round(forms[at].count / total, 3), 0.001)
        lines.append(f'    {{"name": "{name}", "sizes": {values}, "weight": {weight}}},'.replace("'", '"'))
    ranges = ", ".join(f'"{name}": {ends}' for name, ends in sizes.ranges.items())
    return ["CASES = [", *lines, "]", *([f"RANGES = {{{ranges}}}"] if ranges else [])]


def _choose_cases(forms: Sequence[CallForm]) -> list[int]:
    return sorted(sorted(range(len(forms)), key=lambda at: -forms[at].count)[:MAX_CASES])


def list_shapes(forms: Sequence[CallForm], sizes: Sizes) -> list[list[list[tuple[int, int]]]]:
    """Return the bounds of each size of each tensor, for the cases or the range that a candidate is verified for."""
    found = []
    for at in [0] if sizes.ranges else _choose_cases(forms):
        bounds = {name: (value, value) for name, value in sizes.values[at].items()} | sizes.ranges
        found.append([[bounds.get(one) or (int(one), int(one)) for one in shape] for shape in sizes.names])
    return found


def write_state(module: nn.Module, constant: Collection[str] = ()) -> list[str]:
    """Return statements that make modules, parameters and buffers of the same names and shapes, with other values.
    The gradients of `constant` parameters are not asked for."""
    lines: list[str] = []
    first: dict[int, str] = {}
    shared: list[str] = []
    for path, part in module.named_modules(remove_duplicate=False):
        if any(path.startswith(f"{one}.") for one in shared):
            continue
        if first.setdefault(id(part), path) != path:
            shared.append(path)
            lines.append(_assign(path, show_attribute(first[id(part)])))
            continue
        own = [(name, value) for name, value in list_state(part).items() if "." not in name]
        if path and (own or any(True for _ in part.children())):
            lines.append(_assign(path, "nn.Module()"))
        lines += (_write_tensor_state(f"{path}.{name}".lstrip("."), value, first, constant) for name, value in own)
    return lines


def _assign(path: str, value: str) -> str:
    parent, _, name = path.rpartition(".")
    owner = show_attribute(parent)
    return f"{owner}.{name} = {value}" if name.isidentifier() else f'setattr({owner}, "{name}", {value})'


def _write_tensor_state(path: str, value: Tensor, first: dict[int, str], constant: Collection[str]) -> str:
    if first.setdefault(id(value), path) != path:
        return _assign(path, show_attribute(first[id(value)]))
    drawn = write_tensor(describe(value), [str(size) for size in value.shape])
    if isinstance(value, nn.Parameter):
        return _assign(path, f"nn.Parameter({drawn}{', requires_grad=False' if path in constant else ''})")
    owner, _, name = path.rpartition(".")
    return f'{show_attribute(owner)}.register_buffer("{name}", {drawn})'  # candidates get state_dict


VIEWS = (
    "to", "_to_copy", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as", "permute",
    "transpose", "clone", "contiguous", "alias", "detach", "unbind", "getitem", "select", "slice", "split", "chunk",
    "cat", "stack", "repeat", "index",
)  # fmt: skip
ALONG_DIM = ("gather", "index_select", "scatter", "scatter_add", "index_add", "index_copy")


def _name_symbols(nodes: Mapping[str, fx.Node], shapes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the names of the sizes that torch.export leaves open, by torch's symbols."""
    return {
        str(size): name
        for key, node in nodes.items()
        for size, name in zip(node.meta["val"].shape, shapes[key], strict=True)
        if isinstance(size, torch.SymInt) and not name.isdigit()
    }


def find_index_limit(node: fx.Node, graph: fx.GraphModule, symbols: Mapping[str, str]) -> int | str | None:
    """Return the number of elements that an integer input chooses from, or its name, if it is used as an index."""
    found = [size for user in node.users for size in _list_limits(node, user, graph, symbols)]
    numbers, named = [one for one in found if isinstance(one, int)], [one for one in found if isinstance(one, str)]
    return min(numbers) if numbers else named[0] if len({*named}) == 1 else None


def _list_limits(
    node: fx.Node, user: fx.Node, graph: fx.GraphModule, symbols: Mapping[str, str]
) -> Iterator[int | str]:
    name, args = name_operator(user).rstrip("_"), user.args
    indices: list[tuple[Any, Any]] = []  # with their dimensions
    if name in VIEWS and (args[0] is node or (isinstance(args[0], list) and node in args[0])):
        limit = find_index_limit(user, graph, symbols)
        yield from () if limit is None else (limit,)
    if name in ("embedding", "embedding_bag"):
        indices = [(args[1], 0)]
    elif name == "index" and isinstance(args[1], list | tuple):
        indices = [(one, dim) for dim, one in enumerate(args[1])]
    elif name in ALONG_DIM:
        indices = [(args[2], args[1])]
    sizes = [_find_shape(args[0], graph)[dim] for one, dim in indices if one is node]
    yield from (size for size in sizes if isinstance(size, int))
    yield from (symbols[str(size)] for size in sizes if str(size) in symbols)


def _find_bags(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the indices that an input divides into bags."""
    for user in node.users:
        if name_operator(user) == "embedding_bag" and len(user.args) > 2 and user.args[2] is node:
            yield user.args[1]


def find_end(name: str, forms: Sequence[CallForm]) -> tuple[str, int] | None:
    """Return argument and dimension whose size the last of these offsets is in all calls, as of packed sequences."""
    calls = [dict(list_facts(form.arguments)) for form in forms]
    if any(call[name].pattern != "offsets" for call in calls):
        return None
    places = ((other, dim) for other, facts in calls[0].items() for dim in range(len(facts.shape)) if other != name)
    return next((at for at in places if all(call[at[0]].shape[at[1]] == call[name].high for call in calls)), None)


def _find_shape(tensor: Any, graph: fx.GraphModule) -> Sequence[Any]:
    is_state = tensor.op == "get_attr"
    value = operator.attrgetter(tensor.target)(graph) if is_state else tensor.meta["val"]
    return value.shape  # type: ignore[no-any-return]


def widen_facts(facts: TensorFacts, limit: int | str | None) -> TensorFacts:
    """Return facts of all indices that are allowed, instead of those that were seen."""
    if limit is None or "int" not in facts.dtype or facts.low < 0:
        return facts
    facts = replace(facts, pattern="integers", structure="", low=0)
    return replace(facts, limit=limit) if isinstance(limit, str) else replace(facts, high=limit - 1)


def write_contracts(
    facts: Mapping[str, TensorFacts], indices: Collection[str], nonnegative: Collection[str]
) -> list[str]:
    lines = [
        f'    "{name}": {_write_contract(one, is_index=name in indices, is_nonnegative=name in nonnegative)},'
        for name, one in facts.items()
    ]
    return ["INPUTS = {", *lines, "}"]


def _write_contract(facts: TensorFacts, *, is_index: bool, is_nonnegative: bool) -> str:
    if is_index:
        return f'{{"kind": "index", "below": {_write_bound(facts, int(facts.high) + 1)}}}'
    if facts.pattern == "mask":
        return f'{{"kind": "mask", "structure": "{facts.structure}"}}'
    if facts.dtype.startswith("complex"):
        return '"as_drawn"'
    if "int" in facts.dtype:
        kind = "sorted" if facts.pattern in ("sorted", "offsets") else "integer"
        return f'{{"kind": "{kind}", "low": {int(facts.low)}, "high": {_write_bound(facts, int(facts.high))}}}'
    return '{"kind": "real", "low": 0}' if is_nonnegative else '"real"'


def _write_bound(facts: TensorFacts, number: int) -> str:
    return f'"{facts.limit}"' if facts.limit and not facts.limit.isdigit() else facts.limit or str(number)
