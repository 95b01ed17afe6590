"""Turns generation settings into a validated plan: problems, prompts, run."""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

from harness.domain import Problem, Prompt, ReferenceFile, RunManifest, SampleKey, UsageError
from harness.generate.options import GenerateOptions
from harness.generate.prompting import GpuFacts, find_gpu, read_gpu_facts, read_host_facts, render_prompt
from harness.generate.sampler import Plan
from harness.languages import LANGUAGES
from harness.problems.discovery import find_problem, find_suite
from harness.store.results import ResultFilter, ResultStore
from harness.store.runs import check_name, has_sample, list_runs, locate_run, read_manifest, read_search

# Manifest fields that are not settings.
_NOT_SETTINGS = {"run", "created_at", "harness_version"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """Options with resolved folders; `model` defaults to the recording's."""

    options: GenerateOptions
    suite_dir: Path
    prompts_dir: Path
    model: str


def find_problems(settings: GenerationSettings) -> tuple[Problem, ...]:
    """Return problems in the settings' dtype. Raises UsageError for unknown names and mixed suites."""
    found, dtype = _find_problems(settings), settings.options.dtype
    return found if dtype is None else tuple(problem.in_precision(dtype) for problem in found)


def _find_problems(settings: GenerationSettings) -> tuple[Problem, ...]:
    if not settings.options.problems:
        return find_suite(settings.suite_dir)
    found: dict[str, Problem] = {}
    for name in settings.options.problems:
        problem = name if isinstance(name, Problem) else find_problem(name, settings.suite_dir)
        known = found.setdefault(problem.name, problem)
        if known.path != problem.path:
            raise UsageError(
                f"two problems are named {problem.name!r}: {known.path} and {problem.path}; "
                "generate them in separate runs"
            )
    suites = dict.fromkeys(problem.suite for problem in found.values())
    if len(suites) > 1:
        raise UsageError(f"the problems belong to several suites ({', '.join(suites)}): generate one run per suite")
    return tuple(found.values())


def render_prompts(settings: GenerationSettings, problems: tuple[Problem, ...]) -> tuple[Prompt, ...]:
    options, host = settings.options, read_host_facts()
    gpu = _choose_gpu(options)
    return tuple(
        render_prompt(
            problem,
            prompt=options.prompt,
            language=options.language,
            gpu=gpu,
            host=host,
            prompts_dir=settings.prompts_dir,
        )
        for problem in problems
    )


def make_plan(settings: GenerationSettings, *, now: str, harness_version: str) -> Plan:
    """Continue the newest unfinished run with the same settings, unless a run is named.

    Raises UsageError before any request or write.
    """
    options, problems = settings.options, find_problems(settings)
    for problem in problems:
        check_name("problem", problem.name)
    prompts = render_prompts(settings, problems)
    manifest = RunManifest(
        run=options.run or _choose_run_name(settings, prompts[0].name, now),
        suite=problems[0].suite,
        model=settings.model,
        provider=options.provider,
        prompt=prompts[0].name,
        language=options.language,
        samples=options.samples,
        temperature=options.temperature,
        problems=tuple(problem.name for problem in problems),
        created_at=now,
        harness_version=harness_version,
        base_url=options.base_url,
        gpu=options.gpu,
        max_tokens=options.max_tokens,
        files=_list_files(problems, settings),
        turns=options.turns,
        strategy=options.strategy,
        dtype=options.dtype or "",
    )
    if options.run is None and (unfinished := _find_unfinished(settings, manifest)):
        manifest = replace(manifest, run=unfinished)
    return Plan(
        run_dir=locate_run(options.generated_dir, manifest.run),
        manifest=manifest,
        prompts=prompts,
        samples=options.samples,
        problems=problems,
    )


def _list_files(problems: tuple[Problem, ...], settings: GenerationSettings) -> tuple[ReferenceFile, ...]:
    """Return problems that the suite's name does not find: only the run records their path and digest."""
    named = None if "/" in settings.options.suite else settings.suite_dir.resolve()
    return tuple(
        ReferenceFile(
            name=problem.name, path=problem.path, digest=problem.digest, requires_kernel=problem.requires_kernel
        )
        for problem in problems
        if Path(problem.path).parent != named
    )


def _choose_gpu(options: GenerateOptions) -> GpuFacts | None:
    if options.gpu is not None:
        return find_gpu(options.gpu)
    return read_gpu_facts() if LANGUAGES[options.language].uses_gpu else None


def _name_prefix(settings: GenerationSettings, prompt: str) -> str:
    model = re.sub(r"[^A-Za-z0-9.]+", "-", settings.model.rsplit("/", 1)[-1]).strip("-.")[:60] or "model"
    return f"{model}-{prompt}-{settings.options.language}-"


def _choose_run_name(settings: GenerationSettings, prompt: str, now: str) -> str:
    moment = re.sub(r"\D", "", now)[:14]
    name = f"{_name_prefix(settings, prompt)}{moment[:8]}-{moment[8:]}"
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(name for name in names if not (settings.options.generated_dir / name).exists())


def _find_unfinished(settings: GenerationSettings, asked: RunManifest) -> str | None:
    folder, prefix = settings.options.generated_dir, _name_prefix(settings, asked.prompt)
    runs = [run for run in list_runs(folder) if run.startswith(prefix)]
    same = [stored for run in runs if _agree(stored := read_manifest(folder / run), asked)]
    newest = max(same, key=lambda stored: stored.created_at, default=None)
    return newest.run if newest and _is_unfinished(settings.options, newest) else None


def _agree(stored: RunManifest, asked: RunManifest) -> bool:
    names = [field.name for field in fields(RunManifest) if field.name not in _NOT_SETTINGS]
    return all(getattr(stored, name) == getattr(asked, name) for name in names)


def _is_unfinished(options: GenerateOptions, manifest: RunManifest) -> bool:
    keys = {(problem, number) for problem in manifest.problems for number in range(manifest.samples)}
    run_dir = options.generated_dir / manifest.run
    samples = [SampleKey(run=manifest.run, problem=name, sample=number) for name, number in keys]
    if not all(has_sample(run_dir, key) for key in samples):
        return True
    if manifest.turns > 1 and not all(read_search(run_dir, key) for key in samples):
        return True
    return options.results_dir is not None and not keys <= _list_evaluated(options.results_dir, manifest.run)


def _list_evaluated(results_dir: Path, run: str) -> set[tuple[str, int]]:
    with ResultStore.open(results_dir, read_only=True) as store:
        return {(problem, sample) for problem, sample in store.values(("problem", "sample"), ResultFilter(run=run))}
