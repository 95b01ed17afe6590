"""Runs a corpus of attacks and controls (legitimate programs) through the evaluator.

A corpus has `attacks/`, `controls/` and `problems/`; each program's docstring is its header (`docs/red-team.md`), which
is read without executing it. A full run without deviations earns a certificate.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Literal, Self, get_args

from harness.domain import EMULATED, Candidate, Evaluation, Language, Outcome, Problem, UsageError
from harness.domain.options import TimeLimits
from harness.evaluation.certificate import (
    Basis,
    Certificate,
    describe_basis,
    find_corpus,
    remove_certificate,
    write_certificate,
)
from harness.evaluation.settings import TimingPlan
from harness.executors.executor import Origin, Task, make_task, run_tasks
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.languages import CPU_LANGUAGE, GPU_LANGUAGE, LANGUAGES, detect_language
from harness.problems.discovery import read_problem
from harness.sandbox.devices import Device, find_device
from harness.syntax import parse_python

Layer = Literal["time", "correctness", "no_kernel", "process", "control"]
CorpusDevice = Literal["cpu", "gpu", "emulated", "gpu or emulated"]
Result = Literal["caught", "accepted", "passed", "refused", "other", "failed", "skipped"]

LAYERS: tuple[Layer, ...] = ("time", "correctness", "no_kernel", "process", "control")
ATTACK_FIELDS = ("layer", "mechanism", "problem", "expected", "device", "timed")
CONTROL_FIELDS = ("mechanism", "problem", "expected", "device", "timed")
OPTIONAL_FIELDS = ("known_open", "language")
# Detections that are not outcomes: the program counts as correct but gains nothing. REPLAYED: its work was recorded
# whole and timed without its host code, so what that does otherwise has no effect.
# UNVERIFIED: the record says that its share is the worker's word.
UNRANKED, NO_GAIN, NOT_OWN, REPLAYED, UNVERIFIED = "unranked", "no_gain", "not_own", "replayed", "unverified"
FAILURES = tuple(outcome for outcome in Outcome if outcome.counts_against_model and outcome is not Outcome.CORRECT)
CATCHES = (*map(str, FAILURES), UNRANKED, NO_GAIN, NOT_OWN, REPLAYED, UNVERIFIED)
# Above the noise of a busy machine; these attacks aim at a factor of two or more.
GAIN = 1.25
CUSTOM_SHARE = 0.25  # of the time; candidates below do not do their own work
_FIELD = re.compile(r"([a-z_]+):(?: (.*))?")
_FASTER = re.compile(r"faster than (\d+(?:\.\d+)?)")

LIMITS = TimeLimits(load_s=30.0, first_call_s=8.0, call_s=8.0)
# Shorter than for ranking: only false speedups must be detected.
FIRST_CALL_S = 60.0  # of a program in a language that is slow to start
PLAN = TimingPlan(budget_s=2.0, attempts=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    name: str  # "attacks/zeros"
    title: str
    layer: Layer
    mechanism: str
    problem: Problem
    expected: tuple[str, ...]
    faster_than: float | None
    device: CorpusDevice
    timed: bool
    known_open: str
    language: Language
    source: str

    @property
    def is_attack(self) -> bool:
        return self.layer != "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusResult:
    file: CorpusFile
    result: Result
    by: str
    evaluation: Evaluation | None = None

    @property
    def as_expected(self) -> bool:
        return self.result in ("caught", "passed", "skipped")


def read_corpus(folder: Path) -> tuple[CorpusFile, ...]:
    missing = [name for name in ("attacks", "controls", "problems") if not (folder / name).is_dir()]
    if missing:
        raise UsageError(f"{folder} is not a corpus: missing folder {', '.join(missing)}; see docs/red-team.md")
    paths = [*sorted((folder / "attacks").glob("*.py")), *sorted((folder / "controls").glob("*.py"))]
    if not paths:
        raise UsageError(f"the corpus {folder} is empty: add programs to attacks/ and controls/")
    return tuple(read_file(path, folder) for path in paths)


def choose_files(files: Iterable[CorpusFile], patterns: Sequence[str] = ()) -> tuple[CorpusFile, ...]:
    """Choose programs whose name (with or without folder) matches one of the globs; all without any. Raises UsageError
    for a glob that matches none.
    """
    known = tuple(files)
    chosen = set[str]()
    for pattern in patterns:
        matching = {one.name for one in known if fnmatch(one.name, pattern) or fnmatch(one.name.split("/")[1], pattern)}
        if not matching:
            raise UsageError(f"no file of the corpus matches {pattern!r}; names look like {known[0].name}")
        chosen |= matching
    return tuple(file for file in known if file.name in chosen or not patterns)


def read_file(path: Path, corpus: Path) -> CorpusFile:
    """Raises UsageError for an invalid header."""
    where = f"{path.parent.name}/{path.stem}"
    source = path.read_text(encoding="utf-8-sig")
    try:
        title, values = parse_header(source, ATTACK_FIELDS if path.parent.name == "attacks" else CONTROL_FIELDS)
        return _build_file(where, source, title, values, corpus)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path}: {error}; see docs/red-team.md") from error


def parse_header(source: str, required: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return (title, fields) of a program's docstring. Raises ValueError.

    A field is `name: value` at the start of a line; indented lines continue it.
    """
    lines = (ast.get_docstring(parse_python(source)) or "").split("\n")
    if not lines[0].strip() or (len(lines) > 1 and lines[1].strip()):
        raise ValueError("expected a docstring: a one-line description of the program, then an empty line")
    values: dict[str, str] = {}
    name = ""
    for line in lines[2:]:
        match = _FIELD.fullmatch(line)
        if line.startswith(" ") and name:
            values[name] = f"{values[name]} {line.strip()}".strip()
        elif match is None or match[1] in values or match[1] not in (*required, *OPTIONAL_FIELDS):
            raise ValueError(f"expected one of the fields {', '.join(required)}, each once; found {line!r}")
        else:
            name = match[1]
            values[name] = (match[2] or "").strip()
    empty = [name for name in (*required, *values) if not values.get(name)]
    if empty:
        raise ValueError(f"the header lacks {', '.join(empty)}")
    return lines[0].strip(), values


