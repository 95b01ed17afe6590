"""Exports the verdicts of a run as traces of flashinfer-bench and SOL-ExecBench.

traces/<definition>.jsonl           one line per workload and solution: definition, workload, solution, evaluation
solutions/<author>/<name>.json      programs that were not imported as solutions
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.domain import CaseResult, Evaluation, Outcome, Sample, UsageError
from harness.formats.imported import read_json_lines, read_json_object, write_bytes
from harness.formats.kernelbench.export import load_evaluations
from harness.formats.storing import WORKLOADS
from harness.store.run_files import to_json
from harness.store.runs import PROVENANCE, load_samples, locate_sample, read_manifest

STATUS = {
    Outcome.CORRECT: "PASSED",
    Outcome.WRONG_SHAPE: "INCORRECT_SHAPE",
    Outcome.WRONG_DTYPE: "INCORRECT_DTYPE",
    Outcome.WRONG_VALUE: "INCORRECT_NUMERICAL",
    Outcome.BUILD_ERROR: "COMPILE_ERROR",
    Outcome.LOAD_ERROR: "COMPILE_ERROR",
    Outcome.TIMEOUT: "TIMEOUT",
}
OTHER_STATUS = "RUNTIME_ERROR"  # of other outcomes that count against a model
_LIBRARIES = ("torch", "triton")
_LANGUAGES = ("triton", "tilelang")  # others are Python that builds extensions
_ENTRY = "\n\n_MODEL = ModelNew()\n\n\ndef run(*inputs):\n    return _MODEL(*inputs)\n"


def export_traces(run_dir: Path, suite_dir: Path, results_dir: Path, target: Path) -> tuple[int, int]:
    """Return the numbers of traces and of evaluations left out, which are no verdicts. Raises UsageError."""
    samples = {(one.key.problem, one.key.sample, one.key.turn): one for one in load_samples(run_dir)}
    lines: dict[str, list[str]] = {}
    left_out = 0
    for evaluation in load_evaluations(results_dir, read_manifest(run_dir)):
        subject = evaluation.subject
        sample = samples.get((subject.problem, subject.sample, subject.turn))
        if sample is None or not evaluation.outcome.counts_against_model:
            left_out += 1
            continue
        path = suite_dir / f"{subject.problem}{WORKLOADS}"
        if not path.is_file():
            raise UsageError(f"{path} is missing: traces need a problem that was imported with its workloads")
        workloads = {record["workload"]["uuid"]: record for _, record in read_json_lines(path)}
        definition = next(iter(workloads.values()))["definition"]
        solution = _name_solution(run_dir, sample, definition, target)
        for uuid, result in _list_results(evaluation, workloads):
            trace = {**workloads[uuid], "solution": solution, "evaluation": result}
            lines.setdefault(definition, []).append(json.dumps(trace) + "\n")
    for definition, traces in lines.items():
        write_bytes(target / "traces" / f"{definition}.jsonl", "".join(traces).encode())
    return sum(map(len, lines.values())), left_out


def _name_solution(run_dir: Path, sample: Sample, definition: str, target: Path) -> str:
    """Return the name in the source; otherwise write the program as a solution."""
    given = read_json_object(locate_sample(run_dir, sample.key) / PROVENANCE).get("solution")
    if given or sample.candidate is None:
        return str(given or sample.key)
    name = str(sample.key).replace("/", "_")
    language = sample.candidate.language if sample.candidate.language in _LANGUAGES else "python"
    spec = {
        "language": language,
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "destination_passing_style": False,
    }
    source = {"path": "main.py", "content": sample.candidate.source + _ENTRY}
    record = {"name": name, "definition": definition, "author": sample.model, "spec": spec, "sources": [source]}
    path = target / "solutions" / sample.model.replace("/", "_") / f"{name}.json"
    write_bytes(path, to_json(record))
    return name


def _list_results(one: Evaluation, workloads: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Use the evaluated cases. If none has the outcome, and for suspects, it is the outcome of every workload."""
    cases = {case.name: case for case in one.cases if case.name in workloads}
    if one.outcome is Outcome.SUSPECT or not any(case.outcome is one.outcome for case in cases.values()):
        cases = {uuid: CaseResult(name=uuid, sizes="", outcome=one.outcome) for uuid in workloads}
    for uuid, case in cases.items():
        yield uuid, _describe(one, case)


def _describe(one: Evaluation, case: CaseResult) -> dict[str, Any]:
    status = STATUS.get(case.outcome, OTHER_STATUS)
    errors = (
        [trial.max_abs_error for trial in one.correctness.trials if trial.case == case.name] if one.correctness else []
    )
    timing = case.timing
    libraries = {name: version for name, version in one.facts.items() if name in _LIBRARIES}
    result: dict[str, Any] = {
        "status": status,
        "environment": {"hardware": one.hardware or "unknown", "libs": libraries},
        "timestamp": one.started_at or "unknown",
        "log": f"harness: {case.outcome}{': ' + one.message if one.message and status != 'PASSED' else ''}",
        "correctness": None,
        "performance": None,
    }
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        largest = max((error for error in errors if error is not None), default=None)
        result["correctness"] = {
            "max_absolute_error": "NaN" if largest is None else largest,
            "max_relative_error": "NaN",
        }
    if status == "PASSED":
        result["performance"] = {
            "latency_ms": timing.candidate_us / 1000 if timing else 0.0,
            "reference_latency_ms": timing.baseline_us / 1000 if timing else 0.0,
            "speedup_factor": timing.speedup if timing else 0.0,
        }
    return result
