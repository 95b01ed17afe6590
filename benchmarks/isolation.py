"""What isolation costs: one evaluation of a candidate that is built already, on a tiny problem, beyond its own work.

Run: python benchmarks/isolation.py
Goal: under 0.3 s per candidate. Baseline: a fresh interpreter that imports torch and loads the same extension.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.domain import Candidate, Outcome
from harness.executors.executor import Origin, Task, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.problems.discovery import read_problem

REPEATS = 10
GOAL_S = 0.3
EVALUATED_CALLS = ("correctness", "probes")  # the phases in which the candidate is called and its outputs are evaluated

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(31, 17)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

module = load_inline("add_one", "torch::Tensor add_one(torch::Tensor x) { return x + 1; }", functions=["add_one"])

class ModelNew(nn.Module):
    def forward(self, x):
        return module.add_one(x)
"""


def write_task(folder: Path) -> Task:
    path = folder / "add_one.py"
    path.write_text(PROBLEM)
    problem = read_problem(path, "benchmark")
    candidate = Candidate(source=CANDIDATE, language="cpp", rule="file")
    return make_task(problem, candidate, Origin(run="benchmark", model="-"), language="cpp")


def measure_evaluations(folder: Path) -> tuple[float, float]:
    """(median seconds of an evaluation, median seconds of the calls inside it), the extension being built before."""
    task = write_task(folder)
    settings = LocalSettings(cache=folder / "cache", fidelity="correctness", attribute_work=False)
    totals, own = [], []
    with LocalExecutor(settings) as executor:
        executor.submit(task).result()  # builds, and warms the forkserver
        for _ in range(REPEATS):
            began_s = time.monotonic()
            evaluation = executor.submit(task).result()
            totals.append(time.monotonic() - began_s)
            assert evaluation.outcome is Outcome.CORRECT, evaluation.message
            own.append(sum(spent_s for phase, spent_s in evaluation.phases_s if phase in EVALUATED_CALLS))
    return statistics.median(totals), statistics.median(own)


def measure_fresh_interpreter(folder: Path) -> float:
    """Median seconds of a new interpreter that imports torch and loads the library from the cache."""
    library = next((folder / "cache").rglob("library.so"))
    program = (
        "import importlib.util as u, torch; "
        f"s = u.spec_from_file_location('add_one', {str(library)!r}); m = u.module_from_spec(s); "
        "s.loader.exec_module(m); m.add_one(torch.rand(31, 17))"
    )
    times = []
    for _ in range(3):
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-c", program], check=True)
        times.append(time.monotonic() - began_s)
    return statistics.median(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total_s, own_s = measure_evaluations(folder)
        fresh_s = measure_fresh_interpreter(folder)
    beyond_s = total_s - own_s
    print(f"{'':44}{'seconds':>8}  ratio to baseline")
    print(f"{'evaluation, prebuild and evaluating workers':44}{total_s:8.3f}  {total_s / fresh_s:.3f}")
    print(f"{'  of it the evaluated calls':44}{own_s:8.3f}  {own_s / fresh_s:.3f}")
    print(f"{'  beyond them':44}{beyond_s:8.3f}  {beyond_s / fresh_s:.3f}")
    print(f"{'baseline: fresh interpreter with torch':44}{fresh_s:8.3f}  1")
    print(f"goal {GOAL_S} s beyond its own work: {'met' if beyond_s < GOAL_S else 'MISSED'}")


if __name__ == "__main__":
    main()
