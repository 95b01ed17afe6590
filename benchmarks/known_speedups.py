"""Whether known speedups are recovered: candidates that do a known part of the reference's work.

Run on an idle machine: python benchmarks/known_speedups.py [--language cpp|cuda] [--sizes SIZE ...]
On a CPU, reference and candidates multiply a tensor of SIZE elements so many times in a row. On a GPU they run one busy
loop of so many SIZEs of clock cycles. The expected speedup is that of both modules called in turn in this process,
caches flushed before each call: of whole calls on a CPU, of the device's work on a GPU. Goal: each measured speedup
lies within 2 % of the expected one, or its candidate's time within 3 us, for calls of 50 us or more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from harness.domain import Candidate, Evaluation, Problem
from harness.executors.executor import Origin, Task, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.sandbox.devices import Device, open_device

SIZES = {"cuda": (2_000, 6_000, 20_000, 100_000, 600_000), "cpp": (1 << 12, 1 << 16, 1 << 20)}
REFERENCE_STEPS, CANDIDATE_STEPS = 60, (60, 57, 50, 30)
REPEATS = 100
AHEAD_CYCLES = 2_000_000  # of the device, in which the host launches a call's work
GOAL_SHARE, GOAL_US, SHORTEST_US = 0.02, 3.0, 50.0

MODULE = """
import torch
from torch import nn


class {name}(nn.Module):
    def forward(self, x):
        {work}
        return x * 2.0


def get_inputs():
    return [torch.randn({elements})]


def get_init_inputs():
    return []
"""
WORK = {
    "cuda": "torch.cuda._sleep({steps} * {size})",
    "cpp": "for _ in range({steps}):\n            x = x * 1.0",
}
GPU_ELEMENTS = 1 << 20


def write(name: str, size: int, steps: int, language: str) -> str:
    work = WORK[language].format(steps=steps, size=size)
    return MODULE.format(name=name, work=work, elements=GPU_ELEMENTS if language == "cuda" else size)


def make(size: int, steps: int, language: str) -> Task:
    reference = write("Model", size, REFERENCE_STEPS, language)
    problem = Problem(name=f"work_of_{size}", suite="benchmark", source=reference)
    candidate = Candidate(source=write("ModelNew", size, steps, language), language=language, rule="file")
    return make_task(problem, candidate, Origin(run="benchmark", model="-"), language=language)


def load(source: str) -> torch.nn.Module:
    names: dict[str, Any] = {}
    exec(source, names)
    module: torch.nn.Module = names["Model"]()
    return module


def expect_speedup(device: Device, size: int, steps: int, language: str) -> float:
    x = torch.randn(GPU_ELEMENTS if language == "cuda" else size, device=device.torch_device)
    modules = [load(write("Model", size, count, language)) for count in (REFERENCE_STEPS, steps)]
    times: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for _ in range(REPEATS):
            for module, found in zip(modules, times, strict=True):
                device.flush_cache()
                device.synchronize()
                found.append(time_work(partial(module, x)) if language == "cuda" else time_call(partial(module, x)))
    return statistics.median(first / second for first, second in zip(*times, strict=True))


def time_call(call: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def time_work(call: Callable[[], Any]) -> float:
    """Return the time of a call's device work, without that of two events with nothing between."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    torch.cuda._sleep(AHEAD_CYCLES)
    marks[0].record()
    marks[1].record()
    call()
    marks[2].record()
    torch.cuda.synchronize()
    return marks[1].elapsed_time(marks[2]) - marks[0].elapsed_time(marks[1])


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
    parser.add_argument("--sizes", type=int, nargs="*", metavar="SIZE")
    options = parser.parse_args()
    device = open_device("cuda:0" if options.language == "cuda" else "cpu")
    met = []
    with tempfile.TemporaryDirectory() as cache:
        settings = LocalSettings(cache=Path(cache), device=device.name)
        for size in options.sizes or SIZES[options.language]:
            for steps in CANDIDATE_STEPS:
                expected = expect_speedup(device, size, steps, options.language)
                device.release_memory()
                with LocalExecutor(settings) as executor:
                    evaluation = executor.submit(make(size, steps, options.language)).result()
                met.append(report(evaluation, steps, expected))
    goal = f"within {GOAL_SHARE:.0%} or {GOAL_US:g} us from {SHORTEST_US:g} us a call on"
    print(f"goal: {goal}: {'met' if all(met) else 'MISSED'}")


if __name__ == "__main__":
    main()
