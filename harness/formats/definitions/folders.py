"""Collects the definitions, workloads, solutions and tensors of a folder of flashinfer-bench or SOL-ExecBench.

definitions/<op>/<name>.json    workloads/<op>/<name>.jsonl    solutions/.../<name>.json    blob/.../<any>.safetensors
<name>/definition.json, workload.jsonl, solution*.json of SOL-ExecBench, with the same objects
"""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.domain import UsageError
from harness.domain.files import explain_failure
from harness.formats.definitions.definition import Definition, Workload, read_definition, read_workload
from harness.formats.definitions.problem_file import ORDER_OUTPUTS, choose_evenly, write_problem
from harness.formats.imported import (
    Imported,
    ImportedProblem,
    ImportedSolution,
    NotPythonError,
    UnsupportedError,
    read_json_lines,
    read_json_object,
    read_text,
    take,
)
from harness.formats.merging import merge_modules, rename_clashes

Lines = Iterable[tuple[str, Mapping[str, Any]]]  # (file and line, object)
LEFT_OUT = (UnsupportedError, UsageError)


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
    named: dict[tuple[str, str], Path] = field(default_factory=dict)  # files by kind and name

    def add_problem(self, record: Mapping[str, Any], path: Path, lines: Lines, reference: str = "") -> None:
        """Raises UnsupportedError, and UsageError for another form."""
        definition = read_definition(record, str(path), reference)
        self._require_new("definition", definition.name, path)
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

    def _read_workloads(self, definition: Definition, lines: Lines, path: Path) -> Iterator[Workload]:
        seen: set[str] = set()
        for where, record in lines:
            try:
                workload = read_workload(record, definition, where)
                if workload.uuid in seen:
                    raise UnsupportedError(f"{where}: another workload has the uuid {workload.uuid}")
                located = locate_tensors(workload, definition, (self.root, path.parent), where)
            except LEFT_OUT as error:
                self.notes.append(str(error))
                continue
            seen.add(workload.uuid)
            yield located

    def add_solution(self, record: Mapping[str, Any], path: Path, binding: str) -> None:
        """Raises as `add_problem`."""
        solution = read_solution(record, self.definitions, self.suite, binding, str(path))
        self._require_new("solution", solution.name, path)
        self.solutions.append(solution)

    def _require_new(self, kind: str, name: str, path: Path) -> None:
        other = self.named.setdefault((kind, name), path)
        if other != path:
            raise UnsupportedError(f"{path} is left out: {other} has a {kind} of the same name {name!r}")

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note why a file is left out."""
        try:
            yield
        except LEFT_OUT as error:
            self.notes.append(str(error))

    def finish(self) -> Imported:
        return Imported(problems=tuple(self.problems), solutions=tuple(self.solutions), notes=tuple(self.notes))


DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
_MAX_HEADER_BYTES = 100_000_000


def locate_tensors(workload: Workload, definition: Definition, roots: Sequence[Path], where: str) -> Workload:
    """Make paths absolute, below the first root with the file. Raises UnsupportedError for missing or other tensors."""
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


PYTHON = ("python", "pytorch", "triton", "helion", "tilelang", "cute_dsl")
COMPILED = ("cuda", "cuda_cpp", "cpp")
_LIBRARIES = ("cutlass", "cudnn")  # whose headers torch does not bring
_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
_NAMES = frozenset(["ModelNew", "order_outputs"])


def read_solution(
    record: Mapping[str, Any], definitions: Mapping[str, Definition], suite: str, binding: str, where: str
) -> ImportedSolution:
    """`binding` is the format's default. Raises UnsupportedError for an unknown definition."""
    name, of = take(record, "name", str, where), take(record, "definition", str, where)
    if of not in definitions:
        raise UnsupportedError(f"{where}: solution {name}: its definition {of} is not imported")
    spec = take(record, "spec", dict, where)
    sources = {_read_path(one, where): take(one, "content", str, where) for one in take(record, "sources", list, where)}
    not_run = ""
    try:
        code = _write_candidate(definitions[of], spec, sources, binding, where)
    except NotPythonError:
        code = "\n".join(sources.values())  # the evaluation is a load_error
    except UnsupportedError as error:
        not_run = f"solution {name} cannot be run here: {error}"
        code = "\n".join(f"# {line}".rstrip() for text in (not_run, *sources.values()) for line in text.splitlines())
    return ImportedSolution(
        suite=suite,
        problem=of,
        name=name,
        author=str(record.get("author") or "unknown"),
        code=f"{code}\n",
        not_run=not_run,
    )


