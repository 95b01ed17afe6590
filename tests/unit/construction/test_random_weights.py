"""Weights drawn under a seed are those of the device, however they were allocated, and none are zeros or ones."""

import pytest
import torch
from torch import nn

from harness.construction.weights import ConstantWeights, DrawOnDevice

FILL = {
    "init": lambda tensor: nn.init.normal_(nn.Parameter(tensor)),
    "kaiming": lambda tensor: nn.init.kaiming_uniform_(nn.Parameter(tensor), a=5**0.5),
    "xavier": nn.init.xavier_uniform_,
    "constant": lambda tensor: nn.init.constant_(nn.Parameter(tensor), 2.0),
    "method": lambda tensor: tensor.uniform_(-1, 1),
    "data": lambda tensor: nn.Parameter(tensor).data.normal_(),
}


@pytest.mark.parametrize("name", FILL)
def test_numbers_are_drawn_on_the_device(name):
    with DrawOnDevice(torch.device("meta")), pytest.raises(NotImplementedError, match="meta"):  # it has no numbers
        FILL[name](torch.Tensor(3, 4))


@pytest.mark.parametrize("name", FILL)
def test_they_are_the_ones_that_the_call_gives_there(name):
    torch.manual_seed(1)
    expected = FILL[name](torch.empty(3, 4))
    torch.manual_seed(1)
    with DrawOnDevice(torch.device("cpu")):
        found = FILL[name](torch.Tensor(3, 4))
    assert torch.equal(found, expected)
    assert (found.is_leaf, found.requires_grad) == (expected.is_leaf, expected.requires_grad)


def test_separate_generators_and_device_tensors_are_unchanged():
    with DrawOnDevice(torch.device("meta")):
        assert torch.Tensor(3).normal_(generator=torch.Generator().manual_seed(0)).device.type == "cpu"
        assert torch.empty(3, device="meta").normal_().is_meta
        assert torch.zeros(3).add_(1).sum() == 3


class Packed(nn.Module):
    """Reads its norm at construction."""

    def __init__(self, weight="weight"):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.packed = self.norm.weight.detach().clone()
        setattr(self, weight, nn.Parameter(torch.ones(2, 3)))
        self.factor = nn.Parameter(torch.ones(()))
        self.gate = nn.Parameter(torch.zeros(()))
        self.statistics = nn.BatchNorm1d(6)
        self.register_buffer("mask", torch.ones(6))


def construct(seed, *arguments, kinds=None):
    constants = ConstantWeights(seed, kinds)
    with constants.replaced():
        model = Packed(*arguments)
    constants.replace_in(model)
    return model, constants.list_kinds(model)


def test_weights_of_zeros_and_ones_get_values_that_a_constructor_may_pack():
    model, kinds = construct(1)
    values = {name: value.detach() for name, value in model.named_parameters()}
    assert model.packed.unique().numel() == 6
    assert torch.equal(model.packed, values["norm.weight"])
    assert values["norm.weight"].min() >= 0.5
    assert values["norm.bias"].abs().min() >= 0.25
    assert values["gate"].abs() >= 0.25
    assert (model.statistics.running_var.unique().numel(), model.statistics.running_mean.unique().numel()) == (6, 6)
    assert (values["factor"], model.mask.sum()) == (1, 6)
    assert set(kinds) == {(6, 0.0), (6, 1.0), (1, 0.0)}
    assert all(weight.requires_grad for weight in model.parameters())


def test_they_depend_on_the_seed_and_not_on_names_or_shapes():
    model, kinds = construct(1)
    renamed, _ = construct(1, "gamma", kinds=kinds)
    assert torch.equal(renamed.gamma, model.weight)
    assert torch.equal(model.weight.view(-1), model.norm.weight)
    assert not torch.equal(construct(2)[0].weight, model.weight)


