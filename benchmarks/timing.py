"""What it costs that a time cannot be faked: evaluating a candidate of about a millisecond a call, part by part.

Run: python benchmarks/timing.py [--blocks N]
Goal: at most twice the time of plain timing. Baseline: plain timing of as many pairs of calls in one process that
believes its candidate: fresh inputs, a flushed cache, a clock around the call.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from harness.domain import Candidate, Evaluation, Outcome
from harness.evaluation.settings import TimingPlan
from harness.executors.executor import Origin, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.problems.discovery import read_problem
from harness.problems.loading import load_problem
from harness.sandbox.devices import CpuDevice

GOAL_RATIO = 2.0

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(256, 512)]

def get_init_inputs():
    return [512]
"""


def evaluate(folder: Path, blocks: int) -> Evaluation:
    """The evaluation of the reference as its own candidate, once everything that is measured once is known."""
    path = folder / "problem.py"
    path.write_text(PROBLEM)
    problem = read_problem(path, "benchmark")
    candidate = Candidate(source=PROBLEM.replace("class Model(", "class ModelNew("), language="cpp", rule="file")
    plan = TimingPlan(max_blocks=blocks, wanted_half_width=0.0, budget_s=600.0, allow_load=True)  # not before the last
    with LocalExecutor(LocalSettings(cache=folder / "cache", plan=plan)) as executor:
        task = make_task(problem, candidate, Origin(run="benchmark", model="-"), language="cpp")
        executor.submit(task).result()  # also measures the noise floor and the peaks, once for all candidates
        evaluation = executor.submit(task).result()
    assert evaluation.outcome is Outcome.CORRECT, evaluation.message
    return evaluation


def time_plainly(folder: Path, blocks: int) -> tuple[float, float]:
    """(seconds for all, median microseconds of a call) of as many pairs of calls in this process."""
    loaded = load_problem(read_problem(folder / "problem.py", "benchmark"), "full")
    device = CpuDevice()
    models = [loaded.make_model(1, device.torch_device) for _ in range(2)]
    times = []
    began_s = time.monotonic()
    with torch.no_grad():
        for block in range(blocks):
            inputs = loaded.make_inputs(block, device.torch_device)
            for model in models:
                device.flush_cache()
                called_ns = time.perf_counter_ns()
                model(*inputs)
                times.append((time.perf_counter_ns() - called_ns) / 1e3)
    return time.monotonic() - began_s, sorted(times)[len(times) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    most = TimingPlan().max_blocks  # which an evaluation of such a candidate mostly takes
    parser.add_argument("--blocks", type=int, default=most, help="pairs of calls that both time")
    blocks = parser.parse_args().blocks
    with tempfile.TemporaryDirectory() as name:
        evaluation = evaluate(Path(name), blocks)
        plain_s, call_us = time_plainly(Path(name), blocks)
    print(f"{blocks} pairs of calls of {call_us:.0f} us{'':20}{'seconds':>8}  ratio to baseline")
    print(f"{'baseline: plain timing in one process':48}{plain_s:8.3f}  1")
    print(f"{'a whole evaluation':48}{evaluation.duration_s:8.3f}  {evaluation.duration_s / plain_s:.2f}")
    for phase, spent_s in evaluation.phases_s:
        print(f"{'  ' + phase:48}{spent_s:8.3f}  {spent_s / plain_s:.2f}")
    met = evaluation.duration_s <= GOAL_RATIO * plain_s
    print(f"goal: {GOAL_RATIO:g} times plain timing: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
