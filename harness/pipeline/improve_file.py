"""Improves a user's own program, or the samples of a stored run."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import get_args

from harness.analysis.turns import find_best
from harness.domain import Candidate, Language, UsageError
from harness.domain.files import replace_text
from harness.generate.options import GenerateOptions, ProviderName
from harness.languages import detect_language
from harness.pipeline.candidate_file import read_candidate
from harness.pipeline.chains import ShowSearch
from harness.pipeline.improve import improve
from harness.pipeline.options import EvaluateOptions
from harness.pipeline.search_report import SampleSearch, SearchReport
from harness.search.feedback import summarise
from harness.search.options import SearchOptions
from harness.store.runs import find_run, locate_reference, read_manifest


def improve_run(
    run: str,
    generate: GenerateOptions,
    options: EvaluateOptions,
    search: SearchOptions,
    show: ShowSearch = nullcontext,
) -> SearchReport:
    """Use the stored run's settings; `generate` has those of the endpoint. Raises UsageError."""
    run_dir = find_run(options.generated_dir, run)
    manifest = read_manifest(run_dir)
    provider = next((name for name in get_args(ProviderName) if name == manifest.provider), None)
    if provider is None:
        raise UsageError(f"run {run!r} was imported, so there is no model to ask: improve its files one by one")
    if options.dtype not in (None, manifest.dtype):
        its = f"dtype {manifest.dtype}" if manifest.dtype else "the dtypes of its problems"
        raise UsageError(f"run {run!r} was generated for {its}: leave out --dtype")
    files = {file.name: str(locate_reference(run_dir, file.name)) for file in manifest.files}
    return improve(
        replace(
            generate,
            suite=manifest.suite,
            problems=tuple(files.get(name, name) for name in manifest.problems),
            model=manifest.model,
            base_url=manifest.base_url,
            provider=provider,
            samples=manifest.samples,
            temperature=manifest.temperature,
            max_tokens=manifest.max_tokens,
            language=manifest.language,
            prompt=manifest.prompt,
            gpu=manifest.gpu,
            dtype=manifest.dtype or None,
            run=run,
        ),
        options,
        search,
        show,
    )


def improve_file(
    file: Path,
    generate: GenerateOptions,
    options: EvaluateOptions,
    search: SearchOptions,
    *,
    language: Language | None = None,
    show: ShowSearch = nullcontext,
) -> tuple[SearchReport, Path | None]:
    """Turn 0 is the file. Also return the path of the best verified program, or None. Raises UsageError."""
    source = read_candidate(file)
    start = Candidate(source=source, language=language or detect_language(source), rule="file")
    generate = replace(generate, language=start.language)
    generate = replace(generate, run=generate.run or _name_run(file, source, generate))
    report = improve(generate, options, replace(search, start=start), show)
    chosen = _choose_best(report)
    if chosen is None:
        return report, None
    path = file.with_name(f"{file.stem}.best.py")
    replace_text(path, _describe_history(chosen) + _read_best(chosen))
    return report, path


def _name_run(file: Path, source: str, generate: GenerateOptions) -> str:
    """Equal files, problems and models give equal names, so that a killed command can be repeated."""
    settings = f"{source}\0{generate.problems}\0{generate.suite}\0{generate.model}\0{generate.prompt}"
    settings += f"\0{generate.dtype}" if generate.dtype else ""
    settings += f"\0{generate.language}" if generate.language != detect_language(source) else ""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", file.stem).strip("-.")[:60] or "file"
    return f"improve-{name}-{sha256(settings.encode()).hexdigest()[:8]}"


def _choose_best(report: SearchReport) -> SampleSearch | None:
    solved = [one for one in report.samples if one.history.best is not None]
    index = find_best([one.history.best.result.alone for one in solved if one.history.best is not None])
    return None if index is None else solved[index]


def _read_best(chosen: SampleSearch) -> str:
    best = chosen.history.best
    assert best is not None
    return best.source or ""


def _describe_history(chosen: SampleSearch) -> str:
    """Return comments, which may precede any program."""
    best = chosen.history.best
    assert best is not None
    device = best.evaluation.subject.device
    lines = [f"harness improve: {chosen.key.problem} on {device}, turn {best.number} of run {chosen.key.run}"]
    lines += [summarise(turn) for turn in chosen.history.turns]
    return "".join(f"# {line}\n" for line in lines) + "\n"
