"""Problems as people write them: what they construct on the host works with a GPU as torch's default device, too."""

import pytest

pytestmark = pytest.mark.gpu

PROBLEM = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {weights}

    def forward(self, x):
        return x * self.factors + self.offset


def get_inputs():
    {inputs}
    return [x]


def get_init_inputs():
    return []
"""
DRAWN_WEIGHTS = """generator = torch.Generator().manual_seed(7)
        self.register_buffer("factors", torch.rand(4096, generator=generator))
        self.offset = nn.Parameter(torch.randn(4096))"""
NUMPY_WEIGHTS = """self.register_buffer("factors", torch.from_numpy(torch.linspace(0, 1, 4096).numpy() ** 2))
        self.offset = nn.Parameter(torch.tensor(np.random.rand(4096), dtype=torch.float32))"""
USUAL_WEIGHTS = """self.factors = nn.Parameter(torch.rand(4096))
        self.offset = nn.Parameter(torch.zeros(4096))"""
USUAL_INPUTS = "x = torch.randn(512, 4096)"
DRAWN_INPUTS = "x = torch.randn(512, 4096, generator=torch.Generator().manual_seed(torch.initial_seed()))"
NUMPY_INPUTS = "x = torch.from_numpy(np.clip(torch.randn(512, 4096).numpy(), -1, 1))"


@pytest.fixture(scope="module")
def gpu_bench(open_bench):
    return open_bench(isolation="auto", device="cuda:0", call_s=30.0, load_s=60.0)


@pytest.mark.parametrize(
    ("weights", "inputs"),
    [
        (DRAWN_WEIGHTS, USUAL_INPUTS),
        (NUMPY_WEIGHTS, USUAL_INPUTS),
        (USUAL_WEIGHTS, DRAWN_INPUTS),
        (USUAL_WEIGHTS, NUMPY_INPUTS),
    ],
    ids=["drawn weights", "numpy weights", "drawn inputs", "numpy inputs"],
)
def test_host_only_operations_run_on_the_host(gpu_bench, weights, inputs):
    problem = PROBLEM.format(weights=weights, inputs=inputs)
    evaluation = gpu_bench.evaluate(problem.replace("class Model(", "class ModelNew("), problem)
    assert evaluation.outcome == "correct", evaluation.message
    wrong = problem.replace("class Model(", "class ModelNew(").replace("+ self.offset", "+ 2 * self.offset")
    assert gpu_bench.evaluate(wrong, problem).outcome == "wrong_value"
