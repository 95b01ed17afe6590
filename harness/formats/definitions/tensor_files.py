"""Checks the safetensors files that workloads name: 8 bytes of length, a JSON header, and the tensors' bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.files import explain_failure
from harness.formats.definitions.definition import Definition, Workload
from harness.formats.imported import UnsupportedError

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
_MAX_HEADER_BYTES = 100_000_000


def locate_tensors(workload: Workload, definition: Definition, roots: Sequence[Path], where: str) -> Workload:
    """Make paths absolute, below the first root that has the file. Raises UnsupportedError for a missing file or
    tensor, and for another shape or dtype.
    """
    inputs = dict(workload.inputs)
    for name, spec in workload.inputs.items():
        if spec["type"] == "safetensors":
            paths = [(root / str(spec.get("path"))).resolve() for root in roots]
            path = next((one for one in paths if one.is_file()), paths[0])
            place = f"{where}: input {name}, {path}"
            _require_tensor(
                _read_header(path, place).get(str(spec.get("tensor_key"))), name, workload, definition, place
            )
            inputs[name] = {**spec, "path": str(path)}
    return replace(workload, inputs=inputs)


def _read_header(path: Path, place: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size <= _MAX_HEADER_BYTES else None
    except OSError as error:
        raise UnsupportedError(f"{place}: {explain_failure(error)}") from error
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise UnsupportedError(f"{place} is no safetensors file (perhaps a pointer of Git LFS: git lfs pull)")
    return header


def _require_tensor(found: Any, name: str, workload: Workload, definition: Definition, place: str) -> None:
    info = definition.inputs[name]
    if not isinstance(found, Mapping):
        raise UnsupportedError(f"{place} has no tensor {workload.inputs[name].get('tensor_key')!r}")
    if DTYPES.get(found.get("dtype", "")) != info.dtype:
        raise UnsupportedError(f"{place} has dtype {found.get('dtype')}, the definition {info.dtype}")
    known = [workload.axes.get(axis, definition.axes[axis]) for axis in info.shape or ()]
    shape = found.get("shape")
    if (
        not isinstance(shape, list)
        or len(shape) != len(known)
        or any(isinstance(size, int) and size != there for size, there in zip(known, shape, strict=True))
    ):
        raise UnsupportedError(f"{place} has shape {shape}, the workload {known}")
