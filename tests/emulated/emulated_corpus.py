"""The corpus of CUDA and Triton programs for the emulated device, and how it is evaluated: good ones, bad ones, and
planted bugs.

A program begins with a comment: what it is, then `key: value` lines. A `.cu` file holds the kernels and one host
function `run`; the candidate around it is written here. A `.py` file is a candidate as it is.

forward     the problem's model, as an expression of its inputs
inputs      `x = ..., y = ...`
expected    outcomes that are right, `|` between them; "correct" where nothing is said
finding     in bugs: what must be named, `|` between kinds that are the same bug
returns     what ModelNew returns, where it is not `ext.run(x, y)`
gpu         the GPU to emulate, A100 where nothing is said
alone       why the program must not share a build with others

Programs that may share a build do so, each in a namespace of its own: that is many times faster, and a compiler says
the same of them. Those that must not build do not share one. What a shared build that fails holds is built again one by
one, and named in `Bench.built_again`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain import Candidate, Evaluation, Outcome, Problem
from harness.languages import detect_language

CORPUS = Path(__file__).resolve().parent / "corpus"
KINDS = ("good", "bad", "bugs")
BATCH = 24
_KEYS = frozenset({"forward", "inputs", "expected", "finding", "returns", "gpu", "alone"})
_INCLUDE = re.compile(r"^#include\b.*$", re.MULTILINE)
_RUN = re.compile(r"^(?P<type>\S+) run\((?P<parameters>[^)]*)\)\s*\{", re.MULTILINE)

_PROBLEM = """
import torch
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def forward(self, {names}):
        return {forward}

def get_inputs():
    return [{values}]

def get_init_inputs():
    return []
"""
_CANDIDATE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""{cuda}"""
CPP = """{cpp}"""
ext = load_inline(name="{extension}", cpp_sources=CPP, cuda_sources=CUDA, functions={functions})

class ModelNew(nn.Module):
    def forward(self, {names}):
        return {returns}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One file of the corpus. `inputs` are names and expressions."""

    kind: str
    name: str
    path: Path
    text: str
    title: str
    forward: str
    inputs: tuple[tuple[str, str], ...]
    expected: tuple[str, ...] = ("correct",)
    finding: tuple[str, ...] = ()
    returns: str = ""
    gpu: str = "A100"
    alone: str = ""

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def names(self) -> str:
        return ", ".join(name for name, _ in self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one program; `why` says what is not as it must be."""

    program: Program
    evaluation: Evaluation
    why: str

    @property
    def is_right(self) -> bool:
        return not self.why


def read_corpus(folder: Path = CORPUS) -> list[Program]:
    """Every program, by kind and name. A header that is not as described above is a ValueError."""
    files = [path for kind in KINDS for path in sorted((folder / kind).iterdir()) if path.suffix in (".cu", ".py")]
    return [read_program(path) for path in files]


def read_program(path: Path) -> Program:
    text = path.read_text(encoding="utf-8")
    title, fields = _read_header(path, text)
    unknown = set(fields) - _KEYS
    if unknown or not title or not {"forward", "inputs"} <= set(fields):
        raise ValueError(f"{path}: a title, forward and inputs are needed, of keys only {sorted(_KEYS)}: {unknown}")
    kind = path.parent.name
    if (kind == "bugs") != ("finding" in fields):
        raise ValueError(f"{path}: exactly the planted bugs name a finding")
    call = ast.parse(f"f({fields.pop('inputs')})", mode="eval").body
    assert isinstance(call, ast.Call)
    inputs = tuple((str(word.arg), ast.unparse(word.value)) for word in call.keywords)
    lists = {key: _split(fields.pop(key)) for key in ("expected", "finding") if key in fields}
    program = Program(kind=kind, name=path.stem, path=path, text=text, title=title, inputs=inputs, **fields)
    return replace(program, **lists)


