"""Writes definitions with their workloads as problem files."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.formats.definitions.definition import RESERVED, Definition, TensorInfo, Workload
from harness.formats.imported import UnsupportedError
from harness.formats.merging import join_parts, rename_clashes, write_model
from harness.problems.cases import MAX_CASES

ORDER_OUTPUTS = '''
def order_outputs(result):
    """Return one tensor, or a tuple in the definition's order."""
    if isinstance(result, dict):
        result = [result[name] for name in {names}]
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    return values[0] if len(values) == 1 else tuple(values)

'''
_READ_TENSOR = '''
def read_tensor(place, dtype):
    """Read FILE::KEY of a safetensors file."""
    path, _, key = place.rpartition("::")
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        first, last = header[key]["data_offsets"]
        file.seek(first, 1)
        content = bytearray(file.read(last - first))
    values = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
    return values.reshape(header[key]["shape"])

'''
_RANGES = {"int8": "-128, 128", "uint8": "0, 256", "bool": "0, 2"}


def write_problem(definition: Definition, workloads: Sequence[Workload], origin: str) -> str:
    """Raises UnsupportedError."""
    if not workloads and definition.free_axes:
        raise UnsupportedError(f"{definition.name}: no usable workload fixes {', '.join(definition.free_axes)}")
    read = [name for name in definition.inputs if any(one.inputs[name]["type"] == "safetensors" for one in workloads)]
    sizes = [_list_sizes(definition, one, read) for one in workloads]
    first = {name: value for own in reversed(sizes) for name, value in own.items()}
    taken = RESERVED | definition.axes.keys() | first.keys()
    reference, renamed = rename_clashes(definition.reference, taken, definition.name)
    maker = renamed.get(definition.input_maker, definition.input_maker)
    makes = [name for name in definition.inputs if any(one.inputs[name]["type"] == "custom" for one in workloads)]
    derived = {name: value for name, value in definition.axes.items() if isinstance(value, str)}
    constant = {name: value for name, value in definition.axes.items() if isinstance(value, int)}
    lines = [f"{name} = {value!r}" for name, value in {**constant, **first}.items()]
    parts = [
        f"# Definition {definition.name} of {origin}, with its workloads as cases.",
        reference.strip("\n"),
        "\n\nimport json\n\nimport torch\n" if read else "\n\nimport torch\n",
        "\n".join([*lines, *(f"{name} = {value}" for name, value in derived.items()), ""]),
        _READ_TENSOR if read else "",
        ORDER_OUTPUTS.format(names=tuple(definition.outputs)),
        _write_model(definition),
        _write_inputs(definition, maker if makes else "", makes, first),
        "\ndef get_init_inputs():\n    return []\n\n",
        _write_settings(definition, workloads, sizes, fixed=[*makes, *read]),
    ]
    return join_parts(parts)


def choose_evenly(workloads: Sequence[Workload]) -> Sequence[Workload]:
    """A problem has at most `MAX_CASES` cases."""
    if len(workloads) <= MAX_CASES:
        return workloads
    return [workloads[at * (len(workloads) - 1) // (MAX_CASES - 1)] for at in range(MAX_CASES)]


def _list_sizes(definition: Definition, workload: Workload, read: Sequence[str]) -> dict[str, Any]:
    """Return values of module-level names: axes, numbers, and files (FILE::KEY, or "") of `read` inputs."""
    sizes: dict[str, Any] = dict(workload.axes)
    for name, spec in workload.inputs.items():
        if spec["type"] == "scalar":
            sizes[name_scalar(definition, name)] = spec["value"]
        elif name in read:
            sizes[f"{name}_file"] = f"{spec['path']}::{spec['tensor_key']}" if "path" in spec else ""
    return sizes


def name_scalar(definition: Definition, name: str) -> str:
    return f"{name}_value" if name in definition.axes else name


def _write_model(definition: Definition) -> str:
    result = f"order_outputs(run({definition.copy_written()}))"
    return write_model(definition.description.strip(), ", ".join(definition.inputs), result)


def _write_inputs(definition: Definition, maker: str, makes: Sequence[str], first: Mapping[str, Any]) -> str:
    lines = ["\ndef get_inputs():"]
    if maker:
        names = [*definition.axes, *(one for one in first if one not in definition.axes)]
        known = ", ".join(f'"{name}": {name}' for name in names if not name.endswith("_file"))
        lines.append(f"    made = {maker}({{{known}}}, torch.empty(0).device)")
    lines.append("    return [")
    for name, info in definition.inputs.items():
        made = f'made["{name}"]' if name in makes else _write_input(name, info, definition, first)
        lines.append(f"        {made},")
    return "\n".join([*lines, "    ]\n\n"])


def _write_input(name: str, info: TensorInfo, definition: Definition, first: Mapping[str, Any]) -> str:
    if name_scalar(definition, name) in first:
        return name_scalar(definition, name)
    shape = "".join(f"{axis}, " for axis in info.shape or ()).removesuffix(" ")
    shape = f"({shape})" if len(info.shape or ()) == 1 else f"({shape.rstrip(',')})"
    drawn = _draw(shape, info.dtype)
    if info.shape is None:
        return f"{drawn}.item()"
    if f"{name}_file" in first:
        return f"read_tensor({name}_file, torch.{info.dtype}) if {name}_file else {drawn}"
    return drawn


def _draw(shape: str, dtype: str) -> str:
    """Use the ranges of both formats' evaluators."""
    if "float8" in dtype:
        return f"torch.randn({shape}).clamp(-2, 2).to(torch.{dtype})"
    if "float" in dtype or "complex" in dtype:
        return f"torch.randn({shape}, dtype=torch.{dtype})"
    return f"torch.randint({_RANGES.get(dtype, '-1024, 1024')}, {shape}, dtype=torch.{dtype})"


def _write_settings(
    definition: Definition, workloads: Sequence[Workload], sizes: Sequence[Mapping[str, Any]], fixed: Sequence[str]
) -> str:
    """The workload `small` is the smallest, if possible without an empty axis. Only the given values of `fixed` inputs
    have a meaning."""
    words = (definition.op_type, *definition.tags)
    lines = [f"TAGS = {tuple(word for word in words if word)!r}"]
    if fixed:
        lines.append(f"INPUTS = {dict.fromkeys(fixed, 'as_drawn')!r}")
    products = [math.prod(workload.axes.values()) for workload in workloads]
    smallest = min(range(len(sizes)), key=lambda at: (products[at] == 0, products[at]), default=None)
    if smallest is not None and sizes[smallest]:
        lines.append(f"SMALL = {sizes[smallest]!r}")
    if not workloads:
        return "\n".join([*lines, ""])
    lines.append("CASES = [")
    for workload, own in zip(workloads, sizes, strict=True):
        case: dict[str, Any] = {"name": workload.uuid} | ({"sizes": dict(own)} if own else {})
        lines.append(f"    {case | ({'tolerance': dict(workload.tolerance)} if workload.tolerance else {})!r},")
    return "\n".join([*lines, "]", ""])