def test_small_constants_become_visible():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.one = (nn.Parameter(torch.full((6,), value)) for value in (-1e-6, 1.0))
            self.other = nn.Parameter(torch.full((6,), 1e-5))
            self.register_buffer("out_scale", torch.full((6,), 1e-6))

    constants = ConstantWeights(1)
    with constants.replaced():
        model = Scaled()
    constants.replace_in(model)
    for value in (-model.scale, model.other, model.out_scale):
        assert (value >= 0.06).all()
        assert (value <= 0.19).all()
    assert len({tuple(one.tolist()) for one in (model.scale.abs(), 0.125 * model.one, model.other)}) == 3
    assert set(constants.list_kinds(model)) == {(6, float(torch.tensor(value))) for value in (-1e-6, 1e-6, 1.0, 1e-5)}


def test_a_candidate_may_keep_a_small_weight_as_a_buffer():
    kept = nn.Module()
    kept.register_buffer("gain", torch.full((6,), 1e-6))
    search(kept, kinds=((6, float(torch.tensor(1e-6))),))
    assert (kept.gain >= 0.06).all()


def test_constants_of_other_sizes_than_the_references_stay():
    model, _ = construct(1, kinds=[(5, 1.0)])
    assert torch.equal(model.norm.weight, torch.ones(6))


def test_no_number_is_drawn_from_the_global_generator():
    torch.manual_seed(3)
    expected = nn.Linear(6, 6).weight
    torch.manual_seed(3)
    construct(1)
    assert torch.equal(nn.Linear(6, 6).weight, expected)


class Elsewhere(nn.Module):
    """A norm of six features whose weights are no parameters of its size."""

    def __init__(self, weight, bias, *, is_buffer=False):
        super().__init__()
        self.names = weight, bias
        if is_buffer:
            self.register_buffer("weight", weight)
            self.register_buffer("bias", bias)
            self.counts = torch.zeros(6, dtype=torch.int32)


def search(model, kinds=((6, 1.0), (6, 0.0))):
    constants = ConstantWeights(1, kinds)
    constants.replace_in(model)
    constants.search(model)


def expect_norm():
    norm = nn.LayerNorm(6)
    ConstantWeights(1).replace_in(norm)
    return norm.weight.detach(), norm.bias.detach()


def test_buffers_and_attributes_are_searched_for_weights_that_are_no_parameters():
    weight, bias = expect_norm()
    for is_buffer in (True, False):
        model = Elsewhere(torch.ones(6), torch.zeros(6), is_buffer=is_buffer)
        search(model)
        assert torch.equal(torch.stack(model.names), torch.stack((weight, bias)))
    frozen = Elsewhere(nn.Parameter(torch.ones(6), requires_grad=False), torch.zeros(2, 3))
    search(frozen)
    assert torch.equal(frozen.names[0], weight)
    assert torch.equal(frozen.names[1].flatten(), bias)


def test_weights_are_found_in_one_tensor_and_beside_padding():
    weight, bias = expect_norm()
    both = nn.Module()
    both.affine = nn.Parameter(torch.cat([torch.ones(6), torch.zeros(6)]))
    search(both)
    assert torch.equal(both.affine.detach(), torch.cat([weight, bias]))
    padded = nn.Module()
    padded.weight, padded.bias = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))
    search(padded)
    assert torch.equal(padded.weight.detach()[:6], weight)
    assert torch.equal(padded.bias.detach()[:6], bias)


def test_other_tensors_stay_where_every_weight_is_a_parameter():
    model = nn.Module()
    model.norm = nn.LayerNorm(6)
    model.scratch, model.ones = torch.zeros(6), [torch.ones(6)]
    search(model)
    assert not model.scratch.any()
    assert (model.ones[0] == 1).all()
    assert torch.equal(model.norm.weight, expect_norm()[0])
    twice = nn.Module()
    twice.norm, twice.other = nn.LayerNorm(6), torch.ones(6)
    search(twice, kinds=((6, 1.0), (6, 0.0), (6, 1.0)))
    assert torch.equal(twice.other, expect_norm()[0])


def test_buffers_that_are_weights_by_their_names_are_replaced_and_others_stay():
    frozen = nn.Module()
    for name in ("weight", "bias", "running_var", "mask"):
        frozen.register_buffer(name, torch.ones(6))
    ConstantWeights(1).replace_in(frozen)
    replaced = {name for name, value in frozen.named_buffers() if value.unique().numel() == 6}
    assert replaced == {"weight", "bias", "running_var"}
