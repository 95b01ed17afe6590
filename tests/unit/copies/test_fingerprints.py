"""Copied programs and kernels are recognised by their fingerprints, and what problem and prompt gave is not."""

from pathlib import Path

import pytest

from harness.copies import MIN_KERNEL, find_own_values, list_fenced, normalise, take_fingerprint

ROOT = Path(__file__).parents[3]
KERNEL = """
#define TILE 16
// One row per block.
__global__ void row_softmax(const float* __restrict__ x, float* out, int columns) {
    __shared__ float partial[TILE];
    const float* row = x + blockIdx.x * columns;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    for (int offset = 16; offset > 0; offset /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w) largest = fmaxf(largest, partial[w]);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
}
torch::Tensor run_softmax(torch::Tensor x) {
    auto out = torch::empty_like(x);
    row_softmax<<<x.size(0), 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
"""
PROGRAM = f'''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""{KERNEL}"""
module = load_inline(name="softmax_ext", cpp_sources="torch::Tensor run_softmax(torch::Tensor x);",
                     cuda_sources=source, functions=["run_softmax"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.native = module

    def forward(self, x):
        rows = x.contiguous()
        return self.native.run_softmax(rows)
'''
RENAMED = (
    PROGRAM.replace("row_softmax", "kernel_of_mine").replace("run_softmax", "launch").replace("largest", "m")
    .replace("columns", "width").replace("rows", "tensor").replace("softmax_ext", "e").replace("native", "lib")
    .replace("// One row per block.", "/* Another comment. */").replace("TILE", "N").replace("    float", "  float")
)  # fmt: skip


def test_other_names_layout_and_comments_are_the_same_program_and_kernel():
    mine, theirs = take_fingerprint(PROGRAM), take_fingerprint(RENAMED)
    assert mine.exact != theirs.exact
    assert (mine.program, mine.kernels) == (theirs.program, theirs.kernels)
    assert len(mine.values) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [("expf(row", "tanhf(row"), ("0.0f", "1.0f"), ("i < columns", "i <= columns"), ("sum += expf", "sum -= expf")],
)
def test_another_computation_is_another_kernel(old, new):
    assert old in PROGRAM
    assert not set(take_fingerprint(PROGRAM.replace(old, new)).values) & set(take_fingerprint(PROGRAM).values)


def test_kernel_is_found_in_another_program_and_in_a_separate_file():
    (kernel,) = take_fingerprint(PROGRAM).kernels
    elsewhere = PROGRAM.replace("x.contiguous()", "x.float().contiguous() * 2").replace("256", "128")
    assert kernel in take_fingerprint(elsewhere).kernels
    assert kernel in take_fingerprint(KERNEL).kernels
    assert take_fingerprint(elsewhere).program != take_fingerprint(PROGRAM).program


def test_a_triton_kernel_is_compared_by_its_syntax_tree():
    example = (ROOT / "prompts/_shared/example_triton.py").read_text()
    renamed = example.replace("inside", "mask").replace("BLOCK", "SIZE").replace("gated_scale", "other")
    assert "mask=mask" in renamed
    assert len(take_fingerprint(example).kernels) == 1
    assert take_fingerprint(renamed).kernels == take_fingerprint(example).kernels


@pytest.mark.slow
def test_copies_of_the_reference_have_nothing_of_their_own():
    references = sorted((ROOT / "reference_models").rglob("*.py"))
    assert len(references) > 50
    for path in references:
        source = path.read_text()
        copied = f'"""Mine."""\n{source}\n'.replace("Model(", "ModelNew(")
        assert not find_own_values(copied, [source]), path


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
def test_the_example_of_the_prompt_is_no_copy(language):
    example = (ROOT / f"prompts/_shared/example_{language}.py").read_text()
    (shown,) = list_fenced(f"An example:\n\n```python\n{example}```\n\nYour turn.\n")
    assert not find_own_values(example.replace("gated_scale", "relu"), [shown])
    assert find_own_values(PROGRAM, [shown]) == take_fingerprint(PROGRAM).values


def test_short_programs_and_kernels_are_not_compared():
    short = 'k = """__global__ void f(float* x, int n) {\n int i = threadIdx.x; if (i < n) x[i] *= 2; }"""\n'
    (kernel,) = take_fingerprint(short).kernels
    assert 0 < kernel.size < MIN_KERNEL
    assert not take_fingerprint(short).values


@pytest.mark.parametrize(
    "source", ["x = " + "-" * 5000 + "1", "(" * 5000, "}" * 50 + "){" * 20_000, 'k = """\n' + "{" * 9000]
)
def test_hostile_sources_have_a_fingerprint_too(source):
    assert take_fingerprint(source).exact == normalise(source)
