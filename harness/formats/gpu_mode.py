"""Tasks of gpu-mode's reference-kernels.

<group>/<task>/task.yml              lang, files, tests, benchmarks (lists of arguments of generate_input), description
<group>/<task>/reference.py          generate_input(**arguments), ref_kernel(data), check_implementation
<group>/<task>/submission.py, submissions/*.py, solutions/**/*.py        custom_kernel(data)
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain import PROBLEM_SETTINGS, UsageError
from harness.formats.imported import (
    Imported,
    ImportedProblem,
    ImportedSolution,
    NotPythonError,
    UnsupportedError,
    read_text,
)
from harness.formats.merging import join_parts, merge_modules, parse_module, rename_clashes, write_model
from harness.problems.cases import MAX_CASES
from harness.protocol.tensor_layout import ITEM_BYTES

_WANTED = ("generate_input", "ref_kernel")
_RESERVED = frozenset(["Model", "ModelNew", "get_inputs", "get_init_inputs", "get_cases", "with_buffers", "random"])
_RESERVED |= {*PROBLEM_SETTINGS}
_LOW_BIT = re.compile(r"\btorch\.(float[48]\w+)")
_WITH_BUFFERS = '''
def with_buffers(data):
    """Allocate output buffers, which are given as (shape, strides, dtype)."""
    device = next(value.device for value in data if isinstance(value, torch.Tensor))
    made = [torch.empty_strided(*value[:2], dtype=getattr(torch, value[2]), device=device)
            if at in {positions} else value for at, value in enumerate(data)]
    return tuple(made)

'''


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """`modules` are the sources of its Python files. `buffers` are positions of output buffers."""

    folder: Path
    record: Mapping[str, Any]
    modules: Mapping[str, str]
    body: Sequence[ast.stmt]
    generate: ast.FunctionDef
    buffers: tuple[int, ...]


def find(source: Path) -> Path | None:
    return source if any(_list_tasks(source)) else None


def _list_tasks(root: Path) -> Iterator[Path]:
    found = (path.parent for path in sorted(root.rglob("task.yml")))
    return (folder for folder in found if any(folder.glob("reference.*")))


def read(root: Path, suite: str) -> Imported:
    """Make one suite per folder of tasks."""
    problems, solutions = [], []
    notes: list[str] = []
    for folder in _list_tasks(root):
        own = f"{suite}_{folder.resolve().parent.name}"
        try:
            task = _read_task(folder)
            problems.append(ImportedProblem(suite=own, name=task.folder.name, code=_write_problem(task, notes)))
            for path in _list_submissions(folder):
                solutions.append(_read_submission(path, task, own))
        except UnsupportedError as error:
            notes.append(f"{folder}: {error}")
        except UsageError as error:  # names the file
            notes.append(str(error))
    return Imported(problems=tuple(problems), solutions=tuple(solutions), notes=tuple(notes))


def _list_submissions(folder: Path) -> list[Path]:
    patterns = ("submission.py", "submissions/**/*.py", "solutions/**/*.py")
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return [path for path in found if "custom_kernel" in read_text(path)]


def _read_task(folder: Path) -> _Task:
    record = _read_yaml(folder / "task.yml")
    if record.get("lang", "py") != "py":
        raise UnsupportedError(f"language {record['lang']} of the task is not supported: only py")
    if record.get("multi_gpu"):
        raise UnsupportedError("the task uses several GPUs")
    if not (folder / "reference.py").is_file():
        raise UnsupportedError("it has no reference.py")
    # Read the Python files that `files` lists by name and source, and those of the folder.
    paths = {path.stem: path for path in folder.glob("*.py")}
    for file in record.get("files") or ():
        if not isinstance(file, dict) or not {"name", "source"} <= file.keys():
            raise UsageError(f"{folder / 'task.yml'}: every file must have a name and a source, found {file!r}")
        source = folder / str(file["source"])
        if str(file["name"]).endswith(".py") and not str(file["source"]).startswith("@"):
            paths[str(file["name"]).removesuffix(".py")] = source
    modules = {name: read_text(path) for name, path in paths.items() if name == "reference" or path.is_file()}
    body = parse_module(modules["reference"], str(folder / "reference.py")).body
    functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    missing = next((name for name in _WANTED if name not in functions), None)
    if missing:
        raise UsageError(f"{folder / 'reference.py'} has no function {missing}")
    generate, reference = (functions[name] for name in _WANTED)
    buffers = _find_buffers(generate, reference)
    return _Task(folder=folder, record=record, modules=modules, body=body, generate=generate, buffers=buffers)


def _read_yaml(path: Path) -> dict[str, Any]:
    import yaml  # takes 20 ms

    try:
        record = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{line}: not YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path} holds a {type(record).__name__}, expected a mapping with tests and benchmarks")
    return record


def _find_buffers(generate: ast.FunctionDef, reference: ast.FunctionDef) -> tuple[int, ...]:
    """Return the positions of inputs that are made by `torch.empty`, or that `ref_kernel` writes before it reads."""
    returned = next((node.value for node in ast.walk(generate) if isinstance(node, ast.Return)), None)
    if not isinstance(returned, ast.Tuple):
        return ()
    made = [node for node in ast.walk(generate) if isinstance(node, ast.Assign)]
    empty = {ast.unparse(one.targets[0]) for one in made if ast.unparse(one.value).startswith("torch.empty")}
    taken, lines = _read_unpacked(reference)
    return tuple(
        at
        for at, value in enumerate(returned.elts)
        if ast.unparse(value) in empty or (len(taken) == len(returned.elts) and _is_written(taken[at], lines))
    )


def _read_unpacked(reference: ast.FunctionDef) -> tuple[list[str], list[str]]:
    """Return the names in `a, b = data`, and the lines that follow."""
    lines = ast.unparse(reference).split("\n")
    for at, line in enumerate(lines):
        names, _, value = line.strip().partition(" = ")
        if value == reference.args.args[0].arg:
            return names.strip("()[]").split(", "), lines[at + 1 :]
    return [], []


def _is_written(name: str, lines: Sequence[str]) -> bool:
    """True if the first line that names it assigns to it, or to a part of it, something else."""
    first = next((line for line in lines if re.search(rf"\b{name}\b", line)), "")
    target, _, value = first.partition(" = ")
    return bool(re.fullmatch(rf"\s*{name}(\[.*\])?", target)) and not re.search(rf"\b{name}\b", value)


def _write_problem(task: _Task, notes: list[str]) -> str:
    """Raises UnsupportedError."""
    cases = _list_cases(task, notes)
    if not cases:
        raise UnsupportedError("no test or benchmark in task.yml can be used")
    sizes = dict(next(case for _, case, _ in cases))
    source = merge_modules("reference", task.modules, _WANTED)
    unknown = next((one for one in _LOW_BIT.findall(source) if one not in ITEM_BYTES), None)
    if unknown:
        raise UnsupportedError(f"dtype {unknown} is not supported")
    where = str(task.folder / "reference.py")
    source, _ = rename_clashes(source, _RESERVED | sizes.keys(), where)
    parts = [
        f"# Task {task.folder.name} of gpu-mode's reference-kernels, with its tests and benchmarks as cases.",
        source,
        "\nimport random\n\nimport torch\n",
        "\n".join(f"{name} = {value!r}" for name, value in sizes.items()),
        _write_buffers(task),
        _write_model(task),
        _write_inputs(task, sizes),
        _write_settings(task, cases, notes),
    ]
    return join_parts(parts)


def _list_cases(task: _Task, notes: list[str]) -> list[tuple[str, dict[str, Any], bool]]:
    """Return (name, sizes, is timed), benchmarks first. Tests are timed if there are no benchmarks."""
    benchmarks, tests = (_read_cases(task, kind) for kind in ("benchmarks", "tests"))
    given = [(f"benchmark-{at}", one, True) for at, one in enumerate(benchmarks)]
    given += [(f"test-{at}", one, not benchmarks) for at, one in enumerate(tests) if one not in benchmarks]
    defaults, arguments = _list_defaults(task.generate), task.generate.args
    taken = None if arguments.kwarg else {one.arg for one in (*arguments.args, *arguments.kwonlyargs)}
    names = list(dict.fromkeys(name for _, one, _ in given for name in one if taken is None or name in taken))
    cases = []
    for case, one, is_timed in given:
        sizes = {name: one.get(name, defaults.get(name)) for name in names}
        fault = next((name for name, value in sizes.items() if not _is_size(name, value)), None)
        excess = next((name for name in one if name not in names), None)
        if excess is not None:
            notes.append(f"{task.folder}: {case} is left out: generate_input has no argument {excess}")
        elif fault is None:
            cases.append((case, sizes, is_timed))
        else:
            notes.append(f"{task.folder}: {case} is left out: its {fault} is {sizes[fault]!r}"[:300])
    if len(cases) > MAX_CASES:
        notes.append(f"{task.folder}: {MAX_CASES} of {len(cases)} tests and benchmarks")
    return cases[:MAX_CASES]


def _read_cases(task: _Task, kind: str) -> list[dict[str, Any]]:
    """Remove seeds, which are drawn anew. Leave out equal cases."""
    given = task.record.get(kind) or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise UsageError(f"{task.folder / 'task.yml'}: {kind} must be a list of mappings, found {given!r}"[:300])
    cases: list[dict[str, Any]] = []
    for one in given:
        sizes = {str(name): value for name, value in one.items() if name != "seed"}
        cases += [sizes] if sizes not in cases else []
    return cases


def _list_defaults(function: ast.FunctionDef) -> dict[str, Any]:
    arguments, defaults = function.args.args, function.args.defaults
    named = zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
    return {one.arg: value.value for one, value in named if isinstance(value, ast.Constant)}


def _is_size(name: str, value: Any) -> bool:
    is_list = isinstance(value, list) and all(isinstance(item, int) for item in value)
    return name.isidentifier() and name not in _RESERVED and (isinstance(value, int | float | str) or is_list)


def _write_model(task: _Task) -> str:
    lines = str(task.record.get("description") or "").splitlines()
    summary = next((line.strip() for line in lines if line.strip()), task.folder.name)
    return write_model(summary, "*data", f"ref_kernel({_write_data(task)})")


def _write_buffers(task: _Task) -> str:
    return _WITH_BUFFERS.replace("{positions}", str(task.buffers)) if task.buffers else ""


def _write_data(task: _Task) -> str:
    return "with_buffers(data)" if task.buffers else "data if len(data) > 1 else data[0]"


def _write_inputs(task: _Task, sizes: Mapping[str, Any]) -> str:
    arguments = [f"{name}={name}" for name in sizes]
    if any(one.arg == "seed" for one in (*task.generate.args.args, *task.generate.args.kwonlyargs)):
        arguments.append("seed=random.randrange(1_000_000)")
    lines = ["\ndef get_inputs():", f"    data = generate_input({', '.join(arguments)})"]
    if task.buffers:
        lines.append("    data = list(data)")
    for at in task.buffers:
        lines.append(f"    strides, dtype = data[{at}].stride(), str(data[{at}].dtype).removeprefix('torch.')")
        lines.append(f"    data[{at}] = (tuple(data[{at}].shape), strides, dtype)")
    lines.append("    return list(data) if isinstance(data, (list, tuple)) else [data]")
    return "\n".join([*lines, "\n\ndef get_init_inputs():\n    return []\n\n"])


def _write_settings(task: _Task, cases: Sequence[tuple[str, dict[str, Any], bool]], notes: list[str]) -> str:
    lines = []
    if tolerance := _read_tolerance(task, notes):
        lines.append(f"TOLERANCE = {tolerance!r}")
    small = next((sizes for name, sizes, _ in cases if name.startswith("test")), None)
    if small:
        lines.append(f"SMALL = {small!r}")
    lines.append("CASES = [")
    for name, sizes, is_timed in cases:
        case = {"name": name} | ({"sizes": sizes} if sizes else {}) | ({} if is_timed else {"timed": False})
        lines.append(f"    {case!r},")
    return "\n".join([*lines, "]", ""])


def _read_tolerance(task: _Task, notes: list[str]) -> dict[str, float]:
    """Read `check_implementation = make_match_reference(ref_kernel, rtol=..., atol=...)`."""
    for node in task.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="check_implementation")],
                value=ast.Call(func=ast.Name(id="make_match_reference"), keywords=words),
            ):
                stated = {word.arg: word.value for word in words if word.arg in ("atol", "rtol")}
                return {str(name): ast.literal_eval(value) for name, value in stated.items()}
    notes.append(f"{task.folder}: its check_implementation is not imported: outputs are compared with ref_kernel's")
    return {}


def _read_submission(path: Path, task: _Task, suite: str) -> ImportedSolution:
    name = path.relative_to(task.folder).with_suffix("").as_posix()
    code, not_run = read_text(path), ""
    try:
        merged = merge_modules("submission", {**task.modules, "submission": code})
        merged, _ = rename_clashes(merged, ("ModelNew", "with_buffers"), str(path))
        code = (
            f"{merged.rstrip()}\n\n\nimport torch\n\n"
            f"{_write_buffers(task)}\nclass ModelNew(torch.nn.Module):\n    def forward(self, *data):\n"
            f"        return custom_kernel({_write_data(task)})\n"
        )
    except NotPythonError:  # the evaluation is a load_error
        pass
    except UnsupportedError as error:
        not_run = f"{path} cannot be run here: {error}"
    return ImportedSolution(
        suite=suite, problem=task.folder.name, name=name, author="submissions", code=code, not_run=not_run
    )
