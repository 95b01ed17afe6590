"""What a candidate's compilers write ahead, or in a worker, is there in its later workers of one evaluation only."""

from pathlib import Path

import pytest

from harness.domain import BuildResult, Candidate
from harness.problems.discovery import parse_problem

PROGRAM = """
import os
from pathlib import Path

import torch
from torch import nn

FOLDER = Path(os.environ["TRITON_CACHE_DIR"])  # of triton
if (FOLDER / "kernel64").exists():
    raise RuntimeError("compiled by an earlier worker")

class ModelNew(nn.Module):
    def forward(self, x, y):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"kernel{len(x)}").touch()
        return x + y
"""


PROBLEM = """
import torch
from torch import nn
rows = 64
class Model(nn.Module):
    def forward(self, x, y):
        return x + y
def get_inputs():
    return [torch.randn(rows, 65), torch.randn(rows, 65)]
def get_init_inputs():
    return []
"""
CASES = 'CASES = [{"name": "given"}, {"name": "evaluated_first", "sizes": {"rows": 2}}]'


@pytest.mark.parametrize("cases", ["", CASES], ids=["one_case", "two_cases"])
@pytest.mark.slow
def test_compiled_files_are_shared_within_one_evaluation_only(bench, cases):
    problem = parse_problem(PROBLEM + cases, Path("sum.py"), "tiny")
    for _ in range(2):
        evaluation = bench.evaluate(PROGRAM, problem, attribute_work=True)
        assert evaluation.outcome == "correct"
        notes = [finding.message for finding in evaluation.findings if finding.check == "profile"]
        assert notes == ["could not be profiled: RuntimeError: compiled by an earlier worker"]


TRITON = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def add(x, y, out, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), ROWS=len(x))
        return out
"""
SECRET = 'RANGES = {"rows": (16, 48)}'


def list_kernels(files):
    return sorted(name for name in files if name.endswith(".cubin"))


@pytest.mark.slow
def test_kernels_of_all_known_sizes_and_configurations_are_compiled_ahead(bench):
    pytest.importorskip("triton")
    kernels = list_kernels(
        bench.compile_ahead(TRITON, parse_problem(f"{PROBLEM}\n{CASES}\n{SECRET}", Path("sum.py"), "tiny"))
    )
    assert len(kernels) == 4  # two cases, two configurations


IN_THE_FIRST_CALL = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

class ModelNew(nn.Module):
    def forward(self, x, y):
        if not x.is_cuda:
            return x + y
        return load_inline(name="late", cpp_sources="void add();", cuda_sources="void add() {}", functions=["add"])
"""


@pytest.mark.parametrize("cases", ["", CASES], ids=["one_case", "two_cases"])
def test_an_extension_of_the_first_call_is_built_ahead(bench, cases):
    asked = []

    def refuse(request):
        asked.append(request.name)
        return BuildResult(key="k", status="refused", extension=None, log="error: not here", duration_s=0.0)

    candidate = Candidate(source=IN_THE_FIRST_CALL, language="cuda", rule="file")
    bench.compilation_ahead().build(parse_problem(PROBLEM + cases, Path("sum.py"), "tiny"), "full", candidate, refuse)
    assert asked == ["late"]