def _build_file(name: str, source: str, title: str, values: Mapping[str, str], corpus: Path) -> CorpusFile:
    is_attack = "layer" in values
    expected, faster_than = _read_expected(values["expected"], is_attack=is_attack)
    timed = _choose(values, "timed", ("yes", "no")) == "yes"
    if not timed and (faster_than is not None or {UNRANKED, NO_GAIN, REPLAYED} & set(expected)):
        raise ValueError(f"{values['expected']!r} requires a timing: set timed: yes")
    if timed and EMULATED in values["device"]:
        raise ValueError("nothing is timed on the emulated device: set timed: no")
    return CorpusFile(
        name=name,
        title=title,
        layer=_choose(values, "layer", LAYERS[:-1]) if is_attack else "control",  # type: ignore[arg-type]
        mechanism=values["mechanism"],
        problem=_read_problem(corpus / "problems", values["problem"]),
        expected=expected,
        faster_than=faster_than,
        device=_choose(values, "device", get_args(CorpusDevice)),  # type: ignore[arg-type]
        timed=timed,
        known_open=values.get("known_open", ""),
        language=_choose_language(values, source),
        source=source,
    )


def _choose_language(values: Mapping[str, str], source: str) -> Language:
    if "language" in values:
        return _choose(values, "language", LANGUAGES)  # type: ignore[return-value]
    if EMULATED in values["device"]:
        return detect_language(source)
    return GPU_LANGUAGE if values["device"] == "gpu" else CPU_LANGUAGE


def _choose(values: Mapping[str, str], name: str, allowed: Collection[str]) -> str:
    if values[name] not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, found {values[name]!r}")
    return values[name]


def _read_expected(text: str, *, is_attack: bool) -> tuple[tuple[str, ...], float | None]:
    words = tuple(word.strip() for word in text.split(","))
    if is_attack:
        unknown = [word for word in words if word not in CATCHES]
        if unknown:
            raise ValueError(f"expected names {', '.join(unknown)}; an attack can end as {', '.join(CATCHES)}")
        return words, None
    faster = _FASTER.fullmatch(words[-1]) if len(words) == 2 else None
    if words[0] != Outcome.CORRECT or len(words) > 2 or (len(words) == 2 and faster is None):
        raise ValueError(f"a control is expected to be 'correct' or 'correct, faster than N', found {text!r}")
    return (words[0],), float(faster[1]) if faster else None


@cache  # many files have the same problem, and to check its settings takes most of the time
def _read_problem(problems: Path, name: str) -> Problem:
    path = problems / f"{name}.py"
    if not re.fullmatch(r"[a-z0-9_]+(/[a-z0-9_]+)?", name) or not path.is_file():
        raise ValueError(f"problem names {name!r}, but there is no file {path}")
    return read_problem(path, path.parent.name)


