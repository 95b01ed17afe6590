"""Weights drawn under a seed are those of the device, however they were allocated."""

import pytest
import torch
from torch import nn

from harness.random_weights import DrawOnDevice

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


def test_a_generator_of_its_own_and_tensors_on_the_device_are_left_alone():
    with DrawOnDevice(torch.device("meta")):
        assert torch.Tensor(3).normal_(generator=torch.Generator().manual_seed(0)).device.type == "cpu"
        assert torch.empty(3, device="meta").normal_().is_meta
        assert torch.zeros(3).add_(1).sum() == 3
