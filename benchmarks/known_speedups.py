"""Whether known speedups are recovered: candidates that do a known part of the reference's work.

Run on an idle machine: python benchmarks/known_speedups.py [--language cpp|cuda] [--sizes ELEMENTS ...]
Reference and candidates multiply a tensor so many times in a row. The expected speedup is that of both modules called
in turn in this process, caches flushed before each call. Goal: each measured speedup lies within 2 % of the expected
one, or its candidate's time within 3 us, for calls of 50 us or more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from harness.domain import Candidate, Evaluation, Problem
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.executors.tasks import Origin, Task, make_task
from harness.sandbox.devices import Device

SIZES = {"cuda": (1 << 12, 1 << 20, 1 << 24, 1 << 28), "cpp": (1 << 12, 1 << 16, 1 << 20)}
REFERENCE_STEPS, CANDIDATE_STEPS = 60, (60, 57, 50, 30)
REPEATS = 100
GOAL_SHARE, GOAL_US, SHORTEST_US = 0.02, 3.0, 50.0

MODULE = """
import torch
from torch import nn


class {name}(nn.Module):
    def forward(self, x):
        for _ in range({steps}):
            x = x * 1.0
        return x * 2.0


def get_inputs():
    return [torch.randn({size})]


def get_init_inputs():
    return []
"""


class Multiply(torch.nn.Module):
    """What `MODULE` is, in this process."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self._steps):
            x = x * 1.0
        return x * 2.0


def make(size: int, steps: int, language: str) -> Task:
    reference = MODULE.format(name="Model", steps=REFERENCE_STEPS, size=size)
    problem = Problem(name=f"multiply_{size}", suite="benchmark", source=reference)
    source = MODULE.format(name="ModelNew", steps=steps, size=size)
    candidate = Candidate(source=source, language=language, rule="file")
    return make_task(problem, candidate, Origin(run="benchmark", model="-"), language=language)


def expect_speedup(device: Device, size: int, steps: int) -> float:
    x = torch.randn(size, device=device.torch_device)
    modules = Multiply(REFERENCE_STEPS), Multiply(steps)
    times: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for _ in range(REPEATS):
            for module, found in zip(modules, times, strict=True):
                device.flush_cache()
                device.synchronize()
                began_s = time.perf_counter()
                module(x)
                device.synchronize()
                found.append(time.perf_counter() - began_s)
    return statistics.median(first / second for first, second in zip(*times, strict=True))


def report(evaluation: Evaluation, steps: int, expected: float) -> bool:
    timing = evaluation.timing
    if timing is None:
        raise SystemExit(f"{evaluation.subject.problem}: {evaluation.outcome}: {evaluation.message}")
    share = timing.speedup / expected - 1
    error_us = abs(share) * timing.candidate_us
    met = abs(share) <= GOAL_SHARE or error_us <= GOAL_US or timing.baseline_us < SHORTEST_US
    measured = f"{timing.speedup:.3f} [{timing.speedup_low:.3f}, {timing.speedup_high:.3f}] {timing.verdict}"
    print(
        f"{evaluation.subject.problem:20} {steps:3} steps {timing.baseline_us:10.1f} us  expected {expected:.3f}  "
        f"measured {measured:32} {share:+7.2%} {error_us:7.1f} us {'' if met else 'MISSED'}",
        flush=True,
    )
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", default="cpp", choices=sorted(SIZES), help="cpp: on this CPU; cuda: on a GPU")
    parser.add_argument("--sizes", type=int, nargs="*", metavar="ELEMENTS")
    options = parser.parse_args()
    device = Device("cuda:0" if options.language == "cuda" else "cpu")
    met = []
    with tempfile.TemporaryDirectory() as cache:
        settings = LocalSettings(cache=Path(cache), device=device.name)
        for size in options.sizes or SIZES[options.language]:
            for steps in CANDIDATE_STEPS:
                expected = expect_speedup(device, size, steps)
                device.release_memory()
                with LocalExecutor(settings) as executor:
                    evaluation = executor.submit(make(size, steps, options.language)).result()
                met.append(report(evaluation, steps, expected))
    goal = f"within {GOAL_SHARE:.0%} or {GOAL_US:g} us from {SHORTEST_US:g} us a call on"
    print(f"goal: {goal}: {'met' if all(met) else 'MISSED'}")


if __name__ == "__main__":
    main()
