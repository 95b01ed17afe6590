"""What must pass and what must not, on every core problem: another order of summation is honest, fewer bits are not."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from harness.domain import Outcome, Tolerance
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.truth import Truth, TruthLeaf, compute_truth
from harness.problems.discovery import find_problem, find_suite
from harness.problems.loading import load_problem
from harness.tensors.outputs import flatten_outputs
from harness.tensors.values import map_tensors

CPU = torch.device("cpu")
CORE = Path(__file__).parents[4] / "reference_models" / "core"
NAMES = [problem.name for problem in find_suite(CORE)]
SEED = 11


@cache
def load(name: str):
    loaded = load_problem(find_problem(name, CORE), "small")
    return loaded, loaded.make_model(SEED, CPU)


@cache
def truth_of(name: str, distribution: str) -> Truth:
    loaded, model = load(name)
    return compute_truth(loaded, model, loaded.make_inputs(SEED, CPU, distribution))


def sum_in_blocks(values: Tensor, dim: int, block: int) -> Tensor:
    """Partial sums of `block` terms, then one after the other."""
    total = torch.zeros_like(values.select(dim, 0))
    for part in values.split(block, dim):
        total = total + part.sum(dim)
    return total


def matmul_in_blocks(a: Tensor, b: Tensor, block: int) -> Tensor:
    parts = zip(a.split(block, -1), b.split(block, -2), strict=True)
    total = torch.zeros(())
    for left, right in parts:
        total = total + left @ right
    return total


def conv_by_taps(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """One 1x1 product per position of the kernel, in reverse order, on top of the bias."""
    size = conv.weight.shape[-1]
    rows, columns = x.shape[2] - size + 1, x.shape[3] - size + 1
    total = conv.bias[:, None, None].expand(x.shape[0], -1, rows, columns)
    for i in reversed(range(size)):
        for j in reversed(range(size)):
            window = x[:, :, i : i + rows, j : j + columns]
            total = total + torch.einsum("oc,nchw->nohw", conv.weight[:, :, i, j], window)
    return total


def conv_channels_last(conv: nn.Conv2d, x: Tensor) -> Tensor:
    weight = conv.weight.contiguous(memory_format=torch.channels_last)
    return F.conv2d(x.contiguous(memory_format=torch.channels_last), weight, conv.bias)


def softmax_online(x: Tensor, block: int = 97) -> Tensor:
    """One pass with a running maximum and a rescaled running sum."""
    peak = torch.full_like(x[..., :1], -math.inf)
    total = torch.zeros_like(peak)
    for part in x.split(block, -1):
        higher = torch.maximum(peak, part.amax(-1, keepdim=True))
        total = total * torch.exp(peak - higher) + torch.exp(part - higher).sum(-1, keepdim=True)
        peak = higher
    return torch.exp(x - peak) * (1 / total)


def attention_online(query: Tensor, key: Tensor, value: Tensor, block: int = 61) -> Tensor:
    length = query.shape[-2]
    scaled = query / math.sqrt(query.shape[-1])
    peak = torch.full_like(query[..., :1], -math.inf)
    total, weighted = torch.zeros_like(peak), torch.zeros_like(query)
    for start in range(0, length, block):
        stop = min(start + block, length)
        scores = scaled @ key[..., start:stop, :].transpose(-1, -2)
        future = torch.arange(start, stop)[None, :] > torch.arange(length)[:, None]
        scores = scores.masked_fill(future, -math.inf)
        higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
        shares = torch.exp(scores - higher)
        shrink = torch.exp(peak - higher)
        total = total * shrink + shares.sum(-1, keepdim=True)
        weighted = weighted * shrink + shares @ value[..., start:stop, :]
        peak = higher
    return weighted / total


def normalise_one_pass(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """Mean and variance from the sums of x and x * x: the shortest way, not the most exact one."""
    mean = x.mean(dims, keepdim=True)
    variance = (x * x).mean(dims, keepdim=True) - mean * mean
    return (x - mean) * torch.rsqrt(variance.clamp_min(0) + eps)


def layer_norm_one_pass(model: nn.Module, x: Tensor) -> Tensor:
    return normalise_one_pass(x, (-1,), model.norm.eps) * model.norm.weight + model.norm.bias


def group_norm_one_pass(model: nn.Module, x: Tensor) -> Tensor:
    grouped = x.unflatten(1, (model.norm.num_groups, -1))
    flat = normalise_one_pass(grouped, (2, 3, 4), model.norm.eps).flatten(1, 2)
    return flat * model.norm.weight[:, None, None] + model.norm.bias[:, None, None]


def rms_norm_by_channels(model: nn.Module, x: Tensor) -> Tensor:
    squares = sum_in_blocks(x * x, 1, 1)[:, None]
    return x * torch.rsqrt(squares / x.shape[1] + model.eps) * model.weight


def gelu_mlp_in_blocks(model: nn.Module, x: Tensor) -> Tensor:
    hidden = matmul_in_blocks(x, model.expand.weight.t(), 32) + model.expand.bias
    active = 0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2)))
    return matmul_in_blocks(active, model.contract.weight.t(), 32) + model.contract.bias


def cross_entropy_online(logits: Tensor, targets: Tensor) -> Tensor:
    picked = softmax_online(logits).gather(1, targets[:, None])[:, 0]
    peak = logits.amax(1)
    direct = peak + torch.log(sum_in_blocks(torch.exp(logits - peak[:, None]), 1, 64))
    assert picked.shape == direct.shape
    return direct - logits.gather(1, targets[:, None])[:, 0]


def max_pool_by_windows(model: nn.Module, x: Tensor) -> Tensor:
    size, stride, padding = model.pool.kernel_size, model.pool.stride, model.pool.padding
    padded = F.pad(x, (padding,) * 4, value=-math.inf)
    return padded.unfold(2, size, stride).unfold(3, size, stride).amax((-1, -2))


def top_k_by_sorting(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    indices = (-x).argsort(-1)[:, : model.k]
    return x.gather(1, indices), indices


def hardswish(x: Tensor) -> Tensor:
    return F.hardswish(F.relu(x))


def cumsum_in_order(x: Tensor) -> Tensor:
    """Strictly one after the other, in float32."""
    total, sums = torch.zeros_like(x[:, 0]), []
    for column in x.unbind(1):
        total = total + column
        sums.append(total)
    return torch.stack(sums, 1)


def cumsum_in_blocks(x: Tensor, block: int = 256) -> Tensor:
    parts, carry = [], torch.zeros_like(x[:, :1])
    for part in x.split(block, 1):
        parts.append(part.cumsum(1) + carry)
        carry = parts[-1][:, -1:]
    return torch.cat(parts, 1)


VARIANTS = {
    "causal_attention": {"online": lambda m, q, k, v: attention_online(q, k, v)},
    "conv2d_min_bias_scale": {
        "by taps": lambda m, x: (conv_by_taps(m.conv, x).clamp_max(0.5) + m.bias) * 2.0,
        "channels last": lambda m, x: (conv_channels_last(m.conv, x).clamp_max(0.5) + m.bias) * 2.0,
    },
    "conv2d_relu_bias": {
        "by taps": lambda m, x: conv_by_taps(m.conv, x).relu() + m.bias,
        "channels last": lambda m, x: conv_channels_last(m.conv, x).relu() + m.bias,
    },
    "conv2d_relu_hardswish": {
        "by taps": lambda m, x: hardswish(conv_by_taps(m.conv, x)),
        "channels last": lambda m, x: hardswish(conv_channels_last(m.conv, x)),
    },
    "cross_entropy": {"online": lambda m, x, t: cross_entropy_online(x, t)},
    "cumulative_sum": {"in order": lambda m, x: cumsum_in_order(x), "in blocks": lambda m, x: cumsum_in_blocks(x)},
    "elementwise_add": {"swapped": lambda m, a, b: b + a},
    "embedding": {"selected": lambda m, i: m.table.weight[i]},
    "gelu_mlp": {"in blocks": gelu_mlp_in_blocks},
    "group_norm": {"one pass": group_norm_one_pass},
    "layer_norm": {"one pass": layer_norm_one_pass},
    "linear_bias_relu": {
        "blocks of 16": lambda m, x: (m.bias + matmul_in_blocks(x, m.gemm.weight.t(), 16)).relu(),
        "one at a time": lambda m, x: (matmul_in_blocks(x, m.gemm.weight.t(), 1) + m.bias).relu(),
    },
    "matmul": {
        "blocks of 16": lambda m, a, b: matmul_in_blocks(a, b, 16),
        "one at a time": lambda m, a, b: matmul_in_blocks(a, b, 1),
        "backwards": lambda m, a, b: matmul_in_blocks(a.flip(-1), b.flip(0), 8),
    },
    "max_pool2d": {"by windows": max_pool_by_windows},
    "rms_norm": {"by channels": rms_norm_by_channels},
    "softmax": {"online": lambda m, x: softmax_online(x)},
    "sum_reduction": {
        "one at a time": lambda m, x: sum_in_blocks(x, 1, 1)[:, None],
        "backwards in blocks": lambda m, x: sum_in_blocks(x.flip(1), 1, 32)[:, None],
    },
    "top_k": {"by sorting": top_k_by_sorting},
    "transpose_add": {"permuted": lambda m, a, b: b.contiguous() + a.permute(0, 2, 1)},
}
PAIRS = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]


def list_cases():
    """Quick: each variant with the given inputs and with one other distribution, another one for the next variant."""
    for number, (name, variant) in enumerate(PAIRS):
        first, *others = find_problem(name, CORE).distributions
        quick = {first, *others[number % max(len(others), 1) :][:1]}
        for distribution in (first, *others):
            marks = () if distribution in quick else pytest.mark.slow
            yield pytest.param(name, variant, distribution, id=f"{name}-{variant}-{distribution}", marks=marks)


def test_every_core_problem_has_an_honest_variant():
    assert sorted(VARIANTS) == sorted(NAMES)


@pytest.mark.parametrize(("name", "variant", "distribution"), [*list_cases()])
@pytest.mark.quick(20)
def test_an_honest_variant_passes(name, variant, distribution):
    loaded, model = load(name)
    outputs = VARIANTS[name][variant](model, *loaded.make_inputs(SEED, CPU, distribution))
    outcome, trial = compare_outputs(
        truth_of(name, distribution), flatten_outputs(outputs), loaded.problem.tolerance, distribution
    )
    assert outcome is None, trial.message
    assert trial.worst_ratio < 0.5, "an honest variant comes near to the border"


def round_to_tf32(tensor: Tensor) -> Tensor:
    """The nearest number with 10 bits after the point: what tensor cores read in TF32 (and, in range, in float16)."""
    if tensor.dtype != torch.float32:
        return tensor
    return ((tensor.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def round_to_bfloat16(tensor: Tensor) -> Tensor:
    return tensor.bfloat16().float() if tensor.dtype == torch.float32 else tensor


@pytest.mark.parametrize("rounding", [round_to_bfloat16, round_to_tf32])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.quick(12)
def test_rounding_inputs_and_weights_fails_although_the_sums_are_in_float32(name, rounding):
    loaded, _ = load(name)
    model = loaded.make_model(SEED, CPU)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.copy_(rounding(tensor))
    outputs = flatten_outputs(model(*map_tensors(loaded.make_inputs(SEED, CPU), rounding)))
    outcome, _ = compare_outputs(truth_of(name, "as_given"), outputs, loaded.problem.tolerance, "as_given")
    assert outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.quick(8)
def test_rounding_only_the_output_to_bfloat16_fails(name):
    loaded, _ = load(name)
    truth = truth_of(name, "as_given")
    outputs = map_tensors(truth.reference_outputs.tensors, round_to_bfloat16)
    rounded = flatten_outputs(outputs if len(outputs) > 1 else outputs[0])
    assert compare_outputs(truth, rounded, loaded.problem.tolerance, "as_given")[0] is Outcome.WRONG_VALUE


@settings(max_examples=25)
@given(
    st.integers(1, 64), st.integers(100, 3000), st.integers(0, 2**31), st.booleans(), st.sampled_from([1e-6, 1.0, 1e5])
)
def test_a_sum_may_be_taken_in_any_order(block, length, seed, positive, scale):
    x = torch.randn(length, 40, generator=torch.Generator().manual_seed(seed)) * scale
    x = x.abs() if positive else x
    exact, reference = x.double().sum(0), x.sum(0)
    truth = Truth(kind="float64", tree={"t": 0}, leaves=(TruthLeaf(name="sum", reference=reference, exact=exact),))
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    for candidate in (sum_in_blocks(x, 0, block), sum_in_blocks(x[order], 0, block), sum_in_blocks(x, 0, 1)):
        assert compare_outputs(truth, flatten_outputs(candidate), Tolerance(), "as_given")[0] is None