def _read_header(path: Path, text: str) -> tuple[str, dict[str, str]]:
    if path.suffix == ".py":
        lines = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    else:
        lines = [line.removeprefix("//").strip() for line in _leading_comment(text)]
    fields: dict[str, str] = {}
    key = "title"
    for line in filter(None, map(str.strip, lines)):
        found = re.match(r"([a-z]+): (.*)", line)
        is_field = found is not None and found[1] in _KEYS
        key, value = (found[1], found[2]) if found and is_field else (key, line)
        fields[key] = f"{fields[key]} {value}" if key in fields else value
    return fields.pop("title", ""), fields


def _leading_comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("//"):
            return
        yield line


def _split(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split("|"))


def make_batches(programs: Iterable[Program], size: int = BATCH) -> list[list[Program]]:
    """Programs that share a build: those for one GPU, in order."""
    batches: list[list[Program]] = []
    rooms: dict[str, list[Program]] = {}
    for program in programs:
        if program.alone or program.is_python or "build_error" in program.expected:
            batches.append([program])
            continue
        room = rooms.get(program.gpu)
        if room is None or len(room) >= size:
            room = rooms[program.gpu] = []
            batches.append(room)
        room.append(program)
    return batches


def write_candidates(batch: Sequence[Program]) -> list[Candidate]:
    """One for each program; all of them build the same extension."""
    if batch[0].is_python:
        return [Candidate(source=one.text, language=find_language(one), rule="file") for one in batch]
    cuda, cpp = _write_sources(batch)
    functions = [program.name for program in batch]
    extension = f"emulated_{batch[0].name}"

    def write(program: Program) -> Candidate:
        returns = (program.returns or f"ext.run({program.names})").replace("ext.run", f"ext.{program.name}")
        source = _CANDIDATE.format(
            cuda=cuda, cpp=cpp, extension=extension, functions=functions, names=program.names, returns=returns
        )
        return Candidate(source=source, language="cuda", rule="file")

    return [write(program) for program in batch]


def _write_sources(batch: Sequence[Program]) -> tuple[str, str]:
    """The CUDA source, includes first, and the declarations of its functions."""
    includes = dict.fromkeys(include for program in batch for include in _INCLUDE.findall(program.text))
    parts, declarations = [*includes], []
    for program in batch:
        run = _RUN.search(program.text)
        if run is None:
            raise ValueError(f"{program.path}: no host function `run` at the start of a line")
        body = _INCLUDE.sub("", program.text)
        arguments = ", ".join(
            parameter.split()[-1].lstrip("&*") for parameter in run["parameters"].split(",") if parameter
        )
        head = f"{run['type']} {program.name}({run['parameters']})"
        parts.append(f'namespace in_{program.name} {{\n#line 1 "{program.name}.cu"\n{body}\n}}')
        parts.append(f"{head} {{ return in_{program.name}::run({arguments}); }}")
        declarations.append(f"{head};")
    return "\n".join(parts), "#include <torch/extension.h>\n" + "\n".join(declarations)


def write_problem(program: Program) -> Problem:
    values = ", ".join(value for _, value in program.inputs)
    source = _PROBLEM.format(names=program.names, forward=program.forward, values=values)
    return Problem(name=program.name, suite="emulated", source=source)


def find_language(program: Program):
    """Of a Python program; those that define no kernel are to be CUDA."""
    found = detect_language(program.text)
    return "cuda" if found == "cpp" else found


