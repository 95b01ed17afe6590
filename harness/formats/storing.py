"""Stores imported problems as suites, and solutions as runs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import harness
from harness.domain import Candidate, Completion, Language, ProblemError, Prompt, RunManifest, SampleKey, UsageError
from harness.formats.imported import ImportedProblem, ImportedSolution, write_bytes
from harness.languages import CPU_LANGUAGE, PLAIN_LANGUAGE, detect_language
from harness.problems.discovery import parse_problem
from harness.store.runs import check_name, has_sample, hold_run, load_sample, locate_run, write_manifest, write_sample

WORKLOADS = ".workloads.jsonl"  # beside a problem file: its workloads as they were imported


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProblems:
    """`problems` are suites and names. `renamed` holds (old, new name); `refused` messages about others."""

    problems: frozenset[tuple[str, str]]
    renamed: tuple[tuple[str, str], ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    name: str
    folder: Path
    candidates: int


def store_problems(problems: Iterable[ImportedProblem], folder: Path, *, checks: bool) -> StoredProblems:
    """With `checks`, leave out files that are no valid problems. Raises UsageError before anything is written."""
    files: dict[Path, bytes] = {}
    stored, renamed, refused = [], [], []
    for problem in problems:
        name = make_name(problem.name)
        path = folder / check_name("suite", problem.suite) / f"{name}.py"
        if reason := _find_fault(problem, name, path, checks=checks):
            refused.append(reason)
            continue
        if files.get(path, problem.code.encode()) != problem.code.encode():
            raise UsageError(f"two problems would have the file {path}: the second is {problem.name}")
        renamed += [(problem.name, name)] if name != problem.name else []
        stored.append((problem.suite, problem.name))
        files[path] = problem.code.encode()
        if problem.workloads:
            files[path.with_name(f"{name}{WORKLOADS}")] = problem.workloads.encode()
    for path, content in files.items():
        if path.is_file() and path.read_bytes() != content:
            raise UsageError(f"{path} exists and differs: move it away, or choose another --suite")
    for path, content in files.items():
        write_bytes(path, content)
    return StoredProblems(problems=frozenset(stored), renamed=tuple(renamed), refused=tuple(refused))


def _find_fault(problem: ImportedProblem, name: str, path: Path, *, checks: bool) -> str:
    try:
        check_name("problem", name)
        if checks:
            parse_problem(problem.code, path, problem.suite, executes=False)
    except (UsageError, ProblemError) as error:
        return str(error)
    return ""


def make_name(stem: str) -> str:
    """Replace what `check_name` refuses, except path separators."""
    return re.sub(r"[^A-Za-z0-9_.+=@,/\\-]+", "_", stem)[:200]


def store_solutions(solutions: Sequence[ImportedSolution], generated_dir: Path, run: str | None) -> Iterator[StoredRun]:
    """Make one run per suite and author; the solutions of a problem become its samples, by name. Raises UsageError."""
    groups: dict[tuple[str, str], dict[str, list[ImportedSolution]]] = {}
    for one in sorted(solutions, key=lambda one: (one.suite, one.author, one.name)):
        groups.setdefault((one.suite, one.author), {}).setdefault(make_name(one.problem), []).append(one)
    for (suite, author), by_problem in groups.items():
        own = make_name(author).replace("/", "_")
        name = f"{suite}-{own}" if run is None else run if len(groups) == 1 else f"{run}-{own}"
        yield _store_run(locate_run(generated_dir, name), suite, author, by_problem)


def _store_run(run_dir: Path, suite: str, author: str, by_problem: dict[str, list[ImportedSolution]]) -> StoredRun:
    languages = [_detect(one) for ones in by_problem.values() for one in ones if not one.not_run]
    manifest = make_manifest(
        run_dir.name,
        suite=suite,
        model=author,
        provider="imported",
        language=Counter(languages).most_common(1)[0][0] if languages else PLAIN_LANGUAGE,
        samples=max(map(len, by_problem.values())),
        problems=tuple(by_problem),
    )
    store_run(run_dir, manifest, _list_samples(by_problem, manifest))
    return StoredRun(name=run_dir.name, folder=run_dir, candidates=sum(map(len, by_problem.values())))


def _list_samples(
    by_problem: Mapping[str, Sequence[ImportedSolution]], manifest: RunManifest
) -> Iterator[tuple[SampleKey, Candidate, str]]:
    for problem, ones in by_problem.items():
        for number, one in enumerate(ones):
            key = SampleKey(run=manifest.run, problem=problem, sample=number)
            language = manifest.language if one.not_run else _detect(one)
            yield key, Candidate(source=one.code, language=language, rule="imported", not_run=one.not_run), one.name


def _detect(solution: ImportedSolution) -> Language:
    """Programs without kernels are plain PyTorch, which runs on every device."""
    language = detect_language(solution.code)
    return PLAIN_LANGUAGE if language == CPU_LANGUAGE and "cpp_extension" not in solution.code else language


def make_manifest(
    run: str, *, suite: str, model: str, provider: str, language: Language, samples: int, problems: tuple[str, ...]
) -> RunManifest:
    return RunManifest(
        run=run,
        suite=suite,
        model=model,
        provider=provider,
        prompt="imported",
        language=language,
        samples=samples,
        temperature=None,
        problems=problems,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        harness_version=harness.__version__,
    )


def store_run(run_dir: Path, manifest: RunManifest, samples: Iterable[tuple[SampleKey, Candidate, str]]) -> None:
    """`samples` come with their names in the other format. Raises UsageError if another program is stored."""
    with hold_run(run_dir):
        write_manifest(run_dir, manifest)
        for key, candidate, name in samples:
            if has_sample(run_dir, key):
                stored = load_sample(run_dir, key).candidate
                if stored is None or stored.source != candidate.source:
                    raise UsageError(f"{key} is stored with another program: choose another --run name")
            write_sample(
                run_dir,
                key=key,
                prompt=Prompt(name=manifest.prompt, problem=key.problem, language=candidate.language, text=""),
                completion=Completion(text=None),
                candidate=candidate,
                provenance={
                    "suite": manifest.suite,
                    "model": manifest.model,
                    "provider": manifest.provider,
                    **({"solution": name} if name else {}),
                },
            )
