"""Float64 truth, and what is taken where there is none."""

from __future__ import annotations

import pytest
import torch

from harness.domain import Problem, ProblemError
from harness.evaluation.correctness import precision, truth
from harness.evaluation.correctness.precision import ReversedTies, float32_precision
from harness.evaluation.correctness.truth import compute_truth
from harness.problems.loading import load_problem
from harness.tensors.outputs import flatten_outputs

CPU = torch.device("cpu")

SOURCE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))

    def forward(self, x, index):
        FORWARD

def get_inputs():
    return [torch.rand(300, 5), torch.tensor([0, 2])]

def get_init_inputs():
    return []
"""


def compute(forward: str, max_bytes: int | None = None, allow_tf32: bool = False):
    problem = Problem(name="toy", suite="mine", source=SOURCE.replace("FORWARD", forward), allow_tf32=allow_tf32)
    loaded = load_problem(problem, "full")
    model, inputs = loaded.make_model(3, CPU), loaded.make_inputs(3, CPU)
    return compute_truth(loaded, model, inputs, max_bytes), model, inputs


def test_truth_is_the_same_module_with_the_same_weights_in_float64():
    truth, model, (x, index) = compute("return (x * self.weight)[:, index]")
    (leaf,) = truth.leaves
    assert truth.kind == "float64"
    assert leaf.reference.dtype == torch.float32
    assert torch.equal(leaf.exact, (x.double() * model.weight.double())[:, index])


def test_the_model_and_the_inputs_stay_in_their_own_dtype():
    _, model, (x, index) = compute("return x * self.weight")
    assert (model.weight.dtype, x.dtype, index.dtype) == (torch.float32, torch.float32, torch.int64)


def test_integer_outputs_come_from_both_runs():
    truth, _, _ = compute("return (x * self.weight).argmax(1)")
    assert truth.kind == "float64"
    assert (truth.leaves[0].reference.dtype, truth.leaves[0].exact.dtype) == (torch.int64, torch.int64)


def test_nested_outputs_are_flattened_in_order():
    truth, _, (x, index) = compute("return {'a': x, 'b': [index, (x + 1, None)]}")
    assert [leaf.reference.dtype for leaf in truth.leaves] == [torch.float32, torch.int64, torch.float32]
    assert truth.tree == flatten_outputs({"a": x, "b": [index, (x, None)]}).tree
    assert torch.equal(truth.reference_outputs.tensors[2], x + 1)


@pytest.mark.parametrize(
    ("forward", "note"),
    [
        ("return x @ torch.tensor([[1.0]] * 5, dtype=torch.float32)", "does not run in float64"),
        ("assert x.dtype is torch.float32; return x", "does not run in float64"),
        ("return torch.tensor([2.0], dtype=torch.float32)", "the reference returns torch.float32"),
        ("return x if x.dtype == torch.float32 else (x, x)", "another structure"),
    ],
)
def test_a_module_that_refuses_float64_is_its_own_truth_and_says_so(forward, note):
    truth, _, _ = compute(forward)
    assert truth.kind == "reference"
    assert note in truth.note
    assert truth.leaves[0].exact is truth.leaves[0].reference


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("return (x.half() @ x.half().T).float()", "return x @ x.T"),
        ("return x.bfloat16().sum(0, dtype=torch.float32)", "return x.sum(0)"),
        ("return x @ torch.ones(5, 5) + torch.zeros(5, dtype=torch.float16)", "return x @ torch.ones(5, 5).to(x)"),
        ("return torch.autocast('cpu', torch.bfloat16)(torch.matmul)(x, x.T).float()", "return x @ x.T"),
        ("return torch.view_as_real(x.to(torch.complex64) * 1j)", "return torch.stack([0 * x, x], -1)"),
    ],
    ids=["half", "sum", "constants", "autocast", "complex"],
)
def test_conversions_to_narrower_types_are_left_out_of_the_truth(narrow, wide):
    truth, _, _ = compute(narrow)
    known, _, _ = compute(wide)
    assert truth.kind == "float64"
    torch.testing.assert_close(truth.leaves[0].exact, known.leaves[0].exact, rtol=1e-14, atol=1e-14)
    assert truth.leaves[0].reference.dtype is torch.float32


def test_values_rounded_to_eight_bits_stay_rounded():
    truth, _, (x, _) = compute("return x.to(torch.float8_e4m3fn).float()")
    assert torch.equal(truth.leaves[0].exact, x.to(torch.float8_e4m3fn).double())


@pytest.mark.parametrize(
    "forward",
    [
        "return x @ x.T",
        "return torch.baddbmm(x[None, :, :1], x[None], x.T[None])",
        "return torch.nn.functional.linear(x, x, x[:, 0])",
        "return torch.nn.functional.conv1d(x[None].mT, x.view(60, 5, 5))",
        "return torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])",
    ],
    ids=["mm", "baddbmm", "linear", "conv1d", "attention"],
)
def test_cpu_products_have_the_tf32_error_if_tf32_is_allowed(forward):
    def find_error(*, allow_tf32: bool) -> float:
        (leaf,) = compute(forward, allow_tf32=allow_tf32)[0].leaves
        return float(((leaf.reference - leaf.exact) / leaf.exact).abs().max())

    assert find_error(allow_tf32=False) < 2e-6
    assert 2e-5 < find_error(allow_tf32=True) < 2e-3


def test_tf32_keeps_ten_digits_and_special_values():
    given = torch.tensor([1.0, 1 + 2**-10, 1 + 2**-11, -1 - 2**-11, float("inf"), float("nan"), 3.4e38])
    found = precision._truncate_to_tf32(given)
    expected = torch.tensor([1.0, 1 + 2**-10, 1.0, -1.0, float("inf"), float("nan")])
    torch.testing.assert_close(found[:6], expected, rtol=0, atol=0, equal_nan=True)
    assert found[6] == pytest.approx(3.4e38, rel=2**-10)


def test_truth_that_does_not_fit_is_not_computed():
    truth, _, _ = compute("return x * self.weight", max_bytes=1000)
    assert truth.kind == "reference"
    assert "1000 are usable" in truth.note


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("raise ValueError('too wide')", ", line 10: forward raised ValueError: too wide"),
        ("return 'text', {1, 2}", ": forward must return tensors"),
        ("return None", ": forward returned no tensor"),
    ],
)
def test_a_reference_that_fails_is_a_problem_error(forward, message):
    with pytest.raises(ProblemError, match=rf"mine/toy\.py{message}"):
        compute(forward)


def test_tf32_is_off_for_the_reference_unless_the_problem_allows_it():
    forward = "return x + (torch.get_float32_matmul_precision() == 'highest')"
    strict, _, (x, _) = compute(forward)
    loose, _, _ = compute(forward, allow_tf32=True)
    assert torch.equal(strict.leaves[0].reference, x + 1)
    assert torch.equal(loose.leaves[0].reference, x)


@pytest.mark.parametrize("allow_tf32", [True, False])
def test_precision_flags_are_restored_also_after_an_error(allow_tf32):
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with pytest.raises(KeyError), float32_precision(allow_tf32):
        assert torch.backends.cudnn.allow_tf32 is allow_tf32
        raise KeyError
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


def test_truth_of_an_in_place_reference_uses_the_original_inputs():
    truth, _, inputs = compute("return x.mul_(2.0).add_(1.0)")
    assert truth.kind == "float64"
    assert torch.equal(truth.leaves[0].exact, inputs[0].double() * 2.0 + 1.0)


@pytest.mark.parametrize(
    "tensor",
    [torch.randn(3, 5, 7), torch.randn(7, 3).T, torch.arange(9), torch.randn(()), torch.randn(0, 4)],
    ids=["dense", "transposed", "integers", "scalar", "empty"],
)
def test_tensor_converted_in_parts_on_another_device_keeps_its_values(monkeypatch, tensor):
    """cpu:0 is another device than cpu, and the same memory."""
    monkeypatch.setattr(truth, "PART_ELEMENTS", 4)
    double = truth._to_double(tensor, torch.device("cpu:0"))
    assert double.dtype == (torch.float64 if tensor.is_floating_point() else tensor.dtype)
    assert torch.equal(double, tensor.to(double.dtype))
    assert double.numel() == 0 or double.data_ptr() != tensor.data_ptr()


def test_equal_values_are_ordered_the_other_way_round():
    values = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 0.0, 0.0, 5.0]])
    with ReversedTies():
        assert values.sort(dim=1, descending=True, stable=True).indices.tolist() == [[2, 0, 3, 1], [3, 2, 1, 0]]
        assert values.sort(dim=1).values.tolist() == [[1.0, 2.0, 3.0, 3.0], [0.0, 0.0, 0.0, 5.0]]
        assert values.argmin(dim=1).tolist() == [1, 2]
        assert values.max(dim=1).indices.tolist() == [2, 3]
        assert float(values.max()) == 5.0
        assert int(values.argmax()) == 7
