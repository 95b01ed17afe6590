"""How fast candidates are built: both lanes beside torch's own load_inline, in one run, from sources never built.

    python benchmarks/build.py [--quick] [--many 40] [--cache FOLDER]

Rows: one CUDA candidate, cold, through each way (medians of 3, or one repeat with --quick), then `--many` different
ones through the fast lane with two builds at a time, against load_inline one after another and in two processes; these
two are extrapolated from single builds, which run alone, and from one pair that runs at once. Last, the same candidate
again in a new process. What the fast lane needs once per torch and flags (its kit) is made first and shown
in a row of its own. Goals: 8x for one candidate, 8x and 4x for many, 50 ms beyond importing torch for the last.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.build import Builder, probe_toolchain
from harness.domain import BuildRequest
from harness.judge.confinement import clean_environment, interpreter_folders, probe_confinement

CUDA = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math.h>

__global__ void relu_bias_{n}(const float* input, const float* bias, float* output,
                              int batch, int channels, int height, int width) {{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= batch * channels * height * width) return;
    int c = (idx / (width * height)) % channels;
    output[idx] = fmaxf(input[idx], {n}e-9f) + bias[c];
}}

torch::Tensor relu_bias(torch::Tensor input, torch::Tensor bias) {{
    TORCH_CHECK(input.dim() == 4, "input must have 4 dimensions, it has ", input.dim());
    auto output = torch::empty_like(input);
    const int threads = 256;
    const int total = input.numel();
    relu_bias_{n}<<<(total + threads - 1) / threads, threads>>>(
        input.data_ptr<float>(), bias.data_ptr<float>(), output.data_ptr<float>(),
        input.size(0), input.size(1), input.size(2), input.size(3));
    return output;
}}
"""
CPP = "torch::Tensor relu_bias(torch::Tensor input, torch::Tensor bias);"
LOAD_INLINE = """
import sys, time
from torch.utils.cpp_extension import load_inline
cuda, cpp = (open(path).read() for path in sys.argv[1:3])
folder = sys.argv[3]
began = time.monotonic()
load_inline("relu_bias", cpp_sources=cpp, cuda_sources=cuda, functions=["relu_bias"], build_directory=folder)
print("took", time.monotonic() - began)
"""
AGAIN = """
import sys, time
import torch
import torch.utils.cpp_extension
began = time.monotonic()
import importlib.util
spec = importlib.util.spec_from_file_location("relu_bias", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert callable(module.relu_bias)
print("took", time.monotonic() - began)
"""


class Bench:
    """Builds in one temporary cache; every request has a number of its own, so none is found there."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._number = time.time_ns() // 1_000_000  # a cache that is used again holds none of these
        walls = probe_confinement("auto")
        toolchain = probe_toolchain()
        if not toolchain.can_build_cuda:
            raise SystemExit("this needs nvcc and a CUDA build of torch")
        self.toolchain = toolchain
        self._builders = {
            lane: Builder(
                cache=cache, toolchain=toolchain, wrap=walls.wrap, readable=interpreter_folders(),
                environment=clean_environment, fast=lane == "fast",
            )
            for lane in ("fast", "plain")
        }  # fmt: skip

    def next_source(self) -> str:
        self._number += 1
        return CUDA.format(n=self._number)

    def build(self, lane: str) -> Path:
        """One candidate never seen before; the lane must be the one that was asked for."""
        request = BuildRequest(
            name="relu_bias", cpp_sources=(CPP,), cuda_sources=(self.next_source(),), functions=(("relu_bias", ""),)
        )
        result = self._builders[lane].build(request)
        if result.library is None or result.lane != lane:
            found = f"{result.status} in the {result.lane} lane"
            raise SystemExit(f"expected a library of the {lane} lane, got {found}:\n{result.log[-3000:]}")
        return Path(result.library)

    def load_inline(self) -> float:
        """Seconds of torch's own load_inline in a new process and a fresh directory, beyond importing torch."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            paths = [Path(name) / "cuda.txt", Path(name) / "cpp.txt", Path(name) / "build"]
            paths[0].write_text(self.next_source())
            paths[1].write_text(CPP)
            paths[2].mkdir()
            headers = ":".join(self.toolchain.packaged_cuda_headers)
            environment = os.environ | {
                "CPLUS_INCLUDE_PATH": headers,
                "CUDA_HOME": str(self.toolchain.cuda_home),
                "TORCH_CUDA_ARCH_LIST": self.toolchain.architecture,
            }
            return read_took([sys.executable, "-c", LOAD_INLINE, *map(str, paths)], environment)

    def prepare(self) -> float:
        """Seconds until the fast lane is ready; it is made when flags come for the second time."""
        began_s = time.monotonic()
        for _ in range(3):
            request_source = self.next_source()
            request = BuildRequest(
                name="relu_bias", cpp_sources=(CPP,), cuda_sources=(request_source,), functions=(("relu_bias", ""),)
            )
            if self._builders["fast"].build(request).lane == "fast":
                return time.monotonic() - began_s
        raise SystemExit("the fast lane cannot be made ready here; see unusable.txt below the cache's kits/")


def read_took(command: list[str], environment: dict[str, str] | None = None) -> float:
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if finished.returncode != 0:
        raise SystemExit(finished.stdout[-2000:] + finished.stderr[-4000:])
    return float(finished.stdout.split("took ")[1].split()[0])


def measure_s(work: Callable[[], object]) -> float:
    began_s = time.monotonic()
    work()
    return time.monotonic() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repeat of each")
    parser.add_argument("--many", type=int, default=40)
    parser.add_argument("--cache", type=Path, help="a folder whose kits are used again; nothing else in it is")
    options = parser.parse_args()
    repeats = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), options.cache or Path(name) / "cache")
        print_table(bench, repeats, options.many)


def print_table(bench: Bench, repeats: int, many: int) -> None:
    prepare_s = bench.prepare()
    library = bench.build("fast")
    rounds = [
        (bench.load_inline(), measure_s(lambda: bench.build("plain")), measure_s(lambda: bench.build("fast")))
        for _ in range(repeats)
    ]
    torch_s, plain_s, fast_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    with ThreadPoolExecutor(2) as pool:
        pair_s = measure_s(lambda: list(pool.map(lambda _: bench.load_inline(), range(2))))
        many_s = measure_s(lambda: list(pool.map(lambda _: bench.build("fast"), range(many))))
    again_s = statistics.median(read_took([sys.executable, "-c", AGAIN, str(library)]) for _ in range(repeats))
    print(f"{'':46}{'seconds':>9}  against load_inline")
    print(f"{'load_inline, one CUDA candidate, cold':46}{torch_s:9.2f}  1")
    print(f"{'plain lane':46}{plain_s:9.2f}  {torch_s / plain_s:.1f}x")
    print(f"{'fast lane (goal 8x)':46}{fast_s:9.2f}  {torch_s / fast_s:.1f}x")
    label = f"fast lane, {many} candidates, two at a time"
    print(f"{label:46}{many_s:9.2f}  {torch_s * many / many_s:.1f}x in a row (goal 8x)")
    print(f"{'':46}{'':9}  {pair_s / 2 * many / many_s:.1f}x two at a time (goal 4x)")
    print(f"{'the same again, beyond importing torch':46}{again_s:9.3f}  goal below 0.050 s")
    print(f"{'once: first builds and the kit':46}{prepare_s:9.2f}")


if __name__ == "__main__":
    main()
