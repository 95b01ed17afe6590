"""Verdicts per GPU-hour with each fidelity, for programs of 0.1, 1 and 10 ms a call.

Run on a machine with a GPU: python benchmarks/fidelity.py [--programs 4] [--sides 1024 2688 5888] [--fidelities quick]
Problem: relu(x @ w + b) with square float32 matrices of SIDE rows. The candidates multiply by torch and fuse the rest
in one CUDA kernel; each is another program. Builds are made before, since they need no GPU, and each problem's noise
floor is measured before; then all programs are submitted at once, on the first GPU. Prints verdicts, seconds, and
verdicts per hour of that GPU.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from harness.domain import Candidate, Evaluation, Fidelity, Problem
from harness.executors.executor import Executor, Origin, Task, make_task
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings

FIDELITIES: tuple[Fidelity, ...] = ("correctness", "quick", "full")
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(side, side) / side**0.5)
        self.bias = nn.Parameter(torch.randn(side))

    def forward(self, x):
        return torch.relu(x @ self.weight + self.bias)


def get_inputs():
    return [torch.randn({side}, {side})]


def get_init_inputs():
    return [{side}]
"""
CANDIDATE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>

__global__ void add_bias_and_relu(float* product, const float* bias, long elements, long columns) {{
    const long index = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (index < elements) product[index] = fmaxf(product[index] + bias[index % columns], 0.0f);
}}

void finish(torch::Tensor product, torch::Tensor bias) {{
    const long elements = product.numel();
    add_bias_and_relu<<<(elements + {threads} - 1) / {threads}, {threads}, 0, at::cuda::getCurrentCUDAStream()>>>(
        product.data_ptr<float>(), bias.data_ptr<float>(), elements, product.size(1));
}}
"""
library = load_inline(
    name="finish",
    cpp_sources="void finish(torch::Tensor product, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["finish"],
)


class ModelNew(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(side, side) / side**0.5)
        self.bias = nn.Parameter(torch.randn(side))

    def forward(self, x):
        product = x @ self.weight
        library.finish(product, self.bias)
        return product
'''


def make_tasks(side: int, programs: int) -> list[Task]:
    problem = Problem(name=f"product_{side}", suite="benchmark", source=PROBLEM.format(side=side))
    sources = [CANDIDATE.format(threads=64 * (index + 1)) for index in range(programs)]
    return [
        make_task(
            problem,
            Candidate(source=source, language="cuda", rule="file"),
            Origin(run="benchmark", model="-"),
            language="cuda",
        )
        for source in sources
    ]


def measure(executor: Executor, tasks: Sequence[Task]) -> tuple[list[Evaluation], float]:
    """Of all tasks, in seconds."""
    began_s = time.monotonic()
    evaluations = [future.result() for future in [executor.submit(task) for task in tasks]]
    return evaluations, time.monotonic() - began_s


def describe(evaluations: Sequence[Evaluation]) -> str:
    counts = Counter(one.timing.verdict if one.timing else one.outcome for one in evaluations)
    timings = [one.timing for one in evaluations if one.timing]
    words = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    if not timings:
        return words
    widths = [timing.speedup_high / timing.speedup_low - 1 for timing in timings]
    return f"{words}; {median(timing.candidate_us for timing in timings) / 1e3:.2f} ms, interval {median(widths):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=4, metavar="N")
    parser.add_argument("--sides", type=int, nargs="*", default=[1024, 2688, 5888], metavar="SIDE")
    parser.add_argument("--fidelities", nargs="*", default=FIDELITIES, choices=FIDELITIES)
    options = parser.parse_args()
    jobs = {side: make_tasks(side, options.programs) for side in options.sides}
    with tempfile.TemporaryDirectory() as cache:
        for fidelity in options.fidelities:
            settings = LocalSettings(cache=Path(cache), device="cuda:0", fidelity=fidelity)
            with LocalExecutor(settings) as executor:
                for side, tasks in jobs.items():
                    measure(executor, tasks if fidelity == options.fidelities[0] else tasks[:1])
                    evaluations, taken_s = measure(executor, tasks)
                    rate = 3600 * len(evaluations) / taken_s
                    measured = f"{taken_s:6.1f} s {rate:6.0f} an hour  {describe(evaluations)}"
                    print(f"{side:6} {fidelity:12} {measured}", flush=True)


if __name__ == "__main__":
    main()
