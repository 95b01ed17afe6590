"""Timed calls of which only samples are kept are compared with the same places of the truth."""

import random
from dataclasses import replace
from functools import cache

import pytest
import torch

from harness.domain import Problem
from harness.evaluation.correctness import reference as references
from harness.evaluation.correctness.reference import prepare_reference
from harness.evaluation.correctness.truth import TruthLeaf
from harness.evaluation.settings import Choice
from harness.evaluation.timing import chosen_calls
from harness.evaluation.timing.chosen_calls import ChosenCalls
from harness.problems.loading import load_problem
from harness.protocol import TensorSpec
from harness.sandbox.arena_layout import outline
from harness.sandbox.devices import CpuDevice
from harness.sandbox.model_session import Run
from harness.sandbox.worker_client import Called
from harness.tensors.outputs import Sample

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.exp().t(), x.sum()


def get_inputs():
    return [torch.randn(300, 200)]


def get_init_inputs():
    return []
"""
SAMPLE = Sample(firsts=((16384,), (0,)))
SPECS = (
    TensorSpec(dtype="float32", shape=(200, 300), stride=(1, 200)),
    TensorSpec(dtype="float32", shape=(), stride=()),
)


@pytest.fixture(scope="module")
def reference():
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=SOURCE), "full"), CpuDevice(), 1, 2)


def run_of(outputs, sample=SAMPLE):
    parts = tuple(sample.take(index, tensor) for index, tensor in enumerate(outputs.tensors))
    called = Called(reported_us=1.0, at_ns=0, tree=outputs.tree, specs=SPECS, devices=("cpu", "cpu"), addresses=(0, 0))
    sampled = replace(outputs, tensors=parts)
    return Run(outputs=sampled, called=called, taken=True, inputs_unchanged=True, sample=sample)


def evaluate(reference, spoil):
    chosen = ChosenCalls(reference, Choice(compared_calls=1), random.Random(1))
    own = reference.outputs_of(reference.make_timed_inputs(5))
    spoil(own.tensors[0])
    chosen.note(5, run_of(own))
    return chosen.find_wrong()


def remember_outputs(reference):
    """A function of a seed: copies of its outputs, which are computed once."""
    find = cache(lambda seed: reference.outputs_of(reference.make_timed_inputs(seed)))
    return lambda seed: replace(find(seed), tensors=tuple(tensor.clone() for tensor in find(seed).tensors))


@pytest.mark.slow
def test_differences_that_the_truth_allows_keep_no_later_call_from_being_compared(reference):
    found, compute = [], remember_outputs(reference)
    for source in map(random.Random, range(12)):
        chosen = ChosenCalls(reference, Choice(compared_calls=0, screened_share=1.0), source)
        for seed in range(12):
            baseline, mine = compute(seed), compute(seed)
            (baseline if seed < 4 else mine).tensors[0].zero_()  # the candidate is right, then wrong
            chosen.note(seed, run_of(mine), run_of(baseline))
        found.append(chosen.find_wrong())
    assert sum(map(bool, found)) >= 10  # one in 55 has only right calls among the three


@pytest.mark.slow
def test_allowed_differences_do_not_crowd_out_other_input_kinds(reference):
    reference = replace(reference, timed_steps=("biased", "varied"))
    usual = [seed for seed in range(400) if reference.choose_timed_step(seed) == "as_given"]
    compute = remember_outputs(reference)
    unusual = next(seed for seed in range(400) if reference.choose_timed_step(seed) == "varied")
    for source in map(random.Random, range(12)):
        chosen = ChosenCalls(reference, Choice(compared_calls=0, screened_share=1.0), source)
        for seed in (*usual[:8], unusual, *usual[8:16]):
            baseline, mine = compute(seed), compute(seed)
            (mine if seed == unusual else baseline).tensors[0].zero_()
            chosen.note(seed, run_of(mine), run_of(baseline))
        assert chosen.find_wrong() is not None


@pytest.mark.parametrize("sample", [SAMPLE, Sample(firsts=((0,), (0,)))])
@pytest.mark.parametrize("is_right", [True, False])
def test_a_call_that_differs_from_the_baselines_is_compared_with_the_truth(reference, sample, is_right):
    """Also one whose sample cannot be compared with the baseline's."""
    chosen = ChosenCalls(reference, Choice(compared_calls=0, screened_share=1.0), random.Random(1))
    for seed in range(20):
        outputs = reference.outputs_of(reference.make_timed_inputs(seed))
        baseline = run_of(outputs)
        if seed == 11 and not is_right:
            outputs.tensors[0].zero_()
        chosen.note(seed, run_of(outputs, sample if seed == 11 else SAMPLE), baseline)
    assert (chosen.find_wrong() is None) == is_right


