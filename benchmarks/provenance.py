"""What the comparison with earlier candidates costs, with 10,000 stored ones.

    python benchmarks/provenance.py [--stored 10000]

The candidates are variants of the recorded answers and of the example in the prompt, with other constants, so that most
of them are different programs. The ratio is against `ResultStore.record` of a candidate whose fingerprint is known.
Goal: comparing and storing a new candidate takes under 50 ms, where its evaluation takes seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.domain import Candidate, Evaluation, Outcome, Problem
from harness.executors.executor import Origin, Task, make_task
from harness.generate.extraction.extractor import find_code
from harness.pipeline.provenance import Provenance
from harness.problems.discovery import find_problem
from harness.store.results import DATABASE_NAME, ResultStore

ROOT = Path(__file__).parents[1]
GOAL_MS = 50.0
MEASURED = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stored", type=int, default=10_000)
    stored = parser.parse_args().stored
    sources = [find_code(path.read_text()) for path in sorted((ROOT / "recordings").rglob("completion.md"))]
    programs = [one.source for one in sources if one and one.source]
    problem = find_problem("softmax", ROOT / "reference_models" / "core")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), list(make_tasks(programs, problem, stored + MEASURED)), stored)


def make_tasks(programs: list[str], problem: Problem, count: int) -> Iterator[Task]:
    for number in range(count):
        source = programs[number % len(programs)].replace("1024", str(number)).replace("256", str(number))
        source += f"\n\nNUMBER = {number}\n"
        origin = Origin(run=f"run-{number % 20}", model=f"model-{number % 5}", sample=number)
        candidate = Candidate(source=source, language="cuda", rule="file")
        yield make_task(problem, candidate, origin, language="cuda")


def measure(folder: Path, tasks: list[Task], stored: int) -> None:
    with ResultStore.open(folder) as store:
        began_s = time.perf_counter()
        store.record_all((make_evaluation(task), source_of(task)) for task in tasks[:stored])
        print(f"{stored} candidates with fingerprints stored in {time.perf_counter() - began_s:.1f} s")
        began_s = time.perf_counter()
        provenance = Provenance(store, generated_dir=folder / "generated")
        print(f"opened for comparing in {1000 * (time.perf_counter() - began_s):.1f} ms")
        new, known, found = [], [], 0
        for task in tasks[stored:]:
            began_s = time.perf_counter()
            evaluation = provenance.record(make_evaluation(task), task).evaluation
            new.append(1000 * (time.perf_counter() - began_s))
            found += bool(evaluation.findings)
            began_s = time.perf_counter()
            store.record(make_evaluation(task), source_of(task))
            known.append(1000 * (time.perf_counter() - began_s))
    typical, plain = statistics.median(new), statistics.median(known)
    print(f"{found} of {MEASURED} new candidates share a kernel with one of another model")
    print(f"compared and stored: median {typical:.1f} ms, longest {max(new):.1f} ms; only stored: {plain:.1f} ms")
    verdict = "met" if typical < GOAL_MS else "MISSED"
    print(f"{typical / plain:.1f} times storing alone; goal {GOAL_MS:.0f} ms: {verdict}")
    print(f"{(folder / DATABASE_NAME).stat().st_size / stored / 1024:.1f} KB a candidate in the database")


def source_of(task: Task) -> str:
    assert task.candidate is not None
    return task.candidate.source


def make_evaluation(task: Task) -> Evaluation:
    return Evaluation(subject=replace(task.subject, device="cpu"), outcome=Outcome.WRONG_VALUE)


if __name__ == "__main__":
    main()
