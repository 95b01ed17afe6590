"""Reads and writes `generated/`: prompts, completions and extracted candidates.

    generated/<run>/manifest.json                  the settings of the run (`RunManifest`)
    generated/<run>/<problem>/<sample>/            one sample, counted from 0
        prompt.md          the prompt exactly as sent; of several messages, the last
        messages.json      the messages before that one, if there are any
        completion.md      the content exactly as received; absent without content
        completion.json    reasoning, finish_reason, usage, latency_s, model, response_id
        candidate.py       the extracted program; absent without one
        provenance.json    key, settings, digests, time, version; extraction rule, reason and alternatives
    generated/<run>/<problem>/<sample>/turn-<n>/   the same files for the n-th turn of that sample
    generated/<run>/<problem>/<sample>/search.json why the turns of that sample ended, and the best of them
    generated/<run>/<problem>/<problem>.py         the reference of a problem that was given as a file

A sample is written to a hidden folder and renamed, so that a visible folder is complete; it is never overwritten.

A *recording* is a folder that the `recorded` provider replays: a run folder, or a hand-made one of
`<problem>/<sample>/completion.md` with optional completion.json and manifest.json ({"model": name}), where one such
tree per language (`cpp/`, `cuda/`) is possible.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from harness.domain import (
    FILE_RUN,
    Candidate,
    Completion,
    Extraction,
    Prompt,
    ReferenceFile,
    RunManifest,
    Sample,
    SampleKey,
    StoreError,
    UsageError,
)
from harness.domain.errors import suggest
from harness.domain.records import make_value
from harness.store.run_files import (
    read_bytes,
    read_json,
    replace_file,
    store_errors,
    sync_folder,
    to_json,
    write_durably,
)

MANIFEST = "manifest.json"
COMPLETION_TEXT = "completion.md"
COMPLETION_REST = "completion.json"
CANDIDATE = "candidate.py"
PROMPT = "prompt.md"
MESSAGES = "messages.json"
SEARCH = "search.json"
PROVENANCE = "provenance.json"

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@,-]{0,199}")
_PARTIAL = ".partial-"
_LOCK = ".lock"
# Manifest fields that may differ when a run is repeated.
_MAY_DIFFER = {"samples", "problems", "files", "created_at", "harness_version", "turns", "strategy"}


def check_name(kind: str, name: str) -> str:
    """Raises UsageError for an invalid folder name; `kind` is for the message."""
    if _SAFE_NAME.fullmatch(name):
        return name
    raise UsageError(
        f"{kind} name {name!r} cannot be a folder name: use letters, digits and _ . + = @ , - (at most 200 of them), "
        "and begin with a letter, a digit or _"
    )


def locate_run(generated_dir: Path, run: str) -> Path:
    return generated_dir / check_name("run", run)


def locate_sample(run_dir: Path, key: SampleKey) -> Path:
    folder = run_dir / check_name("problem", key.problem) / str(key.sample)
    return folder / f"turn-{key.turn}" if key.turn else folder


def list_runs(generated_dir: Path) -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in generated_dir.glob(f"*/{MANIFEST}")))


def find_run(generated_dir: Path, run: str) -> Path:
    """Raises UsageError with the nearest name."""
    run_dir = locate_run(generated_dir, run)
    if (run_dir / MANIFEST).is_file():
        return run_dir
    if run == FILE_RUN or Path(run).is_file():
        raise UsageError(
            f"{run!r} is no run in {generated_dir}: programs given as files have none; `harness runs` lists runs"
        )
    runs = list_runs(generated_dir)
    hint = suggest(run, runs) if runs else "there is none yet: `harness run` and `harness generate` make runs"
    raise UsageError(f"no run {run!r} in {generated_dir}; {hint}")


def read_manifest(run_dir: Path) -> RunManifest:
    """Raises StoreError."""
    path = run_dir / MANIFEST
    record = read_json(path)
    try:
        manifest: RunManifest = make_value(RunManifest, record)
        return manifest
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is not a run manifest ({error}): generate the run again under another name"
        ) from error


def read_model(folder: Path, default: str) -> str:
    return str(read_json(folder / MANIFEST).get("model", default))


def write_manifest(run_dir: Path, manifest: RunManifest) -> RunManifest:
    """Store the manifest merged with a stored one. Raises UsageError if more than samples and problems differ."""
    path, manifest = run_dir / MANIFEST, merge_manifest(run_dir, manifest)
    with store_errors(path):
        run_dir.mkdir(parents=True, exist_ok=True)
        replace_file(path, to_json(asdict(manifest)))
    return manifest


def merge_manifest(run_dir: Path, manifest: RunManifest) -> RunManifest:
    """Return what `write_manifest` stores. Raises UsageError likewise."""
    check_name("run", run_dir.name)
    path = run_dir / MANIFEST
    return _join_manifests(read_manifest(run_dir), manifest, path) if path.exists() else manifest


def _join_manifests(stored: RunManifest, asked: RunManifest, path: Path) -> RunManifest:
    differing = [
        f"{field.name}: {getattr(stored, field.name)!r} there, {getattr(asked, field.name)!r} asked"
        for field in fields(RunManifest)
        if field.name not in _MAY_DIFFER and getattr(stored, field.name) != getattr(asked, field.name)
    ]
    if differing:
        raise UsageError(
            f"run {stored.run!r} was generated with other settings ({'; '.join(differing)}), see {path}: "
            "repeat those settings to continue it or choose another --run name"
        )
    _require_same_problems(stored, asked)
    new = tuple(name for name in asked.problems if name not in stored.problems)
    files = (*stored.files, *(file for file in asked.files if file.name in new))
    return replace(
        stored,
        samples=max(stored.samples, asked.samples),
        problems=(*stored.problems, *new),
        files=files,
        turns=max(stored.turns, asked.turns),
        strategy=asked.strategy or stored.strategy,
    )


def _require_same_problems(stored: RunManifest, asked: RunManifest) -> None:
    for name in asked.problems:
        there, new = stored.find_file(name), asked.find_file(name)
        if name in stored.problems and (there and there.digest) != (new and new.digest):
            raise UsageError(
                f"run {stored.run!r} has another problem {name!r}: {_describe_problem(there, stored)} there, "
                f"{_describe_problem(new, asked)} asked; choose another --run name"
            )


def _describe_problem(file: ReferenceFile | None, manifest: RunManifest) -> str:
    return f"that of suite {manifest.suite}" if file is None else f"{file.path} with digest {file.digest}"


@contextmanager
def hold_run(run_dir: Path) -> Iterator[None]:
    """Lock the run and remove partial samples. Raises UsageError if locked."""
    with store_errors(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = (run_dir / _LOCK).open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(lock.fileno()), (run_dir / _LOCK).stat()):
                raise FileExistsError("the folder was recreated concurrently")
        except OSError as error:
            raise UsageError(
                f"another process is generating run {run_dir.name!r} in {run_dir.parent}: "
                "wait for it, or choose another --run name"
            ) from error
        for left in run_dir.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def locate_reference(run_dir: Path, problem: str) -> Path:
    return run_dir / check_name("problem", problem) / f"{problem}.py"


def write_reference(run_dir: Path, problem: str, source: str) -> None:
    """Never overwrite."""
    path = locate_reference(run_dir, problem)
    if not path.is_file():
        with store_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, source.encode())


def discard_empty_run(run_dir: Path) -> None:
    """Remove a run without samples unless it contains other files."""
    references = {path for path in run_dir.glob("*/*.py") if path.stem == path.parent.name}
    files = {path for path in run_dir.rglob("*") if not path.is_dir()}
    if files <= {run_dir / MANIFEST, run_dir / _LOCK, *references}:
        with store_errors(run_dir):
            shutil.rmtree(run_dir)


def has_sample(run_dir: Path, key: SampleKey) -> bool:
    return (locate_sample(run_dir, key) / PROVENANCE).is_file()


def write_sample(
    run_dir: Path,
    *,
    key: SampleKey,
    prompt: Prompt,
    completion: Completion,
    candidate: Candidate | None,
    provenance: dict[str, object],
) -> Path:
    """Store one sample atomically unless it exists; return its folder. `provenance` holds additional fields."""
    folder = locate_sample(run_dir, key)
    if has_sample(run_dir, key):
        return folder
    record = {**_describe(key, prompt, candidate), **provenance}
    files = {PROMPT: prompt.text.encode("utf-8", "surrogatepass"), COMPLETION_REST: _describe_completion(completion)}
    if prompt.earlier:
        files[MESSAGES] = to_json([asdict(one) for one in prompt.earlier])
    if completion.text is not None:
        files[COMPLETION_TEXT] = completion.text.encode("utf-8", "surrogatepass")
    if candidate is not None:
        files[CANDIDATE] = candidate.source.encode()
    files[PROVENANCE] = to_json(record)
    with store_errors(folder):
        _write_folder(run_dir, folder, files)
    return folder


def write_search(run_dir: Path, key: SampleKey, record: dict[str, Any]) -> None:
    path = locate_sample(run_dir, replace(key, turn=0)) / SEARCH
    with store_errors(path):
        replace_file(path, to_json(record))


def read_search(run_dir: Path, key: SampleKey) -> dict[str, Any]:
    path = locate_sample(run_dir, replace(key, turn=0)) / SEARCH
    return read_json(path) if path.is_file() else {}


def _describe(key: SampleKey, prompt: Prompt, candidate: Candidate | None) -> dict[str, object]:
    return {
        **asdict(key),
        "prompt": prompt.name,
        "prompt_digest": prompt.digest,
        "language": prompt.language,
        **_describe_candidate(candidate),
    }


def _describe_candidate(candidate: Candidate | None) -> dict[str, object]:
    extraction = candidate.extraction if candidate else None
    return {
        "rule": candidate.rule if candidate else None,
        "candidate_digest": candidate.digest if candidate else None,
        **({"not_run": candidate.not_run} if candidate and candidate.not_run else {}),
        "extraction": asdict(extraction) if extraction else None,
    }


def _describe_completion(completion: Completion) -> bytes:
    record = asdict(completion)
    del record["text"]
    return to_json(record)


def _write_folder(run_dir: Path, folder: Path, files: dict[str, bytes]) -> None:
    partial = run_dir / f"{_PARTIAL}{'-'.join(folder.relative_to(run_dir).parts)}-{os.getpid()}"
    partial.mkdir()
    try:
        for name, content in files.items():
            write_durably(partial / name, content)
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(folder.parent)


def read_completion(folder: Path) -> Completion | None:
    text_path, rest_path = folder / COMPLETION_TEXT, folder / COMPLETION_REST
    if not text_path.is_file() and not rest_path.is_file():
        return None
    rest = read_json(rest_path) if rest_path.is_file() else {}
    text = read_bytes(text_path).decode("utf-8", "surrogatepass") if text_path.is_file() else None
    try:
        completion: Completion = make_value(Completion, {**rest, "text": text})
        return completion
    except TypeError as error:
        raise StoreError(
            f"{rest_path} is not a stored completion ({error}): remove {folder} to sample it again"
        ) from error


def load_samples(run_dir: Path) -> list[Sample]:
    manifest = read_manifest(run_dir)
    samples = [_read_sample(path.parent, manifest) for path in _find_provenances(run_dir)]
    return sorted(samples, key=lambda sample: (sample.key.problem, sample.key.sample, sample.key.turn))


def list_keys(run_dir: Path) -> list[SampleKey]:
    """Return ordered keys of all complete samples, from folder names alone."""
    keys = []
    for path in _find_provenances(run_dir):
        problem, sample, *turn = path.parent.relative_to(run_dir).parts
        number = turn[0].removeprefix("turn-") if turn else "0"
        if sample.isdecimal() and number.isdecimal():
            keys.append(SampleKey(run=run_dir.name, problem=problem, sample=int(sample), turn=int(number)))
    return sorted(keys, key=lambda key: (key.problem, key.sample, key.turn))


def load_sample(run_dir: Path, key: SampleKey) -> Sample:
    """Raises StoreError."""
    return _read_sample(locate_sample(run_dir, key), read_manifest(run_dir))


def require_unedited(run_dir: Path, sample: Sample) -> None:
    """Raises UsageError if the program differs from the extracted one."""
    folder = locate_sample(run_dir, sample.key)
    recorded = read_json(folder / PROVENANCE).get("candidate_digest")
    if recorded and sample.candidate and sample.candidate.digest != recorded:
        raise UsageError(
            f"{folder / CANDIDATE} was edited after extraction: restore it with "
            "harness extract --stored --write, or evaluate the edited program with --candidate"
        )


def replace_candidate(run_dir: Path, key: SampleKey, candidate: Candidate | None) -> None:
    """The replacement of two files is not atomic; a repeated extraction repairs it."""
    folder = locate_sample(run_dir, key)
    record = read_json(folder / PROVENANCE)
    record |= _describe_candidate(candidate)
    with store_errors(folder):
        if candidate is not None:
            replace_file(folder / CANDIDATE, candidate.source.encode())
        replace_file(folder / PROVENANCE, to_json(record))
        if candidate is None:
            (folder / CANDIDATE).unlink(missing_ok=True)


def _find_provenances(run_dir: Path) -> Iterator[Path]:
    for pattern in (f"*/*/{PROVENANCE}", f"*/*/turn-*/{PROVENANCE}"):
        yield from (path for path in run_dir.glob(pattern) if not path.relative_to(run_dir).parts[0].startswith("."))


def _read_sample(folder: Path, manifest: RunManifest) -> Sample:
    record = read_json(folder / PROVENANCE)
    try:
        key = SampleKey(
            run=manifest.run, problem=record["problem"], sample=int(record["sample"]), turn=int(record["turn"])
        )
        candidate = _read_candidate(folder, record)
        return Sample(
            key=key,
            model=record.get("model", manifest.model),
            prompt=record["prompt"],
            suite=record.get("suite", manifest.suite),
            language=record["language"],
            completion=read_completion(folder),
            candidate=candidate,
            max_tokens=record.get("max_tokens", manifest.max_tokens),
            parent=record.get("parent"),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StoreError(
            f"{folder / PROVENANCE} is damaged ({error!r}): remove {folder} and generate it again"
        ) from error


def _read_candidate(folder: Path, record: dict[str, Any]) -> Candidate | None:
    if record["rule"] is None:
        return None
    source = read_bytes(folder / CANDIDATE).decode()
    extraction = make_value(Extraction | None, record.get("extraction"))
    return Candidate(
        source=source,
        language=record["language"],
        rule=record["rule"],
        extraction=extraction,
        not_run=record.get("not_run", ""),
    )