def _read_path(source: Any, where: str) -> str:
    if not isinstance(source, dict):
        raise UsageError(f"{where}: every source must be an object with path and content, found {source!r}"[:300])
    return posixpath.normpath(str(take(source, "path", str, where)))


def _write_candidate(
    definition: Definition, spec: Mapping[str, Any], sources: Mapping[str, str], binding: str, where: str
) -> str:
    languages = spec.get("languages") or [spec.get("language")]
    file, _, function = take(spec, "entry_point", str, where).partition("::")
    file = posixpath.normpath(file)
    if all(language in PYTHON for language in languages):
        program, call = _merge_python(sources, file, where), function
    elif all(language in COMPILED for language in languages):
        used = spec.get("binding") or binding
        if used != "torch":
            raise UnsupportedError(f"its binding is {used}, and only torch extensions are built")
        needs = json.dumps(spec.get("dependencies") or []).lower()
        missing = next((library for library in _LIBRARIES if library in needs), None)
        if missing:
            raise UnsupportedError(f"it needs {missing}, which is not available to builds")
        program, call = _write_extension(sources, spec.get("compile_options") or {}), f"extension.{function}"
    else:
        raise UnsupportedError(f"language {', '.join(map(str, languages))} is not supported")
    passes_outputs = spec.get("destination_passing_style", True)
    adapter = _write_call(definition, call) if passes_outputs else _write_plain_call(definition, call)
    return f"{program.rstrip()}\n\n\nimport torch\n{adapter}"


def _merge_python(sources: Mapping[str, str], file: str, where: str) -> str:
    modules = {
        path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): content.replace("\r\n", "\n")
        for path, content in sources.items()
        if path.endswith(".py")
    }
    entry = file.removesuffix(".py").replace("/", ".")
    if entry not in modules:
        raise UsageError(f"{where}: the entry point's file {file} is not among the sources: {', '.join(sources)}")
    merged = merge_modules(entry, modules)
    return rename_clashes(merged, _NAMES, where)[0]


def _write_extension(sources: Mapping[str, str], options: Mapping[str, Any]) -> str:
    flags = {"cflags": "extra_cflags", "cuda_cflags": "extra_cuda_cflags", "ld_flags": "extra_ldflags"}
    given = "".join(f"    {ours}={options[theirs]!r},\n" for theirs, ours in flags.items() if options.get(theirs))
    cpp, cuda = (_join_sources(sources, suffixes) for suffixes in ((".cpp", ".cc", ".cxx", ".c"), (".cu",)))
    return (
        "from torch.utils.cpp_extension import load_inline\n\n"
        f"CPP_SOURCE = {_quote(cpp)}\n\nCUDA_SOURCE = {_quote(cuda)}\n\n"
        'extension = load_inline(\n    name="solution",\n    cpp_sources=CPP_SOURCE,\n'
        f"{'    cuda_sources=CUDA_SOURCE,' + chr(10) if cuda else ''}{given})\n"
    )


def _join_sources(sources: Mapping[str, str], suffixes: tuple[str, ...]) -> str:
    """Put the solution's headers in place of their first `#include`."""
    included: set[str] = set()

    def expand(path: str) -> str:
        included.add(path)

        def replace(found: re.Match[str]) -> str:
            near = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1]))
            header = next((one for one in (near, posixpath.normpath(found[1])) if one in sources), None)
            return found[0] if header is None else "" if header in included else expand(header)

        return _HEADER.sub(replace, sources[path].replace("\r\n", "\n").replace("#pragma once\n", ""))

    return "\n".join(expand(path) for path in sources if path.endswith(suffixes))


def _quote(text: str) -> str:
    is_plain = '"""' not in text and not text.endswith(('"', "\\")) and "\0" not in text
    return f'r"""{text}"""' if is_plain else repr(text)


