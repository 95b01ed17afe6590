"""Turns what a user asked for into a plan: which problems, which exact prompts, which run. Asks and writes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

from harness.domain import Language, Problem, Prompt, ReferenceFile, RunManifest, SampleKey, UsageError
from harness.generate.gpu_facts import GpuFacts, find_gpu, read_gpu_facts
from harness.generate.host_facts import read_host_facts
from harness.generate.prompting import render_prompt
from harness.generate.sampler import Plan
from harness.problems.discovery import find_problem, find_suite
from harness.store.results import ResultFilter, ResultStore
from harness.store.runs import check_name, has_sample, list_runs, locate_run, read_manifest

# What two runs with the same settings may still differ in.
_NO_SETTINGS = {"run", "created_at", "harness_version"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """What to generate. `problems` empty means the whole suite; `run` None lets the harness choose a name.
    `results_dir`: where the samples will have verdicts, if they are to be evaluated as well."""

    suite_dir: Path
    prompts_dir: Path
    generated_dir: Path
    model: str
    provider: str
    problems: tuple[str, ...] = ()
    base_url: str | None = None
    samples: int = 1
    temperature: float | None = None
    max_tokens: int | None = None
    language: Language = "cuda"
    prompt: str = "plain"
    gpu: str | None = None
    run: str | None = None
    results_dir: Path | None = None


def find_problems(settings: GenerationSettings) -> tuple[Problem, ...]:
    """The problems asked for, each once. Raises UsageError for an unknown one."""
    if not settings.problems:
        return find_suite(settings.suite_dir)
    found: dict[str, Problem] = {}
    for name in settings.problems:
        problem = find_problem(name, settings.suite_dir)
        known = found.setdefault(problem.name, problem)
        if known.path != problem.path:
            raise UsageError(
                f"two problems are called {problem.name!r}: {known.path} and {problem.path}; generate them in two runs"
            )
    suites = dict.fromkeys(problem.suite for problem in found.values())
    if len(suites) > 1:
        raise UsageError(f"these are problems of several suites ({', '.join(suites)}): generate them in one run each")
    return tuple(found.values())


def render_prompts(settings: GenerationSettings, problems: tuple[Problem, ...]) -> tuple[Prompt, ...]:
    """The exact prompt of each problem, in the same order."""
    gpu, host = _choose_gpu(settings), read_host_facts()
    return tuple(
        render_prompt(
            problem,
            prompt=settings.prompt,
            language=settings.language,
            gpu=gpu,
            host=host,
            prompts_dir=settings.prompts_dir,
        )
        for problem in problems
    )


def make_plan(settings: GenerationSettings, *, now: str, harness_version: str) -> Plan:
    """The plan of a run. Everything that can be wrong with it is wrong here, before anything is asked or written.

    Without a name the run continues the newest unfinished one with the same settings, so that a command that was
    killed can simply be issued again; else it gets a new name.
    """
    problems = find_problems(settings)
    for problem in problems:
        check_name("problem", problem.name)
    prompts = render_prompts(settings, problems)
    manifest = RunManifest(
        run=settings.run or _choose_run_name(settings, prompts[0].name, now),
        suite=problems[0].suite,
        model=settings.model,
        provider=settings.provider,
        prompt=prompts[0].name,
        language=settings.language,
        samples=settings.samples,
        temperature=settings.temperature,
        problems=tuple(problem.name for problem in problems),
        created_at=now,
        harness_version=harness_version,
        base_url=settings.base_url,
        gpu=settings.gpu,
        max_tokens=settings.max_tokens,
        files=_list_files(problems, settings.suite_dir),
    )
    if settings.run is None and (unfinished := _find_unfinished(settings, manifest)):
        manifest = replace(manifest, run=unfinished)
    return Plan(
        run_dir=locate_run(settings.generated_dir, manifest.run),
        manifest=manifest,
        prompts=prompts,
        samples=settings.samples,
        problems=problems,
    )


def _list_files(problems: tuple[Problem, ...], suite_dir: Path) -> tuple[ReferenceFile, ...]:
    """Those that do not lie in the suite's folder: nothing but the run says later what they were."""
    return tuple(
        ReferenceFile(
            name=problem.name, path=problem.path, digest=problem.digest, requires_kernel=problem.requires_kernel
        )
        for problem in problems
        if Path(problem.path).parent != suite_dir.resolve()
    )


def _choose_gpu(settings: GenerationSettings) -> GpuFacts | None:
    if settings.gpu is not None:
        return find_gpu(settings.gpu)
    return read_gpu_facts() if settings.language == "cuda" else None


def _name_prefix(settings: GenerationSettings, prompt: str) -> str:
    model = re.sub(r"[^A-Za-z0-9.]+", "-", settings.model.rsplit("/", 1)[-1]).strip("-.")[:60] or "model"
    return f"{model}-{prompt}-{settings.language}-"


def _choose_run_name(settings: GenerationSettings, prompt: str, now: str) -> str:
    """Such as `qwen3-32b-plain-cuda-20300131-235959`: readable, and sorted by time within one model."""
    moment = re.sub(r"\D", "", now)[:14]
    name = f"{_name_prefix(settings, prompt)}{moment[:8]}-{moment[8:]}"
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(name for name in names if not (settings.generated_dir / name).exists())


def _find_unfinished(settings: GenerationSettings, asked: RunManifest) -> str | None:
    """The newest run that the harness named, with just these settings, when samples or verdicts of it are missing."""
    prefix = _name_prefix(settings, asked.prompt)
    runs = [run for run in list_runs(settings.generated_dir) if run.startswith(prefix)]
    same = [stored for run in runs if _agree(stored := read_manifest(settings.generated_dir / run), asked)]
    newest = max(same, key=lambda stored: stored.created_at, default=None)
    return newest.run if newest and _is_unfinished(settings, newest) else None


def _agree(stored: RunManifest, asked: RunManifest) -> bool:
    names = [field.name for field in fields(RunManifest) if field.name not in _NO_SETTINGS]
    return all(getattr(stored, name) == getattr(asked, name) for name in names)


def _is_unfinished(settings: GenerationSettings, manifest: RunManifest) -> bool:
    keys = {(problem, number) for problem in manifest.problems for number in range(manifest.samples)}
    run_dir = settings.generated_dir / manifest.run
    if not all(has_sample(run_dir, SampleKey(run=manifest.run, problem=name, sample=number)) for name, number in keys):
        return True
    return settings.results_dir is not None and not keys <= _list_judged(settings.results_dir, manifest.run)


def _list_judged(results_dir: Path, run: str) -> set[tuple[str, int]]:
    """Problem and number of the samples of a run that have any verdict: with other options they may have several."""
    with ResultStore.open(results_dir, read_only=True) as store:
        return {(problem, sample) for problem, sample in store.values(("problem", "sample"), ResultFilter(run=run))}