@pytest.mark.parametrize(
    ("spoil", "is_right"),
    [
        (lambda output: None, True),
        (lambda output: output[0].zero_(), True),  # not in the sample
        (lambda output: output[16384 // 300, 16384 % 300].zero_(), False),
        (lambda output: output.mul_(1.01), False),
    ],
)
def test_a_sample_is_wrong_where_one_of_its_elements_is(reference, spoil, is_right):
    found = evaluate(reference, spoil)
    assert (found is None) == is_right, found


def test_truth_is_not_computed_for_samples_near_the_reference(reference, monkeypatch):
    monkeypatch.setattr(references, "compute_truth", lambda *_, **__: pytest.fail("computed"))
    assert evaluate(reference, lambda output: output.mul_(1 + 1e-6)) is None


LARGE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.t() * 2


def get_inputs():
    return [torch.randn(1500, 1001)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def large_reference():
    return prepare_reference(load_problem(Problem(name="p", suite="s", source=LARGE), "full"), CpuDevice(), 1, 2)


def evaluate_large(reference, spoil, calls=12):
    chosen = ChosenCalls(reference, Choice(compared_calls=0, screened_share=1.0), random.Random(1))
    spec = TensorSpec(dtype="float32", shape=(1001, 1500), stride=(1, 1001))
    for seed in range(calls):
        theirs = reference.outputs_of(reference.make_timed_inputs(seed))
        mine = replace(theirs, tensors=tuple(tensor.clone() for tensor in theirs.tensors))
        spoil(mine.tensors[0], seed)
        called = Called(reported_us=1.0, at_ns=0, tree=mine.tree, specs=(spec,), devices=("cpu",), addresses=(0,))
        runs = (Run(outputs=outputs, called=called, taken=True, inputs_unchanged=True) for outputs in (mine, theirs))
        chosen.note(seed, *runs)
    return chosen.find_wrong()


@pytest.mark.slow
def test_a_large_output_that_is_wrong_in_some_calls_is_found(large_reference):
    assert evaluate_large(large_reference, lambda output, seed: None) is None
    assert evaluate_large(large_reference, lambda output, seed: output.mul_(1.01) if seed == 7 else None) is not None


def test_some_large_outputs_are_compared_whole(large_reference, monkeypatch):
    monkeypatch.setattr(chosen_calls, "choose_sample", lambda *_: Sample(firsts=((0,),)))
    assert evaluate_large(large_reference, lambda output, seed: output[-1, -1].add_(9.0)) is not None


@pytest.mark.parametrize("shape", [(1500, 1001), (2002, 1500)])
def test_a_large_output_of_another_form_is_found(large_reference, shape):
    """Of which only the description was taken."""
    chosen = ChosenCalls(large_reference, Choice(compared_calls=0, screened_share=1.0), random.Random(1))
    theirs = large_reference.outputs_of(large_reference.make_timed_inputs(1))
    spec = TensorSpec(dtype="float32", shape=shape, stride=(shape[1], 1))
    called = Called(reported_us=1.0, at_ns=0, tree=theirs.tree, specs=(spec,), devices=("cpu",), addresses=(0,))
    for _ in range(8):
        mine, baseline = (
            Run(outputs=outputs, called=called, taken=True, inputs_unchanged=True)
            for outputs in (outline(called), theirs)
        )
        chosen.note(1, mine, baseline)
    assert "shape" in chosen.find_wrong().reason


def test_all_that_is_known_of_an_output_is_sampled():
    values = torch.arange(60000.0)
    known = {"spread": values + 1, "element_spread": values + 2, "reach": values + 3}
    leaf = TruthLeaf(name="output", reference=values, exact=values.double(), **known)
    sampled = chosen_calls._sample_leaf(leaf, 0, SAMPLE)
    places = sampled.reference.long()
    assert 0 < len(places) < len(values)
    assert torch.equal(sampled.exact, places.double())
    assert all(torch.equal(getattr(sampled, name), values[places]) for name, values in known.items())
