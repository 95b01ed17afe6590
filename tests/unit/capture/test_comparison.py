"""Comparison of a model with itself, and with kernels: times, outputs, tokens and losses."""

import pytest
import torch
from torch import nn

from harness.capture.comparison import (
    Runner,
    allow_losses,
    applied,
    compare_models,
    compare_tokens,
    copy_structure,
    describe_difference,
    expect,
    generate,
    measure_gain,
    measure_modes,
)
from harness.capture.runtime import Dispatch

# Milliseconds of a decoder, and of the decoder with its own modules as kernels, on a machine with other work.
PLAIN = (505, 456, 487, 433, 673, 701, 655, 700, 696, 527, 798, 916, 776, 759, 782)
SAME = (475, 519, 465, 407, 693, 750, 756, 762, 957, 630, 882, 793, 694, 641, 640)


class Clock:
    """Advances by the recorded times of the work."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s

    def replay(self, times_ms):
        times = iter((times_ms[0], *times_ms))  # the first run does not count

        def work(_):
            self.now_s += next(times) / 1e3
            return []

        return Runner(work)


@pytest.mark.parametrize(("factor", "pays"), [(1.0, False), (0.7, True), (1.5, False)])
def test_a_gain_is_told_from_the_same_modules_on_a_busy_machine(factor, pays):
    clock = Clock()
    before, after = clock.replay(PLAIN), clock.replay([factor * one for one in SAME])
    gain = measure_gain(before, after, 1, clock=clock)
    assert gain.pays is pays
    assert (gain.low <= 1 <= gain.high) is (factor == 1.0)


class Words(nn.Module):
    """Scores of the next word depend on the whole row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.mix, self.head = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 50)

    def forward(self, *, ids, scale=1.0, kept=6):
        return {"scores": self.head(self.mix(self.embedding(ids)).cumsum(1) * scale)[:, -kept:]}


class Changed(nn.Module):
    def __init__(self, module, change):
        super().__init__()
        self.module, self.change = [module], change

    def forward(self, input):
        module = self.module[0]
        return nn.functional.linear(input, module.weight, module.bias) + self.change


def replace_mix(model, change, *, backward=False):
    plan = {
        "problem": "mix", "paths": ["mix"], "inputs": ["input"], "outputs": "0", "frozen": [],
        "arguments": "(1, {'input': 'Tensor float32'})", "shapes": [[[(2, 2), (6, 6), (8, 8)]]], "backward": backward,
    }  # fmt: skip
    return [Dispatch(model.mix, Changed(model.mix, change), plan)]


@pytest.mark.parametrize("kept", [1, 6])
@pytest.mark.parametrize(("change", "same"), [(0.0, True), (torch.arange(8.0), False)])
def test_greedy_tokens_are_compared_at_the_captured_shapes(change, same, kept):
    model = Words()
    calls = [((), {"ids": torch.randint(50, (2, 6)), "scale": 2.0, "kept": kept})]
    dispatches = replace_mix(model, change)
    assert (compare_tokens(expect(model, calls), dispatches, 10) == 10) is same
    assert dispatches[0].used == 10
    assert "forward" not in vars(model.mix)


def test_a_token_that_the_model_scores_alike_counts_as_equal():
    model, rounding = Words(), 1e-6
    model.head.weight.data[25:] = model.head.weight.data[:25] + rounding * torch.randn(25, 8)
    model.head.bias.data[25:] = model.head.bias.data[:25]
    calls = [((), {"ids": torch.randint(50, (2, 6))})]
    dispatches = replace_mix(model, rounding * torch.randn(8))
    given = calls[0][1]["ids"]
    tokens = []
    for used in ([], dispatches):
        with applied(used):
            tokens.append([scores.argmax(-1).tolist() for _, scores in generate(model, calls[0], given, 10)])
    assert tokens[0] != tokens[1]
    assert compare_tokens(expect(model, calls), dispatches, 10) == 10


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(("change", "difference"), [(0.0, ""), (0.01, "off by")])
def test_outputs_and_gradients_may_differ_by_roundings_only(change, difference, gradients):
    model = Words()
    dispatches = replace_mix(model, change, backward=True)
    calls = [((), {"ids": torch.randint(50, (2, 6))})]
    expected = expect(model, calls, gradients=gradients)
    found = compare_models(dispatches, expected)
    assert found.startswith("call 0 of the model: off by") if difference else found == ""


def test_a_comparison_leaves_buffers_and_random_numbers_as_they_were():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    state = torch.get_rng_state()
    calls = [((torch.randn(8, 4),), {})]
    assert compare_models([], expect(model, calls)) == ""
    assert int(model[0].num_batches_tracked) == 0
    assert not torch.equal(torch.get_rng_state(), state)  # of the argument above only
    torch.set_rng_state(state)


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ((torch.ones(3), torch.ones(2)), ""),
        ([torch.ones(3), torch.ones(2)], "a list instead of a tuple"),
        ((torch.ones(3), torch.ones(3)), "shapes"),
        ((torch.ones(3), torch.ones(2).double()), "dtype torch.float64"),
        ((torch.ones(3), torch.tensor([1.0, float("nan")])), "off by inf"),
    ],
)
def test_outputs_of_a_module_have_its_form(found, difference):
    assert describe_difference(found, (torch.ones(3), torch.ones(2))).startswith(difference)


def test_losses_may_differ_as_much_as_roundings_explain():
    assert allow_losses([2.0, 1.0], [2.0, 1.001]) == pytest.approx(0.008)
    assert 0 < allow_losses([2.0], [2.0]) < 1e-4


def test_a_mode_that_the_model_does_not_allow_has_a_reason():
    model, calls = nn.Linear(2, 2), [((torch.ones(2, 2),), {})]
    modes = measure_modes([], expect(model, calls), ["eager", "graph"])
    assert modes["eager"].low <= 1.1
    assert modes["graph"] == "a CUDA graph needs a model on one GPU"


def test_a_mode_with_wrong_outputs_has_a_reason_instead_of_a_time():
    model, calls = Words(), [((), {"ids": torch.randint(50, (2, 6))})]
    modes = measure_modes(replace_mix(model, 0.01), expect(model, calls), ["eager"])
    assert modes["eager"].startswith("wrong outputs in call 0 of the model: off by")


@pytest.mark.parametrize(("dtype", "change"), [(torch.bfloat16, 0.1), (torch.float16, 0.02), (torch.float32, 1e-4)])
def test_a_kernel_may_be_off_by_roundings_of_its_dtype_only(dtype, change):
    values = torch.linspace(0, 1, 100).to(dtype)
    assert describe_difference(values * (1 + change), values).startswith("off by")
    assert describe_difference(values * (1 + 2 * torch.finfo(dtype).eps), values) == ""


def test_a_copy_of_the_structure_shares_kernels_that_hold_extensions():
    model = Words()
    dispatches = replace_mix(model, 0.0)
    dispatches[0].kernel.extension = torch  # a module cannot be copied
    with applied(dispatches):
        copied = copy_structure(model, dispatches)
    assert copied.mix.forward.kernel is dispatches[0].kernel
    assert copied.mix.forward.module is copied.mix
