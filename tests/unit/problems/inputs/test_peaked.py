"""Inputs on which the small terms of a softmax have a share of the result."""

from dataclasses import replace

import pytest
import torch

from harness.domain import Problem
from harness.problems.inputs.kinds import find_kind
from harness.problems.inputs.traits import InputTraits

KIND = find_kind("peaked")
TRAITS = InputTraits(problem=Problem(name="p", suite="s", source=""))
WHOLE = [seed for seed in range(40) if KIND.changes_all(seed)]


def change(seed, *inputs, traits=TRAITS):
    return KIND.change(inputs, traits, torch.Generator().manual_seed(seed))


def test_the_class_that_an_index_names_has_most_of_the_weight():
    losses = []
    for seed in WHOLE:
        logits, targets = change(seed, torch.randn(50, 1000), torch.randint(1000, (50,)))
        losses.append(torch.nn.functional.cross_entropy(logits, targets, reduction="none"))
        assert torch.equal(logits.argmax(1), targets)
    assert max(loss.max() for loss in losses) > 1.5
    assert min(loss.max() for loss in losses) < 0.05  # in all rows
    assert 5e-5 < min(loss.min() for loss in losses) < 1e-2


def test_roundings_of_the_other_terms_add_up_at_times():
    biases, given = [], torch.randn(50, 1000)
    for seed in (None, *WHOLE):
        logits = given if seed is None else change(seed, given.clone())[0]
        others = torch.exp(logits - logits.amax(1, keepdim=True)).sort(dim=1).values[:, :-1]
        biases.append(float((others.bfloat16().float().sum() / others.sum() - 1).abs()))
    assert biases[0] < 1e-5
    assert max(biases) > 2e-4


@pytest.mark.parametrize(("dtype", "least"), [(torch.float32, 5e-7), (torch.bfloat16, 4e-4)])
def test_one_key_has_the_weight_and_no_value_unless_exponentials_overflow(dtype, least):
    rests, largest = [], []
    for seed in WHOLE:
        q, k, v = change(seed, *(torch.randn(2, 3, 200, 40).to(dtype) for _ in range(3)))
        scores = q.double() @ k.double().mT / 40**0.5
        largest.append(float(scores.max()))
        if abs(largest[-1]) > 100:
            continue
        weights = torch.softmax(scores, -1)
        place = int((v == 0).all(-1).flatten(0, 1).all(0).nonzero())
        rest = 1 - weights[..., place]
        assert (weights.argmax(-1) == place).all()
        rests += [float(rest.min()), float(rest.max())]
    assert least < min(rests) < 20 * least
    assert max(rests) > 0.5
    assert (min(largest) < -120) == (dtype is torch.float32)  # exponentials of all scores are zero
    assert max(largest) < 20 if dtype is torch.float32 else 120 < max(largest) < 140


def test_two_products_overflow_in_calls_that_change_parts():
    parts = [seed for seed in range(40) if not KIND.changes_all(seed)]
    changed = [change(seed, *(torch.randn(2, 3, 200, 40) for _ in range(3))) for seed in parts]
    assert any(120 < float((q @ k.mT).max()) / 40**0.5 < 140 for q, k, _ in changed)


def test_rows_are_along_the_weights_that_an_index_names():
    weights, targets = torch.randn(500, 64) / 4, torch.randint(500, (30,))
    for seed in WHOLE:
        rows, _ = change(seed, torch.randn(30, 64), targets, traits=replace(TRAITS, weights=(weights,)))
        assert ((rows @ weights.T).argmax(1) == targets).all()


def test_in_other_calls_only_secret_rows_change():
    seed = next(seed for seed in range(40) if not KIND.changes_all(seed))
    given = torch.randn(300, 100)
    (changed,) = change(seed, given.clone())
    is_changed = (changed != given).any(1)
    assert 0 < int(is_changed.sum()) < 300


def test_masks_and_filled_values_stay():
    scores = torch.where(torch.rand(40, 50) < 0.1, -1e9, torch.randn(40, 50))
    (changed,) = change(WHOLE[0], scores.clone())
    assert torch.equal(changed, scores)


@pytest.mark.parametrize("has_weights", [False, True])
def test_a_loss_in_16_bits_may_be_the_difference_of_rounded_values(has_weights):
    weights = torch.randn(1000, 64) / 4
    traits = replace(TRAITS, weights=(weights,) if has_weights else (), returns_16_bits=True)
    for seed in WHOLE:
        given = torch.randn(64, 64 if has_weights else 1000, dtype=torch.bfloat16), torch.randint(1000, (64,))
        values, targets = change(seed, *given, traits=traits)
        logits = values @ weights.bfloat16().T if has_weights else values
        rounded = torch.logsumexp(logits, -1) - logits.gather(-1, targets[:, None]).squeeze(-1)
        exact = torch.nn.functional.cross_entropy(logits.double(), targets, reduction="none")
        assert (rounded - exact).abs().max() < exact.max() / 4
