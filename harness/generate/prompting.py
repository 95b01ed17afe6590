"""Renders prompts from `prompt.jinja` in the prompt's folder, or from that of a language; later turns from
`feedback.jinja` there or in `_shared`.

docs/configuration.md lists the variables. Problem source is a value, never a template.
"""

from __future__ import annotations

import ast
import platform
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.toolchain import find_compiler, read_compiler_version
from harness.domain import CASES_FUNCTION, PROBLEM_SETTINGS, HarnessError, Language, Problem, Prompt, UsageError
from harness.domain.errors import suggest
from harness.hardware.gpus import GpuModel, find_gpu_model, match_gpu_model
from harness.hardware.host import TorchBuild, count_cores, cpu_name, list_gpus, read_cpu_flags, read_torch_build
from harness.languages import GPU_LANGUAGE, LANGUAGES
from harness.problems.discovery import bound_names, is_library
from harness.shipped import find_shipped
from harness.syntax import find_first_line, parse_python

if TYPE_CHECKING:
    from jinja2 import Template

ANY_LANGUAGE = "prompt.jinja"
FEEDBACK = ("feedback.jinja", "_shared/feedback.jinja")


def list_prompts(prompts_dir: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in prompts_dir.glob("*") if _is_prompt(path)))


def render_prompt(
    problem: Problem,
    *,
    prompt: str,
    language: Language,
    gpu: GpuFacts | None,
    host: Mapping[str, str],
    prompts_dir: Path,
    has_tools: bool = False,
) -> Prompt:
    """With `has_tools` the reader evaluates by tools instead of answering. Raises UsageError."""
    folder = _find_prompt(prompt, prompts_dir)
    names = (f"{language}.jinja", ANY_LANGUAGE)
    facts = {"problem": problem, "reference": _clean_reference(problem.source), "gpu": gpu, "host": host}
    more = {"language": language, "rules": LANGUAGES[language], "has_tools": has_tools}
    text = _render(folder, names, prompts_dir, facts, **more)
    return Prompt(name=folder.name, problem=problem.name, language=language, text=text)


def render_feedback(
    feedback: object, problem: Problem, *, prompt: str, language: Language, prompts_dir: Path, has_tools: bool = False
) -> str:
    """`prompt` is a name in `prompts_dir` or the path of a folder. Raises UsageError."""
    folder, facts = _find_prompt(prompt, prompts_dir), {"feedback": feedback, "problem": problem}
    return _render(folder, FEEDBACK, prompts_dir, facts, language=language, has_tools=has_tools)


def _render(
    folder: Path, names: tuple[str, ...], prompts_dir: Path, facts: Mapping[str, object], **more: object
) -> str:
    """Render the first of the templates that exists. Errors name the `facts` as what it may use."""
    from jinja2 import TemplateError

    try:
        return _load_template(folder, names, prompts_dir).render(**facts, **more)
    except TemplateError as error:
        raise UsageError(_describe_template_error(error, folder / names[0], facts)) from error


def _find_prompt(prompt: str, prompts_dir: Path) -> Path:
    folder = prompts_dir / prompt if prompt in list_prompts(prompts_dir) else Path(prompt)
    if _is_prompt(folder):
        return folder.resolve()
    known = list_prompts(prompts_dir)
    hint = suggest(prompt, known, "")
    raise UsageError(
        f"no prompt {prompt!r} in {prompts_dir} ({', '.join(known) or 'empty'}), and no folder of that name with "
        f"a template {ANY_LANGUAGE} or such as {GPU_LANGUAGE}.jinja{hint and f'; {hint}'}"
    )


def _is_prompt(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (ANY_LANGUAGE, *(f"{language}.jinja" for language in LANGUAGES)))


@cache
def _load_template(folder: Path, names: tuple[str, ...], prompts_dir: Path) -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    if names != FEEDBACK and not any((folder / name).is_file() for name in names):
        raise UsageError(
            f"prompt {folder.name!r} has no {' or '.join(names)} in {folder}: write one, or choose another --language"
        )
    environment = Environment(
        loader=FileSystemLoader([folder, prompts_dir, find_shipped("prompts")], encoding="utf-8-sig"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.select_template(names)


def _describe_template_error(error: Exception, template: Path, variables: Iterable[str]) -> str:
    """Name the failing template, which may be an included one."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".jinja")]
    line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else None)
    where = getattr(error, "filename", None) or (frames[-1].filename if frames else str(template))
    at = f"{where}, line {line}" if line else where
    return f"prompt template {at}: {error}. A template may use {', '.join(variables)} and language"


def _clean_reference(source: str) -> str:
    """Remove harness settings with their comments, and the library call."""
    lines = source.split("\n")
    for statement in reversed(parse_python(source).body):
        is_cases = isinstance(statement, ast.FunctionDef) and statement.name == CASES_FUNCTION
        if is_cases or is_library(statement) or not bound_names(statement).isdisjoint(PROBLEM_SETTINGS):
            del lines[find_first_line(statement, lines) : statement.end_lineno]
    return "\n".join(lines).strip("\n") + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU for prompts. `arch`: compute capability; unknown rates are None. GB: powers of ten; shared KB: KiB."""

    name: str
    arch: str
    memory_gb: float
    sms: int
    shared_per_sm_kb: int
    shared_per_block_kb: int
    l2_mb: float
    bandwidth_gb_s: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    bf16_tflops: float | None = None


def find_gpu(name: str) -> GpuFacts:
    """Raises UsageError with the nearest name."""
    model = find_gpu_model(name)
    return GpuFacts(
        name=model.name,
        arch=model.architecture,
        memory_gb=model.total_memory_bytes // 10**9,
        sms=model.multiprocessors,
        shared_per_sm_kb=model.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=model.max_shared_bytes_per_block // 1024,
        l2_mb=model.l2_bytes // 2**20,
        **_list_rates(model),
    )


def read_gpu_facts() -> GpuFacts | None:
    gpus = list_gpus()
    if not gpus:
        return None
    gpu, model = gpus[0], match_gpu_model(gpus[0].name)
    return GpuFacts(
        name=gpu.name,
        arch=gpu.architecture,
        memory_gb=round(gpu.memory_bytes / 1e9),
        sms=gpu.multiprocessors,
        shared_per_sm_kb=gpu.shared_bytes_per_multiprocessor // 1024,
        shared_per_block_kb=gpu.shared_bytes_per_block // 1024,
        l2_mb=round(gpu.l2_bytes / 2**20),
        **(_list_rates(model) if model else {}),
    )


def _list_rates(model: GpuModel) -> dict[str, float | None]:
    return {name: getattr(model, name) for name in ("bandwidth_gb_s", "fp32_tflops", "tf32_tflops", "bf16_tflops")}


UNKNOWN = "not stated"
_SIMD = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


def read_host_facts() -> dict[str, str]:
    """Versions, with those of languages by their names, and the CPU; unknown facts read "not stated"."""
    torch = TorchBuild(version="", cuda=None)
    with suppress(HarnessError):  # a client of the service needs none
        torch = read_torch_build()
    flags = read_cpu_flags().split()
    facts = dict[str, str | None](
        python=platform.python_version(),
        torch=torch.version,
        cuda=torch.cuda,
        compiler=read_compiler_version(find_compiler()),
        cpu=cpu_name(),
        cores=str(count_cores()),
        simd=next((name for name in _SIMD if name in flags), None),
        **{rules.name: rules.version for rules in LANGUAGES.values() if rules.package},
    )
    return {name: fact or UNKNOWN for name, fact in facts.items()}
