"""Definitions and workloads of flashinfer-bench and SOL-ExecBench, as problem files.

{"name": ..., "axes": {"M": {"type": "var"}, "K": {"type": "const", "value": 64}},
 "inputs": {"x": {"shape": ["M", "K"], "dtype": "float16"}}, "outputs": {...}, "reference": "def run(x): ..."}
{"uuid": ..., "axes": {"M": 128}, "inputs": {"x": {"type": "random"}}, "tolerance": {"max_atol": 1e-3, ...}}
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from harness.domain import PROBLEM_SETTINGS, UsageError
from harness.formats.imported import UnsupportedError, take
from harness.formats.merging import parse_module
from harness.protocol.tensor_layout import ITEM_BYTES

RESERVED = frozenset(
    ["Model", "ModelNew", "get_inputs", "get_init_inputs", "get_cases", "order_outputs", "read_tensor"]
)
RESERVED |= {"json", "torch", *PROBLEM_SETTINGS}
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.Load, ast.Expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """`shape` None is a number."""

    shape: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """`axes` are numbers, expressions of derived axes, and None. `written` inputs are changed by the reference."""

    name: str
    op_type: str
    description: str
    tags: tuple[str, ...]
    axes: Mapping[str, int | str | None]
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    reference: str
    input_maker: str
    written: frozenset[str]

    @property
    def free_axes(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.axes.items() if value is None)

    def copy_written(self) -> str:
        """Return the arguments of a call. Inputs that the reference changes are copied."""
        return ", ".join(f"{name}.clone()" if name in self.written else name for name in self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`record` is the object in the file."""

    uuid: str
    axes: Mapping[str, int]
    inputs: Mapping[str, Mapping[str, Any]]
    tolerance: Mapping[str, float]
    record: Mapping[str, Any]


def read_definition(record: Mapping[str, Any], where: str, reference: str = "") -> Definition:
    """`reference` is its source if the record has none. Raises UnsupportedError, and UsageError for another form."""
    name = take(record, "name", str, where)
    reference = take(record, "reference", str, where, default=reference).replace("\r\n", "\n")
    inputs, outputs = (_read_tensors(record, kind, name, where) for kind in ("inputs", "outputs"))
    if record.get("op_type") == "sampling":
        raise UnsupportedError(f"{name}: its outputs are random, and only equal outputs can be compared")
    axes = {axis: _read_axis(axis, one, name, where) for axis, one in take(record, "axes", dict, where).items()}
    for tensor, info in {**inputs, **outputs}.items():
        unknown = sorted(set(info.shape or ()) - axes.keys())
        if unknown:
            raise UsageError(f"{where}: tensor {tensor} has the axis {unknown[0]!r}, which `axes` lacks")
    scalar = next((output for output, info in outputs.items() if info.shape is None), "")
    if scalar:
        raise UnsupportedError(f"{name}: output {scalar} is a number, and only tensors can be compared")
    return Definition(
        name=name,
        op_type=str(record.get("op_type") or ""),
        description=str(record.get("description") or name),
        tags=tuple(map(str, take(record, "tags", list, where, default=[]))),
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        reference=reference,
        input_maker=str(record.get("custom_inputs_entrypoint") or ""),
        written=_find_written(reference, inputs, where),
    )


def _read_tensors(record: Mapping[str, Any], kind: str, name: str, where: str) -> dict[str, TensorInfo]:
    tensors = {}
    for tensor, spec in take(record, kind, dict, where).items():
        if not isinstance(spec, dict) or not isinstance(spec.get("shape", ()), list | None):
            raise UsageError(f"{where}: {kind} {tensor!r} must be an object with a shape (a list of axes, or null)")
        _require_identifier(tensor, name)
        shape, dtype = spec.get("shape"), take(spec, "dtype", str, f"{where}: {kind} {tensor!r}")
        if dtype not in ITEM_BYTES:
            known = ", ".join(ITEM_BYTES)
            raise UnsupportedError(f"{name}: dtype {dtype} of {tensor} is not supported (supported: {known})")
        tensors[tensor] = TensorInfo(shape=None if shape is None else tuple(map(str, shape)), dtype=dtype)
    return tensors


