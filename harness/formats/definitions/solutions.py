"""Solutions of flashinfer-bench and SOL-ExecBench, as candidates.

{"name": ..., "definition": ..., "author": ..., "sources": [{"path": "main.py", "content": ...}],
 "spec": {"language": "triton", "entry_point": "main.py::run", "destination_passing_style": false, "binding": "torch"}}
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.domain import UsageError
from harness.formats.definitions.definition import Definition
from harness.formats.definitions.problem_file import ORDER_OUTPUTS
from harness.formats.imported import ImportedSolution, NotPythonError, UnsupportedError, take
from harness.formats.merging import merge_modules, rename_clashes

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
        _require_buildable(spec, binding)
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


def _require_buildable(spec: Mapping[str, Any], binding: str) -> None:
    used = spec.get("binding") or binding
    if used != "torch":
        raise UnsupportedError(f"its binding is {used}, and only torch extensions are built")
    needs = json.dumps(spec.get("dependencies") or []).lower()
    missing = next((library for library in _LIBRARIES if library in needs), None)
    if missing:
        raise UnsupportedError(f"it needs {missing}, which is not available to builds")


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


def name_twice(names: Sequence[tuple[str, str]]) -> None:
    """Raises UsageError for two of one name. `names` are (name, file)."""
    seen: dict[str, str] = {}
    for name, file in names:
        if name in seen:
            raise UsageError(f"two files have the name {name!r}: {seen[name]} and {file}")
        seen[name] = file
