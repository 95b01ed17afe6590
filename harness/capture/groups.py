"""Groups equal modules, with time, roofline and gain, and makes modules of chains of operators in `forward`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, fx, nn

from harness.capture.graph_code import RANDOM, list_state
from harness.capture.problem_text import describe_failure, describe_family, list_facts
from harness.capture.runtime import TENSOR, NoOutline, Outline, is_property, list_arguments, map_arguments
from harness.capture.values import TensorFacts
from harness.capture.watch import CallForm, ModuleRecord, Unsupported, Watch
from harness.domain import ProblemError
from harness.evaluation.timing.roofline import DevicePeaks
from harness.tensors.values import count_bytes

OVERHEAD_FRACTION = 0.1  # of the roofline: below, a call consists mostly of launches and small operators


@dataclass(slots=True, kw_only=True)
class ModuleGroup:
    """`share` is that of a call of the model, `own_share` without the modules inside. `time_us` and `roofline_us` are
    of one call of one module. `slowdown` is the time of the problem's baseline divided by the module's.
    `reason` says why there is no problem, `opaque` why chains in its forward have none."""

    kind: str
    paths: list[str]
    module: nn.Module
    forms: list[CallForm]
    share: float
    own_share: float
    calls: float
    time_us: float
    roofline_us: float
    bound: str
    problem: str = ""
    slowdown: float = 1.0
    reason: str = ""
    opaque: str = ""
    left_out: list[str] = field(default_factory=list)

    @property
    def peak_fraction(self) -> float:
        return min(self.roofline_us / self.time_us, 1.0) if self.time_us else 0.0

    @property
    def gain_limit(self) -> float:
        """Amdahl: speedup of the model if these modules ran at the roofline."""
        return predict_gain(self.share, 1 / self.peak_fraction if self.peak_fraction else float("inf"))


def predict_gain(share: float, speedup: float) -> float:
    return 1 / max(1 - share * (1 - 1 / speedup), 1e-9)


def group_modules(watch: Watch, peaks: DevicePeaks) -> list[ModuleGroup]:
    """Return groups of modules that were called, largest share first."""
    found: dict[str, list[tuple[str, ModuleRecord]]] = {}
    for path, record in watch.modules.items():
        if record.forms and record.calls:
            found.setdefault(_describe(record), []).append((path, record))
    own_us = _find_own_times(watch)
    groups = [_make_group(members, own_us, watch, peaks) for members in found.values()]
    return sorted(groups, key=lambda one: -one.share)


def _find_own_times(watch: Watch) -> dict[str, float]:
    """Return the time that each module spends in operators of its own `forward`."""
    own_us = {path: record.time_us for path, record in watch.modules.items() if record.calls}
    for path in [one for one in own_us if one]:
        parent = path.rpartition(".")[0]
        while parent and parent not in own_us:
            parent = parent.rpartition(".")[0]
        own_us[parent] = own_us.get(parent, 0.0) - watch.modules[path].time_us
    return own_us


def _describe(record: ModuleRecord) -> str:
    """Equal for modules with equal class, settings and state that are called in the same ways."""
    module, families = record.module, sorted(map(describe_family, record.forms.values()))
    state = [(name, tuple(value.shape), str(value.dtype)) for name, value in list_state(module).items()]
    kind = f"{type(module).__module__}.{type(module).__qualname__}"
    return f"{kind} {module.training} {module!r} {state} {list(dict.fromkeys(families))}"


def _make_group(
    members: list[tuple[str, ModuleRecord]], own_us: dict[str, float], watch: Watch, peaks: DevicePeaks
) -> ModuleGroup:
    total_us = watch.modules[""].time_us
    records = [record for _, record in members]
    time_us, calls = sum(one.time_us for one in records), sum(one.calls for one in records)
    forms = merge_forms(records)
    module = records[0].module
    count = sum(form.count for form in forms)
    weights = count_bytes({id(value): value for value in list_state(module).values()}.values())
    inputs = sum(form.count * sum(facts.size_bytes for _, facts in list_facts(form.arguments)) for form in forms)
    moved = weights + (inputs + sum(form.output_bytes for form in forms)) / count
    flops = sum((form.flops_by_dtype for form in forms), Counter[str]())
    rates = {name: peaks.tflops_by_dtype.get(name, peaks.tflops) for name in flops}
    operations_us = sum(number / rates[name] / 1e6 for name, number in flops.items()) / count
    memory_us = moved / peaks.bandwidth_gb_s / 1e3
    fraction = max(memory_us, operations_us) * calls / time_us if time_us else 0.0
    bound = "memory" if memory_us >= operations_us else "compute"
    return ModuleGroup(
        kind=type(module).__name__,
        paths=[path for path, _ in members],
        module=module,
        forms=forms,
        share=time_us / total_us if total_us else 0.0,
        own_share=max(sum(own_us[path] for path, _ in members) / total_us, 0.0) if total_us else 0.0,
        calls=calls / max(watch.profiled, 1),
        time_us=time_us / calls,
        roofline_us=max(memory_us, operations_us),
        opaque=records[0].opaque,
        bound="overhead" if fraction < OVERHEAD_FRACTION else bound,
    )


def merge_forms(records: list[ModuleRecord]) -> list[CallForm]:
    merged: dict[str, CallForm] = {}
    for record in records:
        for key, form in record.forms.items():
            if key in merged:
                merged[key].add(form)
            else:
                merged[key] = replace(form)
    return list(merged.values())


def list_children(group: ModuleGroup, groups: list[ModuleGroup]) -> list[ModuleGroup]:
    """Return the groups of the modules that this group's first module calls itself."""
    owners = {path: at for at, one in enumerate(groups) for path in one.paths if path}
    prefix = f"{group.paths[0]}." if group.paths[0] else ""
    inside = [path for path in owners if path.startswith(prefix)]
    direct = [path for path in inside if not any(path.startswith(f"{other}.") for other in inside)]
    return [groups[at] for at in dict.fromkeys(owners[path] for path in direct)]


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
    except NoOutline as error:
        raise ProblemError(str(error)) from error
    except Exception as error:  # torch.fx runs the user's code
        raise ProblemError(f"torch.fx cannot trace {describe_failure(error)}") from error
    return outline, chains


def describe_arguments(form: CallForm) -> str:
    """Return the form of the arguments, with dtypes and constants."""
    return repr((form.positional, map_arguments(form.arguments, _describe_leaf)))


def _describe_leaf(leaf: Any) -> str:
    return f"{TENSOR}{leaf.dtype}" if isinstance(leaf, TensorFacts) else repr(leaf)


def find_chains(graph: fx.Graph, module: Any) -> list[list[str]]:
    """Return the names of the operators of each chain: connected, with the same number of products and modules before
    them, so that none needs a result of another through these. A module of one chain alone has none. Raises
    NoOutline."""
    if any(_is_in_place(node, module) for node in graph.nodes):
        raise NoOutline("it changes tensors in place")
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
    is_object = isinstance(node.target, type)
    return (
        _works(node)
        and not is_object
        and _name(node) not in NO_TENSORS
        and any(one in tensors for one in node.all_input_nodes)
    )


def _joins(node: fx.Node, inputs: list[Any], tensors: set[fx.Node], chain: dict[fx.Node, Any]) -> bool:
    name = _name(node)
    if node.op not in ("call_function", "call_method") or name.startswith(BARRIERS) or name in RANDOM:
        return False
    if name == "getitem" and node.args[0] not in chain:  # an output of a module, or a slice
        return False
    return name in SCALING or all(one in tensors for one in inputs)
