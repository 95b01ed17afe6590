"""Problems cut to what a slow device can compute."""

from math import prod

from harness.domain import Problem, Workload
from harness.problems.loading import load_problem
from harness.problems.shrink import Budget, describe_sizes, fit_problem, list_milder_sizes, list_sizes, reduce_problem

HEAD = "import torch\nfrom torch import nn\n"
MATMUL = f"""{HEAD}
height = 4096
width: int = 2048
scale, enabled = 2.5, True


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(height, width), torch.randn(width, height)]


def get_init_inputs():
    return []
"""
GROUPS = f"""{HEAD}
channels = 4096
groups = 64


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(64, channels, 8)]


def get_init_inputs():
    return [groups, channels]
"""
BUDGET = Budget(elements=100_000, flops=10_000_000)


def problem_of(source, **more):
    return Problem(name="p", suite="s", source=source, **more)


def test_the_cut_problem_is_within_its_budget_and_says_its_sizes():
    reduced = reduce_problem(problem_of(MATMUL), BUDGET)
    assert describe_sizes(reduced, "reduced") == "height=127, width=255"
    shapes = [shape for _, shape in load_problem(reduced, "reduced").describe_inputs()]
    assert sum(map(prod, shapes)) + 127 * 127 <= 2 * BUDGET.elements


def test_the_same_file_always_gives_the_same_sizes():
    assert reduce_problem(problem_of(MATMUL), BUDGET) == reduce_problem(problem_of(MATMUL), BUDGET)


def test_sizes_stay_such_as_the_problem_takes():
    reduced = reduce_problem(problem_of(GROUPS), BUDGET)
    assert load_problem(reduced, "reduced").init_inputs[1] % load_problem(reduced, "reduced").init_inputs[0] == 0


def test_integers_that_are_assigned_to_a_name_each_are_sizes():
    assert list_sizes(problem_of(MATMUL)) == {"height": 4096, "width": 2048}
    more = """
rows, (inner, columns) = 16 * 1024, [1 << 20, 2**10]
first = last = 7
one, *others = 3, 4, 5
pair = 8, 9
flag, missing, half = True, None, 2048 // width
huge, odd = 10**200**3, 3 - 4
"""
    assert list_sizes(problem_of(MATMUL + more)) == {
        "height": 4096, "width": 2048, "rows": 16384, "inner": 1 << 20, "columns": 1024, "first": 7, "last": 7,
    }  # fmt: skip


def test_sizes_in_a_tuple_and_such_that_are_calculated_are_cut():
    source = MATMUL.replace("height = 4096\nwidth: int = 2048", "height, width = 2 * 2048, 2048")
    reduced = reduce_problem(problem_of(source), BUDGET)
    assert describe_sizes(reduced, "reduced") == "height=127, width=255"
    assert load_problem(reduced, "reduced").describe_inputs()[0][1] == (127, 255)


def test_the_small_workload_is_cut_further():
    small = Workload(name="small", overrides=(("height", 300), ("width", 200)))
    problem = problem_of(MATMUL, workloads=(Workload(name="full"), small))
    reduced = reduce_problem(problem, Budget(elements=20_000, flops=10**9), start=small)
    overrides = dict(reduced.workload("reduced").overrides)
    assert overrides["height"] < 300
    assert overrides["width"] <= 200
    assert reduced.workload("small") == small


def test_without_sizes_to_cut_there_is_no_reduced_problem():
    source = MATMUL.replace("= 4096", "= int('4096')").replace("= 2048", "= max(2048, 1)")
    assert reduce_problem(problem_of(source), BUDGET) is None


def test_sizes_that_cannot_be_found_are_kept_if_the_call_takes_seconds():
    source = MATMUL.replace("(height, width)", "(700, 500)").replace("(width, height)", "(500, 700)")
    unnamed = problem_of(source.replace("height = 4096\nwidth: int = 2048\n", ""))
    assert reduce_problem(unnamed, Budget(elements=200_000, flops=10**9)) is None
    assert describe_sizes(fit_problem(unnamed, 1), "reduced") == ""
    assert fit_problem(unnamed, 10_000) is None


