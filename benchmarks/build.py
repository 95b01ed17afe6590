"""How fast candidates are built: both strategies beside torch's own load_inline, in one run, from sources never built.

    python benchmarks/build.py [--quick] [--many 40] [--few 4] [--cache FOLDER]

Rows: one CUDA candidate, cold, through each way (medians of 3, or one repeat with --quick). Then many different ones,
two builds at a time: `--many` through the fast strategy; `--few` through the plain strategy and through load_inline in
two processes, scaled to as many; load_inline one after another is its median times as many. Then how soon a compile
error comes back, one of each kind. Last, the same candidate again in a new process, from the request to a callable
module, beyond importing torch: where the harness runs already, and with starting it. What the fast strategy needs once
per torch and flags (its kit) is made first and shown in a row of its own. Goals: 8x for one candidate, 8x and 4x for
many, 50 ms for the last. About a quarter of an hour on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation

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
cuda, cpp = (open(path).read() for path in sys.argv[2:4])
folder = sys.argv[4]
began = time.monotonic()
try:
    load_inline("relu_bias", cpp_sources=cpp, cuda_sources=cuda, functions=["relu_bias"], build_directory=folder)
except RuntimeError:
    if sys.argv[1] != "fails":
        raise
print("took", time.monotonic() - began)
"""
AGAIN = """
import json, os, sys, time
import torch
import torch.utils.cpp_extension
started = time.monotonic()
from pathlib import Path
from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest
source, cpp, cache = json.loads(sys.argv[1])
def wrap(command, *, readable, writable):
    raise SystemExit("it was to be found in the cache")
builder = Builder(cache=Path(cache), toolchain=probe_toolchain(), wrap=wrap, environment=lambda: dict(os.environ))
request = BuildRequest(name="relu_bias", cpp_sources=(cpp,), cuda_sources=(source,), functions=(("relu_bias", ""),))
began = time.monotonic()
library = builder.build(request).extension
import importlib.util
spec = importlib.util.spec_from_file_location("relu_bias", library)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert callable(module.relu_bias)
ended = time.monotonic()
print("took", ended - (began if sys.argv[2] == "running" else started))
"""
BROKEN = {
    "in a kernel": ("+ bias[c]", "+ missing(bias[c])"),
    "in a call of torch's": ("input.numel()", "input.no_such_number()"),
    "of syntax": ("+ bias[c];", "+ bias[c]"),
    "in assembly": ("+ bias[c];", '+ bias[c];\n    asm volatile("no.such.instruction;");'),
}


