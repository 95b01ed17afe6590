"""References whose calls take most of their time to launch kernels are replayed as CUDA graphs, if that gives the same
outputs."""

import time

import pytest

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(64))

    def forward(self, x):
        for step in range(4000):
            x = torch.sin(x * self.weight + step) {more}
        return x


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []
"""
HOST = {  # what a graph cannot hold
    "a value read back": "+ float(x[0, 0] > 2)",
    "a wait": "+ (torch.cuda.synchronize() or 0)",
    "host memory": "+ torch.tensor([1.0], device='cuda')",
}


@pytest.fixture
def prepare():
    from harness.domain import Problem
    from harness.evaluation.correctness.reference import prepare_reference
    from harness.problems.loading import load_problem
    from harness.sandbox.devices import open_device

    def make(more=""):
        problem = Problem(name="chain", suite="tiny", source=PROBLEM.format(more=more))
        return prepare_reference(load_problem(problem, "full"), open_device("cuda:0"), 1, 2)

    return make


def test_replays_of_a_reference_give_the_same_truth_in_less_time(prepare):
    from dataclasses import replace

    from harness.evaluation.correctness.refinement import refine_truth
    from harness.evaluation.correctness.variations import make_other_weights
    from harness.tensors.values import has_same_bits

    reference = prepare()
    plain, took_s = replace(reference, graphs=None), {}
    assert reference.graphs is not None
    for seed in range(5):
        inputs = reference.make_inputs(seed)
        found = {}
        for one in (plain, reference):
            began_s = time.monotonic()
            *_, truth = refine_truth(one, one.truth_of(inputs), inputs)
            other = make_other_weights(one, seed).truth_of(one, inputs)
            found[one is plain] = [*truth.leaves, *other.leaves]
            took_s[one is plain] = time.monotonic() - began_s
        for expected, mine in zip(found[True], found[False], strict=True):
            assert has_same_bits(expected.reference, mine.reference)
            assert has_same_bits(expected.exact, mine.exact)
            assert not expected.spreads or has_same_bits(expected.spreads[0], mine.spreads[0])
    assert took_s[False] < took_s[True] / 2, took_s
    reference.close()


@pytest.mark.parametrize("name", HOST)
def test_a_reference_that_a_graph_cannot_hold_is_called(prepare, name):
    import torch

    reference = prepare(HOST[name])
    inputs = [reference.make_inputs(seed) for seed in range(4)]
    outputs = [reference.outputs_of(one).tensors[0] for one in inputs]
    for given, found in zip(inputs, outputs, strict=True):
        with torch.no_grad():
            torch.testing.assert_close(reference.model(*given), found)
    reference.close()
    del inputs, outputs, given, found
    before = torch.cuda.memory_reserved()
    large = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    del large
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before
