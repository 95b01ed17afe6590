"""What both strategies build of the CUDA corpus gives the same bits, or the same error, on a GPU.

Many programs share one library: the plain strategy's are large, since each costs it a minute; the fast strategy's are
small, so that its façade, which is made for the words of a source, stays lean. About four minutes on 16 cores.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc, pytest.mark.timeout(1500)]
PER_LIBRARY = {"fast": 6, "plain": 24}
LAUNCHED = """
import importlib.util, json, sys
import torch

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def run(module, number):
    torch.manual_seed(0)
    x = torch.randn(64, 64, device="cuda")
    try:
        y = module.run_program(number, x)
        torch.cuda.synchronize()
        bits = y.contiguous().reshape(-1).view(torch.uint8).cpu().numpy().tobytes().hex()
        return ["gives", str(y.dtype), list(y.shape), bits]
    except Exception as error:
        return ["raises", type(error).__name__, str(error).partition("Exception raised from")[0]]

found = {}
for name, path, numbers in json.loads(sys.argv[1]):
    module = load(name, path)
    for number in numbers:
        found[number] = run(module, number)
print(json.dumps(found))
"""


def load_corpus():
    path = Path(__file__).parents[1] / "unit" / "builder" / "fast" / "cuda_corpus.py"
    spec = importlib.util.spec_from_file_location("cuda_corpus", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["cuda_corpus"] = module
    spec.loader.exec_module(module)
    return module


def run_plainly(command, *, readable, writable):
    return list(command)


def write_request(corpus, strategy, numbered):
    """One library of some programs: `run_program(number, x)` runs one of them."""
    from harness.domain import BuildRequest

    cases = "".join(f"case {number}: return {program.name}::run(x); " for number, program in numbered)
    entry = f"torch::Tensor run_program(int64_t number, torch::Tensor x) {{ switch (number) {{ {cases}}} return x; }}\n"
    return BuildRequest(
        name=f"{strategy}_{numbered[0][0]}",
        cpp_sources=("torch::Tensor run_program(int64_t number, torch::Tensor x);",),
        cuda_sources=(corpus.write_source([program for _, program in numbered]) + entry,),
        functions=(("run_program", "Runs one."),),
    )


def split_programs(corpus, size):
    """Groups of (number, program); those with further headers are by themselves."""
    numbered = list(enumerate(corpus.list_programs()))
    kinds = [
        [pair for pair in numbered if (len(pair[1].headers) == len(corpus.HEADERS)) == is_usual]
        for is_usual in (True, False)
    ]
    return [kind[first : first + size] for kind in kinds for first in range(0, len(kind), size)]


@pytest.fixture(scope="module")
def make_builder(tmp_path_factory):
    """(builder, its folder) of one strategy; the fast one makes its kit at the first request."""
    from harness.builder.builder import Builder
    from harness.builder.toolchain import probe_toolchain

    toolchain = probe_toolchain()

    def make(strategy):
        folder = tmp_path_factory.mktemp(strategy)
        builder = Builder(
            cache=folder, toolchain=toolchain, wrap=run_plainly, fast=strategy == "fast",
            environment=lambda: dict(os.environ), timeout_s=900.0,
        )  # fmt: skip
        return builder, folder

    return make


def build_all(corpus, make_builder, strategy, pool):
    """Starts the builds of one strategy: (the numbers of its programs, what will be the result) of each library."""
    builder, folder = make_builder(strategy)
    requests = [
        ([number for number, _ in group], write_request(corpus, strategy, group))
        for group in split_programs(corpus, PER_LIBRARY[strategy])
    ]
    if strategy == "fast":
        builder.build(requests[0][1])  # makes the kit
        reasons = [path.read_text() for path in folder.glob("kits/*/unusable.txt")]
        assert not reasons, f"the fast strategy cannot be made ready here: {reasons}"
    return [(numbers, request.name, pool.submit(builder.build, request)) for numbers, request in requests]


def run_all(libraries):
    command = [sys.executable, "-c", LAUNCHED, json.dumps(libraries)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout)


def test_every_program_gives_the_same_bits_in_both_strategies(make_builder):
    corpus = load_corpus()
    began_s = time.monotonic()
    with ThreadPoolExecutor(min(16, len(os.sched_getaffinity(0)))) as pool:
        started = {strategy: build_all(corpus, make_builder, strategy, pool) for strategy in ("plain", "fast")}
        results = {
            strategy: [(name, future.result(), numbers) for numbers, name, future in builds]
            for strategy, builds in started.items()
        }
    print(f"built in {time.monotonic() - began_s:.0f} s")
    for name, result, _ in (*results["plain"], *results["fast"]):
        assert result.extension is not None, f"{name}:\n{result.log[-3000:]}"
    strategies = [result.strategy for _, result, _ in results["fast"]]
    assert strategies.count("fast") > 0.8 * len(strategies), f"too few in the fast strategy: {strategies}"
    found = {
        strategy: run_all([[name, result.extension, numbers] for name, result, numbers in results[strategy]])
        for strategy in results
    }
    assert len(found["plain"]) == len(corpus.list_programs())
    assert [number for number in found["plain"] if found["plain"][number] != found["fast"][number]] == []
    gives = [number for number, answer in found["plain"].items() if answer[0] == "gives"]
    assert len(gives) > 0.8 * len(found["plain"])