class Bench:
    """Builds in one temporary cache; every request has a number of its own, so none is found there."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._number = time.time_ns() // 1_000_000  # a cache that is used again holds none of these
        layers = probe_isolation("auto")
        toolchain = probe_toolchain()
        if not toolchain.can_build_cuda:
            raise SystemExit("this needs nvcc and a CUDA build of torch")
        self.toolchain = toolchain
        self._builders = {
            strategy: Builder(
                cache=cache, toolchain=toolchain, wrap=layers.wrap, readable=interpreter_folders(),
                environment=clean_environment, fast=strategy == "fast",
            )
            for strategy in ("fast", "plain")
        }  # fmt: skip

    def next_source(self) -> str:
        self._number += 1
        return CUDA.format(n=self._number)

    def build(self, strategy: str) -> None:
        """One candidate never seen before; the strategy must be the one that was asked for."""
        result = self._builders[strategy].build(make_request(self.next_source()))
        if result.extension is None or result.strategy != strategy:
            found = f"{result.status} in the {result.strategy} strategy"
            raise SystemExit(f"expected a library of the {strategy} strategy, got {found}:\n{result.log[-3000:]}")

    def fail(self, kind: str) -> None:
        """One candidate that does not compile, by the way that the harness takes."""
        result = self._builders["fast"].build(make_request(self.next_source().replace(*BROKEN[kind])))
        if result.status != "failed":
            raise SystemExit(f"expected a failed build, got {result.status}")

    def build_again(self, state: str) -> float:
        """Seconds of a new process until a candidate that was built before is a module; `state` running or starting."""
        source = self.next_source()
        if self._builders["fast"].build(make_request(source)).extension is None:
            raise SystemExit("expected a library")
        arguments = json.dumps([source, CPP, str(self._cache)])
        return read_took([sys.executable, "-c", AGAIN, arguments, state])

    def load_inline(self, kind: str | None = None) -> float:
        """Seconds of torch's own load_inline in a new process and a fresh directory, beyond importing torch.

        `kind`: of a candidate that does not compile.
        """
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            paths = [Path(name) / "cuda.txt", Path(name) / "cpp.txt", Path(name) / "build"]
            source = self.next_source()
            paths[0].write_text(source.replace(*BROKEN[kind]) if kind else source)
            paths[1].write_text(CPP)
            paths[2].mkdir()
            headers = ":".join(self.toolchain.packaged_cuda_headers)
            environment = os.environ | {
                "CPLUS_INCLUDE_PATH": headers,
                "CUDA_HOME": str(self.toolchain.cuda_home),
                "TORCH_CUDA_ARCH_LIST": self.toolchain.architecture,
            }
            return read_took(
                [sys.executable, "-c", LOAD_INLINE, "fails" if kind else "", *map(str, paths)], environment
            )

    def prepare(self) -> float:
        """Seconds until the first library of the fast strategy."""
        began_s = time.monotonic()
        if self._builders["fast"].build(make_request(self.next_source())).strategy == "fast":
            return time.monotonic() - began_s
        raise SystemExit("the fast strategy cannot be made ready here; see unusable.txt below the cache's kits/")


def make_request(source: str) -> BuildRequest:
    return BuildRequest(name="relu_bias", cpp_sources=(CPP,), cuda_sources=(source,), functions=(("relu_bias", ""),))


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
    parser.add_argument("--many", type=int, default=40, help="candidates through the fast strategy, two at a time")
    parser.add_argument("--few", type=int, default=4, help="candidates through the slow ways, two at a time")
    parser.add_argument("--cache", type=Path, help="a folder whose kits are used again; nothing else in it is")
    options = parser.parse_args()
    repeats = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), options.cache or Path(name) / "cache")
        load_inline_s = print_single(bench, repeats)
        print_many(bench, load_inline_s * options.many, options.many, options.few)
        print_errors(bench, repeats)
        print_again(bench, repeats)


def print_single(bench: Bench, repeats: int) -> float:
    """Returns the seconds of load_inline."""
    prepare_s = bench.prepare()
    print(f"{'once: first build, with the kit':38}{prepare_s:9.2f} s", flush=True)
    rounds = [
        (bench.load_inline(), measure_s(lambda: bench.build("plain")), measure_s(lambda: bench.build("fast")))
        for _ in range(repeats)
    ]
    torch_s, plain_s, fast_s = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"one CUDA candidate, cold, medians of {repeats}")
    print(f"{'  load_inline':38}{torch_s:9.2f} s")
    print(f"{'  plain strategy':38}{plain_s:9.2f} s  {torch_s / plain_s:.1f}x")
    print(f"{'  fast strategy':38}{fast_s:9.2f} s  {torch_s / fast_s:.1f}x (goal 8x)", flush=True)
    return torch_s


def print_many(bench: Bench, row_s: float, many: int, few: int) -> None:
    """`row_s`: of load_inline for as many, one after another."""
    with ThreadPoolExecutor(2) as pool:
        pair_s = sum(pool.map(lambda _: bench.load_inline(), range(few))) / 2 * many / few  # torch is imported once
        plain_s = measure_s(lambda: list(pool.map(lambda _: bench.build("plain"), range(few)))) * many / few
        fast_s = measure_s(lambda: list(pool.map(lambda _: bench.build("fast"), range(many))))
    print(f"{many} different candidates (* scaled from {few}, ** from one)")
    print(f"{'  load_inline, one after another **':38}{row_s:9.2f} s")
    print(f"{'  load_inline, two processes *':38}{pair_s:9.2f} s")
    print(f"{'  plain strategy, two at a time *':38}{plain_s:9.2f} s  {row_s / plain_s:.1f}x, {pair_s / plain_s:.1f}x")
    goals = "(goals 8x, 4x)"
    print(
        f"{'  fast strategy, two at a time':38}{fast_s:9.2f} s  {row_s / fast_s:.1f}x, {pair_s / fast_s:.1f}x {goals}",
        flush=True,
    )


def print_errors(bench: Bench, repeats: int) -> None:
    print(f"until a compile error is there, medians of {repeats}; load_inline once")
    for kind in BROKEN:
        torch_s = bench.load_inline(kind)
        fast_s = statistics.median(measure_s(partial(bench.fail, kind)) for _ in range(repeats))
        print(f"  {kind:36}{fast_s:9.2f} s  {torch_s:.2f} s", flush=True)


def print_again(bench: Bench, repeats: int) -> None:
    print(f"the same candidate again, beyond importing torch, medians of {repeats}")
    for state, goal in (("running", "goal below 0.050 s"), ("starting", "with the harness starting, too")):
        again_s = statistics.median(bench.build_again(state) for _ in range(repeats))
        print(f"{'  to a callable module':38}{again_s:9.3f} s  {goal}", flush=True)


if __name__ == "__main__":
    main()