class RedTeam:
    """A context manager that ends its processes."""

    def __init__(self, settings: LocalSettings, limits: TimeLimits = LIMITS, plan: TimingPlan = PLAN) -> None:
        # Without noise floors it is stricter, and on a CPU saves the A/A runs of every baseline.
        timed = replace(settings, limits=limits, plan=plan, fidelity="full", measure_noise=False)
        untimed = replace(timed, fidelity="correctness")
        patient = replace(limits, first_call_s=max(limits.first_call_s, FIRST_CALL_S))
        self._executors = {
            "compiling": LocalExecutor(replace(untimed, limits=patient)),
            "untimed": LocalExecutor(untimed),
            EMULATED: LocalExecutor(replace(untimed, device=EMULATED)),
            "timed": LocalExecutor(timed),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for executor in self._executors.values():
            executor.close()

    def devices(self) -> list[Device]:
        found = (find_device("auto", language) for language in LANGUAGES)
        real = (device for device in found if device is not None and device.is_timed)
        return list({device.name: device for device in real}.values())

    def find_missing(self, file: CorpusFile) -> str | None:
        devices = self._executors[_find_executor(file)].devices(file.language)
        kind = "" if not devices else {"cpu": "cpu", EMULATED: EMULATED}.get(devices[0].name, "gpu")
        if kind not in file.device.split(" or "):
            return "no GPU"
        return LANGUAGES[file.language].find_missing(kind == EMULATED)

    def evaluate(self, files: Sequence[CorpusFile], report: Callable[[CorpusResult], None]) -> None:
        """Start with untimed programs; skip those without a device."""
        runnable = []
        for file in files:
            missing = self.find_missing(file)
            if missing is None:
                runnable.append(file)
            else:
                report(CorpusResult(file=file, result="skipped", by=missing))
        for name, executor in self._executors.items():
            chosen = [file for file in runnable if _find_executor(file) == name]
            chosen.sort(key=lambda file: file.problem.name)  # what its programs share is made once
            by_run = {file.name: file for file in chosen}

            def take(task: Task, evaluation: Evaluation, known: dict[str, CorpusFile] = by_run) -> None:
                report(conclude(known[task.subject.run], evaluation))

            run_tasks(executor, [_make_task(file) for file in chosen], take)


def _find_executor(file: CorpusFile) -> str:
    if file.device == EMULATED:
        return EMULATED
    if LANGUAGES[file.language].is_slow_to_start and not file.timed:
        return "compiling"
    return "timed" if file.timed else "untimed"


def _make_task(file: CorpusFile) -> Task:
    candidate = Candidate(source=file.source, language=file.language, rule="file")
    origin = Origin(run=file.name, model="red-team")
    return make_task(file.problem, candidate, origin, language=file.language)


def conclude(file: CorpusFile, evaluation: Evaluation) -> CorpusResult:
    result: Result
    if not evaluation.outcome.counts_against_model:
        result = "failed"
    elif file.is_attack:
        caught = any(_is_caught_as(way, evaluation) for way in file.expected)
        result = "caught" if caught else "accepted" if evaluation.outcome is Outcome.CORRECT else "other"
    else:
        result = "passed" if _is_passed(file, evaluation) else "refused"
    return CorpusResult(file=file, result=result, by=name_catcher(evaluation), evaluation=evaluation)


def _is_caught_as(way: str, evaluation: Evaluation) -> bool:
    if evaluation.outcome is not Outcome.CORRECT:
        return way == evaluation.outcome
    if way == NOT_OWN:
        work = evaluation.work
        return work is not None and (work.custom < CUSTOM_SHARE or work.without_custom == "unchanged")
    if way == UNVERIFIED:
        return any(one.check == "unverified_share" for one in evaluation.findings)
    if evaluation.timing is None:
        return False
    if way == REPLAYED:
        return evaluation.timing.clock == "device"
    gains = evaluation.speedup is not None and evaluation.timing.verdict == "faster"
    return (way == UNRANKED and evaluation.speedup is None) or (
        way == NO_GAIN and not (gains and evaluation.timing.speedup_low > GAIN)
    )


def _is_passed(file: CorpusFile, evaluation: Evaluation) -> bool:
    if evaluation.outcome is not Outcome.CORRECT:
        return False
    timing = evaluation.timing
    if file.faster_than is None:
        return True
    # An unreliable timing (busy machine) is not a refusal.
    ranked = evaluation.speedup is not None or (timing is not None and timing.verdict == "unreliable")
    return timing is not None and ranked and timing.speedup >= file.faster_than


def name_catcher(evaluation: Evaluation) -> str:
    fatal = next((finding.check for finding in evaluation.findings if finding.severity == "fatal"), None)
    if fatal is not None:
        return fatal
    if evaluation.outcome is Outcome.CORRECT and evaluation.timing is not None:
        timing = evaluation.timing
        return f"{timing.verdict} {timing.speedup:.2f}x" if evaluation.speedup else str(timing.verdict)
    return str(evaluation.outcome)


def settle_certificate(
    machine_folder: Path, device: Device, before: Basis, results: Sequence[CorpusResult]
) -> Certificate | None:
    """After a full run, write the device's certificate, or remove the previous one.

    `before` is the basis at the start of the run: files changed since then were not evaluated.
    """
    evaluated = [result for result in results if result.evaluation is not None and _concerns(result, before.device)]
    isolation = {result.evaluation.isolation for result in evaluated if result.evaluation is not None}
    clean = all(result.as_expected for result in results) and evaluated and len(isolation) == 1
    corpus = find_corpus()
    if not clean or corpus is None:
        remove_certificate(machine_folder, before.device)
        return None
    basis = replace(before, isolation=isolation.pop())
    if describe_basis(device, corpus, basis.isolation) != basis:
        remove_certificate(machine_folder, before.device)
        return None
    files = {result.file.name: result.file for result in evaluated}
    attacks = sum(file.is_attack for file in files.values())
    certificate = Certificate(
        basis=basis,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        attacks=attacks,
        controls=len(files) - attacks,
    )
    write_certificate(machine_folder, certificate)
    return certificate


def _concerns(result: CorpusResult, kind: str) -> bool:
    device = "" if result.evaluation is None else result.evaluation.subject.device
    return device.startswith("cuda") == (kind == "cuda")