def _read_axis(axis: str, spec: Any, name: str, where: str) -> int | str | None:
    place = f"{where}: axis {axis!r}"
    if not isinstance(spec, dict) or spec.get("type") not in ("const", "var", "expr"):
        raise UsageError(f'{place} must be an object with the type "const", "var" or "expr"')
    _require_identifier(axis, name)
    if spec["type"] == "var":
        return None
    if spec["type"] == "const":
        return int(take(spec, "value", int, place))
    text = str(take(spec, "expression", str, place))
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError as error:
        raise UsageError(f"{place} is no expression: {text!r}") from error
    if not all(isinstance(node, _OPERATORS) for node in nodes):
        raise UsageError(f"{place} may only have numbers, axes and operators, found {text!r}")
    return f"int({text})"


def _require_identifier(word: str, name: str) -> None:
    if not word.isidentifier() or iskeyword(word) or word in RESERVED:
        raise UnsupportedError(f"{name}: the name {word!r} cannot be used in a Python file")


def _find_written(reference: str, inputs: Mapping[str, TensorInfo], where: str) -> frozenset[str]:
    functions = (one for one in parse_module(reference, f"{where}: reference").body if isinstance(one, ast.FunctionDef))
    run = next((one for one in functions if one.name == "run"), None)
    if run is None:
        raise UsageError(f"{where}: the reference has no function run")
    names = dict(zip((one.arg for one in run.args.args), inputs, strict=False))
    return frozenset(names[found] for node in ast.walk(run) if (found := _find_target(node)) in names)


def _find_target(node: ast.AST) -> str:
    """Return the variable whose tensor is written: `x.add_(y)`, `x[i] = y`, `x += y`, `f(out=x)`."""
    target: ast.AST | None = None
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr.endswith("_") and not attr.endswith("__"):
            target = value
        case ast.Subscript(value=value, ctx=ast.Store()) | ast.AugAssign(target=value) | ast.keyword("out", value):
            target = value
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def read_workload(record: Mapping[str, Any], definition: Definition, where: str) -> Workload:
    """`record` may be a trace that holds the workload. Raises UnsupportedError and UsageError."""
    record = record.get("workload") or record
    axes = take(record, "axes", dict, where, default={})
    for axis in definition.free_axes:
        if type(axes.get(axis)) is not int or axes[axis] < 0:
            raise UnsupportedError(f"{where}: the workload does not fix the axis {axis}: found {axes.get(axis)!r}")
    for axis, value in axes.items():
        if axis not in definition.axes:
            raise UnsupportedError(f"{where}: the workload fixes the axis {axis}, which its definition lacks")
        constant = definition.axes[axis]
        if isinstance(constant, int) and value != constant:
            raise UnsupportedError(f"{where}: the workload has {axis} {value}, its definition {constant}")
    inputs = take(record, "inputs", dict, where, default={})
    unknown = next((name for name in inputs if name not in definition.inputs), None)
    if unknown is not None:
        raise UnsupportedError(f"{where}: the workload has the input {unknown}, which its definition lacks")
    given = {name: {"type": "random", **take(inputs, name, dict, where, default={})} for name in definition.inputs}
    for name, spec in given.items():
        _require_input(name, spec, definition, where)
    return Workload(
        uuid=take(record, "uuid", str, where),
        axes={axis: axes[axis] for axis in definition.free_axes},
        inputs=given,
        tolerance=_read_tolerance(record, where),
        record=record,
    )


def _require_input(name: str, spec: Mapping[str, Any], definition: Definition, where: str) -> None:
    kind, value = spec["type"], spec.get("value")
    if kind not in ("random", "scalar", "safetensors", "custom"):
        raise UnsupportedError(f"{where}: input {name} has the unknown type {kind!r}")
    if kind == "custom" and not definition.input_maker:
        raise UnsupportedError(f"{where}: input {name} is custom, but the definition has no custom_inputs_entrypoint")
    if kind == "scalar" and (not isinstance(value, int | float) or not math.isfinite(value)):
        raise UnsupportedError(f"{where}: input {name} is not a finite number: {value!r}")


def _read_tolerance(record: Mapping[str, Any], where: str) -> dict[str, float]:
    stated = record.get("tolerance") or record.get("correctness") or {}
    names = {"max_atol": "atol", "max_rtol": "rtol", "required_matched_ratio": "matched"}
    found = {ours: stated[theirs] for theirs, ours in names.items() if isinstance(stated, dict) and theirs in stated}
    if not isinstance(stated, dict) or not all(isinstance(one, int | float) for one in found.values()):
        raise UsageError(f"{where}: expected numbers as tolerance, found {stated!r}")
    return found