def test_small_problem_keeps_its_sizes():
    source = MATMUL.replace("= 4096", "= 40").replace("= 2048", "= 20")
    assert describe_sizes(reduce_problem(problem_of(source), BUDGET), "reduced") == "height=40, width=20"


def test_a_reference_that_looks_at_values_is_cut_by_trying():
    source = MATMUL.replace("return a @ b", "return a @ b if a.sum().item() > 1e9 else a")
    reduced = reduce_problem(problem_of(source), BUDGET)
    assert prod(value for _, value in reduced.workload("reduced").overrides) <= BUDGET.elements


def test_value_dependent_result_size_uses_thousands_of_values():
    source = f"""{HEAD}
bins, count = 37, 1 << 20
class Model(nn.Module):
    def forward(self, x):
        return torch.bincount(x, minlength=bins)
def get_inputs():
    return [torch.randint(0, bins, (count,))]
def get_init_inputs():
    return []
"""
    assert describe_sizes(fit_problem(problem_of(source), 10), "reduced") == "bins=37, count=4096"


def test_sizes_of_a_value_dependent_reference_are_capped_each():
    names = [f"size_{index}" for index in range(20)]
    source = f"""{HEAD}
{"; ".join(f"{name} = 500" for name in names)}
class Model(nn.Module):
    def forward(self, x):
        return torch.bincount(x, minlength={" + ".join(names)})
def get_inputs():
    return [torch.randint(0, size_0, (size_1,))]
def get_init_inputs():
    return []
"""
    fitted = fit_problem(problem_of(source), 10)
    assert fitted is not None
    assert set(dict(fitted.workload("reduced").overrides).values()) == {64}


def test_the_reduced_problem_is_the_same_version_of_it():
    assert reduce_problem(problem_of(MATMUL), BUDGET).digest == problem_of(MATMUL).digest


def test_milder_reductions_keep_multiples_and_end_unreduced():
    reduced = reduce_problem(problem_of(MATMUL), BUDGET)
    patient = Budget(elements=10**8, flops=10**12)
    found = [describe_sizes(cut, "reduced") for cut in list_milder_sizes(reduced, BUDGET, patient)]
    assert found == ["height=128, width=256", "height=4096, width=2048"]


CHANNELS = """
import torch
from torch import nn
batch, channels, width = 512, 64, 4096
shape = (channels, 1)
class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))
    def forward(self, x):
        return torch.softmax(x * self.weight, dim=1)
def get_inputs():
    return [torch.randn(batch, channels, width)]
def get_init_inputs():
    return [shape]
"""


def test_first_milder_reduction_keeps_the_sizes_of_the_model():
    reduced = reduce_problem(problem_of(CHANNELS), BUDGET)
    assert "channels=64" not in describe_sizes(reduced, "reduced")
    first, *_ = list_milder_sizes(reduced, BUDGET, BUDGET)
    assert describe_sizes(first, "reduced") == "batch=16, channels=64, width=32"


def test_a_milder_reduction_keeps_the_last_dimension_of_inputs():
    source = """
import torch
from torch import nn
batch, heads, length, size = 4, 16, 2048, 96
class Model(nn.Module):
    def forward(self, q, k):
        return torch.softmax(q @ k.mT, dim=-1)
def get_inputs():
    return [torch.randn(batch, heads, length, size), torch.randn((batch, heads, length, size)).half().float()]
def get_init_inputs():
    return []
"""
    reduced = reduce_problem(problem_of(source), BUDGET)
    even, rows = (describe_sizes(cut, "reduced") for cut in list_milder_sizes(reduced, BUDGET, BUDGET))
    assert "size=96" not in even and "size=96" in rows


def test_too_expensive_problem_is_not_used_unshrunk():
    reduced = reduce_problem(problem_of(MATMUL), BUDGET)
    assert len(list(list_milder_sizes(reduced, BUDGET, BUDGET))) == 1


def test_a_problem_that_fits_as_it_is_written_has_no_kinder_cuts():
    reduced = reduce_problem(problem_of(MATMUL.replace("4096", "40").replace("2048", "20")), BUDGET)
    assert list(list_milder_sizes(reduced, BUDGET, BUDGET)) == []
