"""Executing problem files for a workload, and making models and inputs from them."""

from __future__ import annotations

import random

import pytest
import torch

from harness.domain import Problem, ProblemError, UsageError, Workload
from harness.problems.loading import load_problem

CPU = torch.device("cpu")

SOURCE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, bias_shape):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.linear(x)) + self.bias

batch_size, features = 64, 32
height = width = 8
bias_shape = (features,)

def get_inputs():
    return [torch.rand(batch_size, height, width, features)]

def get_init_inputs():
    return [features, bias_shape]
"""


def make_problem(source: str = SOURCE, **overrides: object) -> Problem:
    small = (Workload(name="small", overrides=tuple(overrides.items())),) if overrides else ()
    return Problem(name="toy", suite="mine", source=source, workloads=(Workload(name="full"), *small))


def with_inputs(body: str) -> Problem:
    start, end = SOURCE.index("    return [torch.rand"), SOURCE.index("def get_init_inputs")
    return make_problem(SOURCE[:start] + body + "\n\n" + SOURCE[end:])


def test_overrides_reach_the_sizes_that_are_derived_from_them():
    loaded = load_problem(make_problem(features=5, batch_size=3), "small")
    assert loaded.init_inputs == (5, (5,))
    assert loaded.make_inputs(0, CPU)[0].shape == (3, 8, 8, 5)


def test_one_name_of_a_chained_assignment_can_be_overridden():
    loaded = load_problem(make_problem(height=3), "small")
    assert loaded.make_inputs(0, CPU)[0].shape == (64, 3, 8, 32)


def test_the_full_workload_is_the_file_as_written():
    loaded = load_problem(make_problem(features=5), "full")
    assert loaded.init_inputs == (32, (32,))


def test_missing_small_workload_is_a_usage_error():
    with pytest.raises(UsageError, match="no small workload; add SMALL"):
        load_problem(make_problem(), "small")


def test_equal_seeds_give_equal_models_and_inputs_and_others_do_not():
    loaded = load_problem(make_problem(), "full")
    first, again, other = (loaded.make_model(seed, CPU).bias for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    first, again, other = (loaded.make_inputs(seed, CPU)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_model_is_in_evaluation_mode_and_wants_no_gradients():
    model = load_problem(make_problem(), "full").make_model(0, CPU)
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_global_random_states_are_as_before():
    loaded = load_problem(make_problem(), "full")
    torch.manual_seed(5)
    random.seed(5)
    expected = (torch.rand(3), random.random())
    torch.manual_seed(5)
    random.seed(5)
    loaded.make_inputs(1, CPU, "normal")
    loaded.make_model(1, CPU)
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]


def test_torchs_defaults_are_as_before():
    body = """    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    return [torch.zeros(4, device="cpu")]"""
    load_problem(with_inputs(body), "full").make_inputs(1, CPU)
    assert (torch.zeros(()).device, torch.get_default_dtype()) == (CPU, torch.float32)
    assert torch.is_grad_enabled() and not torch.are_deterministic_algorithms_enabled()


def test_a_file_that_sets_the_default_dtype_is_refused():
    source = SOURCE.replace("import torch.nn as nn", "import torch.nn as nn; torch.set_default_dtype(torch.float64)")
    with pytest.raises(ProblemError, match="sets torch's default dtype; state dtypes"):
        load_problem(make_problem(source), "full")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.rand(4).cuda()",
        'torch.rand(4).to("cuda")',
        'torch.rand(4, device="cuda:0")',
        'torch.rand(4).to(device="cuda")',
    ],
)
def test_file_that_requests_cuda_gets_the_evaluation_device(expression):
    loaded = load_problem(with_inputs(f"    return [{expression}]"), "full")
    assert loaded.make_inputs(0, CPU)[0].device == CPU


def test_model_that_moves_itself_to_cuda_stays_on_its_device():
    source = SOURCE.replace("self.drop =", "self.cuda(); self.drop =")
    assert load_problem(make_problem(source), "full").make_model(0, CPU).bias.device == CPU


def test_a_module_may_make_tensors_on_cuda():
    source = SOURCE.replace(
        "import torch\n", "import torch\nTABLE, OTHER = torch.ones(4, device='cuda'), torch.ones(4)\n"
    )
    module = load_problem(make_problem(source), "full", torch.device("meta")).module
    assert (module.TABLE.device.type, module.OTHER.device.type) == ("meta", "cpu")


def test_inputs_are_made_on_the_device_and_not_copied_there():
    loaded = load_problem(make_problem(), "full")
    assert loaded.make_inputs(0, torch.device("meta"))[0].device.type == "meta"


def test_inputs_may_be_scalars_lists_integers_and_strided_views():
    body = "    return [torch.rand(4, 6).t(), 3, 0.5, [torch.arange(4), torch.ones(2) > 0], None]"
    strided, whole, real, (integers, booleans), nothing = load_problem(with_inputs(body), "full").make_inputs(0, CPU)
    assert strided.stride() == (1, 6)
    assert (whole, real, nothing) == (3, 0.5, None)
    assert (integers.dtype, booleans.dtype) == (torch.int64, torch.bool)


def test_inputs_are_described_without_being_allocated():
    body = "    return [torch.rand(1 << 20, 1 << 20), torch.randint(0, 9, (7,)), 3]"
    loaded = load_problem(with_inputs(body), "full")
    assert loaded.describe_inputs() == (("float32", (1 << 20, 1 << 20)), ("int64", (7,)))


@pytest.mark.parametrize(
    "drawn",
    [
        "torch.randn(3, 4, dtype=torch.float16)",
        "torch.randn(size=(2, 3), generator=torch.Generator())",
        "torch.randint(5, (3, 2))",
        "torch.randint(1, 5, [3], dtype=torch.int32)",
        "torch.randint(low=0, high=5, size=(3,), generator=torch.Generator())",
    ],
)
def test_random_inputs_are_described_as_they_are_drawn(drawn):
    loaded = load_problem(with_inputs(f"    return [{drawn}]"), "full")
    (made,) = loaded.make_inputs(0, CPU)
    assert loaded.describe_inputs() == ((str(made.dtype).removeprefix("torch."), tuple(made.shape)),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= 64, 32", "= 64 / 0, 32", r"line 14: module level raised ZeroDivisionError"),
        ("import torch\n", "import absent_module\n", r"line 1: .*'absent_module': install the package"),
        ("[features, bias_shape]", "missing", r"line 22: get_init_inputs\(\) raised NameError"),
        ("[features, bias_shape]", "5", r"get_init_inputs\(\) must return a list, found int"),
    ],
)
def test_a_file_that_cannot_be_executed_says_where_and_why(old, new, message):
    with pytest.raises(ProblemError, match=r"mine/toy\.py.*" + message):
        load_problem(make_problem(SOURCE.replace(old, new, 1)), "full")


def test_the_line_of_an_error_is_the_files_own_also_with_overrides():
    source = SOURCE.replace("    return [torch.rand", "    return [torch.randd")
    loaded = load_problem(make_problem(source, features=5, batch_size=3), "small")
    with pytest.raises(ProblemError, match=r"mine/toy\.py, line 19: get_inputs\(\) raised AttributeError"):
        loaded.make_inputs(0, CPU)


def test_inputs_that_are_one_bare_tensor_are_refused_with_advice():
    loaded = load_problem(with_inputs("    return torch.rand(3)"), "full")
    with pytest.raises(ProblemError, match=r"get_inputs\(\) must return a list, found Tensor; write \[value\]"):
        loaded.make_inputs(0, CPU)


def test_a_model_that_cannot_be_constructed_is_a_problem_error():
    source = SOURCE.replace("super().__init__()", "super().__init__(); raise ValueError('no room')")
    loaded = load_problem(make_problem(source), "full")
    with pytest.raises(ProblemError, match=r"Model\(\*get_init_inputs\(\)\) raised ValueError: no room"):
        loaded.make_model(0, CPU)


def test_two_workloads_of_one_problem_do_not_share_their_sizes():
    problem = make_problem(features=5)
    small, full = load_problem(problem, "small"), load_problem(problem, "full")
    assert small.make_inputs(0, CPU)[0].shape[-1] == 5
    assert full.make_inputs(0, CPU)[0].shape[-1] == 32


def test_an_unknown_distribution_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown distribution 'gaussian'"):
        load_problem(make_problem(), "full").make_inputs(0, CPU, "gaussian")
