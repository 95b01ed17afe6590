"""Collects the definitions, workloads, solutions and tensors of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.domain.files import explain_failure
from harness.formats.definitions.definition import Definition, Workload, read_definition, read_workload
from harness.formats.definitions.problem_file import choose_evenly, write_problem
from harness.formats.definitions.solutions import name_twice, read_solution
from harness.formats.imported import Imported, ImportedProblem, ImportedSolution, UnsupportedError

Lines = Iterable[tuple[str, Mapping[str, Any]]]  # (file and line, object)


@dataclass
class DefinitionReader:
    """Collects what can be imported, and the reasons why the rest is left out."""

    origin: str
    suite: str
    root: Path
    problems: list[ImportedProblem] = field(default_factory=list)
    solutions: list[ImportedSolution] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    files: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def add_problem(self, record: Mapping[str, Any], path: Path, lines: Lines, reference: str = "") -> None:
        with self._noting():
            definition = read_definition(record, str(path), reference)
            workloads = list(self._read_workloads(definition, lines, path))
            chosen = choose_evenly(workloads)
            code = write_problem(definition, chosen, self.origin)
            if len(chosen) < len(workloads):
                self.notes.append(f"{definition.name}: {len(chosen)} of {len(workloads)} workloads, evenly chosen")
            kept = [{"definition": definition.name, "workload": one.record} for one in chosen]
            self.problems.append(
                ImportedProblem(
                    suite=self.suite,
                    name=definition.name,
                    code=code,
                    workloads="".join(f"{json.dumps(one)}\n" for one in kept),
                )
            )
            self.definitions[definition.name] = definition
            self.files.setdefault("definitions", []).append((definition.name, str(path)))

    def _read_workloads(self, definition: Definition, lines: Lines, path: Path) -> Iterator[Workload]:
        seen: set[str] = set()
        for where, record in lines:
            try:
                workload = read_workload(record, definition, where)
                if workload.uuid in seen:
                    raise UnsupportedError(f"{where}: another workload has the uuid {workload.uuid}")
                located = locate_tensors(workload, definition, (self.root, path.parent), where)
            except UnsupportedError as error:
                self.notes.append(str(error))
                continue
            seen.add(workload.uuid)
            yield located

    def add_solution(self, record: Mapping[str, Any], path: Path, binding: str) -> None:
        with self._noting():
            self.solutions.append(read_solution(record, self.definitions, self.suite, binding, str(path)))
            self.files.setdefault("solutions", []).append((self.solutions[-1].name, str(path)))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except UnsupportedError as error:
            self.notes.append(str(error))

    def finish(self) -> Imported:
        """Raises UsageError for two of one name."""
        for names in self.files.values():
            name_twice(names)
        return Imported(problems=tuple(self.problems), solutions=tuple(self.solutions), notes=tuple(self.notes))


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