class Bench:
    """Evaluates programs on one device, by the executor that evaluates everything. Use as a context manager."""

    def __init__(
        self,
        cache: Path,
        *,
        device: str = "emulated",
        checked: bool = True,
        nvcc: bool = False,
        jobs: int | None = None,
    ) -> None:
        self._cache, self._device, self._checked, self._nvcc, self._jobs = cache, device, checked, nvcc, jobs
        self._executors: dict[str, object] = {}
        self.built_again: list[str] = []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        for executor in self._executors.values():
            executor.__exit__(*error)
        self._executors.clear()

    def evaluate(self, programs: Sequence[Program], report: Callable[[Result], None]) -> None:
        """Reports each program once; where a shared build failed, after a build of its own."""
        again: list[Program] = []
        batches = make_batches(programs)

        def sort(result: Result, batch: list[Program]) -> None:
            failed = result.evaluation.outcome in (Outcome.BUILD_ERROR, Outcome.NOT_RUN)
            if failed and len(batch) > 1:
                again.append(result.program)
            else:
                report(result)

        self._evaluate(batches, sort)
        self.built_again += [program.name for program in again]
        self._evaluate([[program] for program in again], lambda result, _: report(result))

    def _evaluate(self, batches: list[list[Program]], report: Callable[[Result, list[Program]], None]) -> None:
        from harness.executors.executor import run_tasks

        for gpu in sorted({batch[0].gpu for batch in batches}):
            firsts, others, origin = [], [], {}
            for batch in (batch for batch in batches if batch[0].gpu == gpu):
                for program, candidate in zip(batch, write_candidates(batch), strict=True):
                    (others if program is not batch[0] else firsts).append(self._make_task(program, candidate))
                    origin[program.name] = (program, batch)

            def hand_over(task, evaluation, origin=origin):
                program, batch = origin[task.problem.name]
                report(explain(program, evaluation, self._device), batch)

            # Those that ask for a build first: else all wait for one of them.
            run_tasks(self._executor(gpu), [*firsts, *others], hand_over)

    def _make_task(self, program: Program, candidate: Candidate):
        from harness.executors.executor import Origin, make_task

        problem = write_problem(program)
        return make_task(problem, candidate, Origin(run="corpus", model="-"), language=candidate.language)

    def _executor(self, gpu: str):
        from harness.domain.options import TimeLimits
        from harness.executors.local import LocalExecutor
        from harness.executors.settings import LocalSettings

        if gpu not in self._executors:
            limits = TimeLimits(first_call_s=20.0, call_s=20.0)
            is_emulated = self._device == "emulated"
            settings = LocalSettings(
                device=self._device, gpu=gpu if is_emulated else None, check_kernels=self._checked and is_emulated,
                cache=self._cache, jobs=self._jobs, limits=limits, fidelity="correctness",
                measure_noise=False, attribute_work=False,  # two more workers, which take long to import some compilers
            )  # fmt: skip
            executor = LocalExecutor(settings)
            if is_emulated and not self._nvcc:
                executor.toolchain = replace(executor.toolchain, nvcc_version=None)
            self._executors[gpu] = executor.__enter__()
        return self._executors[gpu]


def explain(program: Program, evaluation: Evaluation, device: str = "emulated") -> Result:
    """On a GPU a planted bug may come to any verdict, and nothing is named."""
    outcome = evaluation.outcome.value
    if program.kind != "bugs":
        why = "" if outcome in program.expected else f"{outcome}, not {'|'.join(program.expected)}"
        alarms = [
            one.check for one in evaluation.findings if one.severity in ("fatal", "warning") and one.check in CHECKS
        ]
        if not why and program.kind == "good" and alarms:
            why = f"false alarm: {alarms[0]}"
        return Result(program=program, evaluation=evaluation, why=why)
    named = {one.check for one in evaluation.findings}
    wrong = outcome in ("correct", "not_run", "build_error", "load_error") or not named & set(program.finding)
    why = f"{outcome}, {sorted(named & CHECKS)}, not {'|'.join(program.finding)}"
    return Result(program=program, evaluation=evaluation, why=why if device == "emulated" and wrong else "")


CHECKS = frozenset({
    "shared_race", "global_race", "uninitialised_shared", "out_of_bounds", "misaligned", "too_much_shared",
    "absent_lanes", "barrier_divergence", "order", "invalid_launch", "too_many_threads", "too_many_blocks",
    "cooperative_launch", "assertion", "trap", "time_limit", "uninitialised_global",
})  # fmt: skip


@contextmanager
def open_doubling(build_cache: Path, folder: Path) -> Iterator[Callable[[str], Evaluation]]:
    """Yields a function that evaluates the source of a program that doubles a vector, for an H100."""

    def evaluate(source: str) -> Evaluation:
        program = Program(
            kind="good", name="double", path=folder / "program.py", text=source, title="", forward="x + x",
            inputs=(("x", "torch.randn(300)"),), gpu="H100",
        )  # fmt: skip
        results: list[Result] = []
        bench.evaluate([program], results.append)
        return results[0].evaluation

    with Bench(build_cache) as bench:
        yield evaluate