def _write_plain_call(definition: Definition, call: str) -> str:
    return (
        f"\n{ORDER_OUTPUTS.format(names=tuple(definition.outputs))}\nclass ModelNew(torch.nn.Module):\n"
        f"    def forward(self, {', '.join(definition.inputs)}):\n"
        f"        return order_outputs({call}({definition.copy_written()}))"
    )


def _write_call(definition: Definition, call: str) -> str:
    """Allocate the outputs and pass them as the last arguments."""
    tensors = [name for name, info in definition.inputs.items() if info.shape is not None]
    device = f", device={tensors[0]}.device" if tensors else ""
    outputs = [f"_{name}" if name in definition.inputs else name for name in definition.outputs]
    lines = ["\n\nclass ModelNew(torch.nn.Module):", f"    def forward(self, {', '.join(definition.inputs)}):"]
    for variable, info in zip(outputs, definition.outputs.values(), strict=True):
        shape = "".join(f"{_write_axis(axis, definition)}, " for axis in info.shape or ())
        lines.append(f"        {variable} = torch.empty(({shape.rstrip()}), dtype=torch.{info.dtype}{device})")
    lines.append(f"        {call}({', '.join([definition.copy_written(), *outputs])})")
    return "\n".join([*lines, f"        return {', '.join(outputs)}"])


def _write_axis(axis: str, definition: Definition) -> str:
    """Return a constant, the size of an input, or an expression of these."""
    value = definition.axes[axis]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return re.sub(r"[A-Za-z_]\w*", lambda word: _write_name(word[0], definition), value)
    for name, info in definition.inputs.items():
        if axis in (info.shape or ()):
            return f"{name}.shape[{(info.shape or ()).index(axis)}]"
    raise UnsupportedError(f"the axis {axis} of its outputs is no size of an input")


def _write_name(word: str, definition: Definition) -> str:
    return _write_axis(word, definition) if word in definition.axes else word


def find_flashinfer(source: Path) -> Path | None:
    roots = (source, *(path for path in sorted(source.glob("*")) if path.is_dir()))
    return next((root for root in roots if any((root / "definitions").rglob("*.json"))), None)


def read_flashinfer(root: Path, suite: str) -> Imported:
    lines: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    reader = DefinitionReader("flashinfer-bench", suite, root)
    for path in sorted((root / "workloads").rglob("*.jsonl")):
        with reader.noting():
            for where, record in read_json_lines(path, reader.notes):
                lines.setdefault(str(record.get("definition", path.stem)), []).append((where, record))
    for path in sorted((root / "definitions").rglob("*.json")):
        with reader.noting():
            record = read_json_object(path)
            reader.add_problem(record, path, lines.get(str(record.get("name")), ()))
    for path in sorted((root / "solutions").rglob("*.json")):
        with reader.noting():
            reader.add_solution(read_json_object(path), path, "tvm-ffi")
    return reader.finish()


def find_sol_execbench(source: Path) -> Path | None:
    return source if any(_list_definitions(source)) else None


def _list_definitions(root: Path) -> Iterator[Path]:
    found = (path.parent for path in sorted(root.rglob("definition.json")))
    return (folder for folder in found if (folder / "workload.jsonl").is_file())


def read_sol_execbench(root: Path, suite: str) -> Imported:
    reader = DefinitionReader("SOL-ExecBench", suite, root)
    folders = list(_list_definitions(root))
    for folder in folders:
        path, source = folder / "definition.json", folder / "reference.py"
        with reader.noting():
            reference = read_text(source) if source.is_file() else ""
            lines = read_json_lines(folder / "workload.jsonl", reader.notes)
            reader.add_problem(read_json_object(path), path, lines, reference)
    for folder in folders:
        for path in sorted(folder.glob("solution*.json")):
            with reader.noting():
                reader.add_solution(_fill_contents(read_json_object(path), folder), path, "torch")
    return reader.finish()


def _fill_contents(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Sources without content are files beside the solution."""
    sources = record.get("sources")
    for one in sources if isinstance(sources, list) else ():
        if isinstance(one, dict) and not one.get("content") and (folder / str(one.get("path"))).is_file():
            one["content"] = read_text(folder / str(one["path"]))
    return record
