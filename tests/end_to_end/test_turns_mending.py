"""Feedback is enough to mend programs: a scripted model that knows no bug, only the feedback, brings each to correct.

It applies one general rule per kind of feedback: take the name that the compiler suggests, guard the named line by the
named size, put a barrier before the named line, convert to the named dtype, reshape to the named shape, scale by the
ratio of the named values.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from chat_server import ChatServer, reply_with

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.cpp_extension import load_inline\n\n"
MEAN_PROBLEM = """
import torch
from torch import nn

rows, columns = 8, 128


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.rand(rows, columns) + 1]


def get_init_inputs():
    return []
"""
PLAIN = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, x):\n        return RESULT\n"
COMPILED = f'''{HEAD}source = r"""
#include <torch/extension.h>

torch::Tensor row_mean(torch::Tensor measurements) {{
  return measurments.mean(1);
}}
"""
extension = load_inline("mended_mean", cpp_sources=source, functions=["row_mean"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.row_mean(x)
'''
# Each is wrong in another way.
ON_THE_CPU = {
    "a compile error": COMPILED,
    "a wrong constant": PLAIN.replace("RESULT", "x.sum(dim=1) / 100"),
    "a wrong reduction": PLAIN.replace("RESULT", "x.sum(dim=1)"),
    "a wrong dtype": PLAIN.replace("RESULT", "x.double().mean(dim=1)"),
    "a wrong shape": PLAIN.replace("RESULT", "x.mean(dim=1, keepdim=True)"),
}
KERNELS = f'''{HEAD}source = r"""
#include <torch/extension.h>

__global__ void mean_kernel(const float* x, float* out, int columns) {{
  __shared__ float partial[64];
  int lane = threadIdx.x;
  float sum = 0.0f;
  for (int column = lane; column < columns; column += 64) sum += x[blockIdx.x * columns + column];
  partial[lane] = sum;
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {{
    if (lane < step) partial[lane] += partial[lane + step];
    __syncthreads();
  }}
  if (lane == 0) out[blockIdx.x] = partial[0];
}}

__global__ void divide_kernel(float* out, float divisor) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS)
    out[i] = out[i] / divisor;
}}

torch::Tensor row_mean(torch::Tensor x) {{
  auto out = torch::empty({{x.size(0)}}, x.options());
  mean_kernel<<<x.size(0), 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
  divide_kernel<<<1, 32>>>(out.data_ptr<float>(), x.size(1));
  return out;
}}
"""
declared = "torch::Tensor row_mean(torch::Tensor x);"
extension = load_inline("mended_kernel", cpp_sources=declared, cuda_sources=source, functions=["row_mean"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.row_mean(x.contiguous())
'''
EMULATED = {
    "an index out of bounds": KERNELS.replace("  if (i < ROWS)\n", ""),
    "a missing barrier": KERNELS.replace("ROWS", "8").replace(
        "partial[lane] = sum;\n  __syncthreads();", "partial[lane] = sum;"
    ),
}


def wrap_result(program: str, change: str) -> str:
    head, _, result = program.rstrip().rpartition("return ")
    return f"{head}return ({result}){change}\n"


def scale_result(program: str, right: str, wrong: str) -> str:
    ratio = Fraction(float(right) / float(wrong)).limit_denominator(1000)
    return wrap_result(program, f" * {ratio.numerator} / {ratio.denominator}")


def guard_line(program: str, size: str, line: str) -> str:
    index = re.search(r"\[(\w+)\]", program.split("\n")[int(line) - 1])[1]
    return change_line(program, line, f"if ({index} < {int(size) // 4}) {{}}")


def change_line(program: str, line: str, form: str) -> str:
    lines = program.split("\n")
    lines[int(line) - 1] = form.format(lines[int(line) - 1].strip())
    return "\n".join(lines)


QUOTED = r"[\u2018'](\w+)[\u2019']"
LINE = r"Lines of the program.*?\n(\d+): "
# What the feedback says, and what to do about it; the first that applies.
RULES = (
    (rf"{QUOTED} was not declared.*did you mean {QUOTED}", lambda program, old, new: program.replace(old, new)),
    (r"expected (torch\.\w+), found torch", lambda program, dtype: wrap_result(program, f".to({dtype})")),
    (r"expected shape \(([\d, ]+)\)", lambda program, shape: wrap_result(program, f".reshape({shape.strip(', ')})")),
    (rf"(?s)of an allocation of (\d+) bytes.*{LINE}", guard_line),
    (
        rf"(?s)(?:race: |of shared memory, which nobody has written).*{LINE}",
        lambda program, line: change_line(program, line, "__syncthreads(); {}"),
    ),
    (r"expected (\S+), found ([-+.e\d]+)", scale_result),
)


def mend(program: str, told: str) -> str:
    """By the feedback alone."""
    for pattern, change in RULES:
        if found := re.search(pattern, told):
            return change(program, *found.groups())
    return program


def serve_mender(programs: tuple[str, ...]) -> ChatServer:
    """The first answers are the broken programs."""
    first = iter(programs)

    def choose(number: int, request: dict):
        messages = [one["content"] for one in request["messages"]]
        if len(messages) == 1:
            return reply_with(f"```python\n{next(first)}```\n")
        program = re.search(r"```python\n(.*?)```", messages[-2], re.DOTALL)[1]
        return reply_with(f"```python\n{mend(program, messages[-1])}```\n")

    return ChatServer(choose)


@pytest.fixture
def mended(tmp_path, run_harness):
    """The outcomes by turn of each broken program, in their order."""

    def run(programs, *arguments, env=None):
        problem = tmp_path / "row_mean.py"
        problem.write_text(MEAN_PROBLEM)
        server = serve_mender(programs)
        fixed = ["run", "--problem", problem, "--model", "m", "--samples", len(programs), "--concurrency", 1]
        with server.running():
            done = run_harness(
                [*fixed, "--turns", 3, "--strategy", "repair", "--base-url", server.base_url, "--json", *arguments],
                env=env,
            )
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return [[turn["outcome"] for turn in record["turns"]] for record in records]

    return run


@pytest.mark.slow
def test_programs_are_mended_on_the_cpu_in_at_most_two_turns(mended, needs_compiler):
    outcomes = dict(zip(ON_THE_CPU, mended(ON_THE_CPU.values(), "--language", "cpp", "--no-time"), strict=True))
    assert {kind: turns[0] for kind, turns in outcomes.items()} == {
        "a compile error": "build_error",
        "a wrong constant": "wrong_value",
        "a wrong reduction": "wrong_value",
        "a wrong dtype": "wrong_dtype",
        "a wrong shape": "wrong_shape",
    }
    assert {kind: turns[-1] for kind, turns in outcomes.items()} == dict.fromkeys(ON_THE_CPU, "correct")
    assert all(len(turns) <= 3 for turns in outcomes.values())


@pytest.mark.slow
def test_kernels_are_mended_on_the_emulated_device_in_at_most_two_turns(mended, needs_compiler, without_nvcc):
    arguments = ["--language", "cuda", "--device", "emulated", "--workload", "full"]
    outcomes = dict(zip(EMULATED, mended(EMULATED.values(), *arguments, env=without_nvcc), strict=True))
    assert all(turns[0] in ("runtime_error", "wrong_value") for turns in outcomes.values()), outcomes
    assert {kind: turns[-1] for kind, turns in outcomes.items()} == dict.fromkeys(EMULATED, "correct")
    assert all(len(turns) <= 3 for turns in outcomes.values())
