"""Which gradients problems of a captured training ask for."""

import pytest
import torch
from captured_modules import PART, groups_of, written

from harness.capture.trial_calls import load_text


def test_gradients_that_training_does_not_need_are_not_asked_for(capture):
    init = "self.bias = nn.Parameter(torch.ones(1))\n        self.fixed = nn.Parameter(torch.ones(64), False)"
    forward = "return torch.softmax(x * self.weight * self.fixed + self.bias, -1) * mask"
    script = PART.format(init=init, extra=", mask", forward=forward, given=", torch.arange(64.0)")
    script = script.replace(
        "self.other(self.part(x, torch.arange(64.0)))", "self.part(self.other(x), torch.arange(64.0))"
    )
    run = "net = Net()\nwhile True:\n    net(torch.randn(32, 64)).square().mean().backward()\n"
    _, record, _ = capture(script + run, "--module", "Part", "--backward")
    part, model = groups_of(record)["Part"], load_text(written()["part"].source)["Model"]()
    assert (part["problem"], part["frozen"]) == ("part", ["mask", "self.fixed"])
    assert [name for name, value in model.named_parameters() if not value.requires_grad] == ["bias", "fixed"]
    x, mask = torch.randn(32, 64, requires_grad=True), torch.rand(64, requires_grad=True)
    model(x, mask).sum().backward()
    assert (x.grad is None, mask.grad is None) == (False, True)


@pytest.mark.parametrize("forward", ["x.detach() * self.weight", "x * self.weight + (x * self.weight).detach().sin()"])
def test_a_module_that_detaches_keeps_its_gradients(capture, forward):
    script = PART.format(init="", extra="", forward=f"return {forward}", given="")
    run = "net = Net()\nwhile True:\n    net(torch.randn(32, 64, requires_grad=True)).square().mean().backward()\n"
    _, record, _ = capture(script + run, "--module", "Part", "--backward")
    assert groups_of(record)["Part"]["problem"] == "part", groups_of(record)["Part"]["reason"]
    model, x = load_text(written()["part"].source)["Model"](), torch.randn(32, 64, requires_grad=True)
    found = torch.autograd.grad(model(x).sum(), x, allow_unused=True)[0]
    assert found is None if forward.startswith("x.detach") else torch.allclose(found, model.weight.expand(32, 64))


def test_a_backward_pass_that_fails_on_similar_inputs_is_a_reason(capture):
    forward = """assert rows[0] + 1 == rows[1], 'rows in order'
        return x * self.weight"""
    script = PART.format(init="", extra=", rows", forward=forward, given=", torch.arange(9)")
    run = "net = Net()\nwhile True:\n    net(torch.randn(32, 64)).square().mean().backward()\n"
    code, record, _ = capture(script + run, "--module", "Part", "--backward")
    assert (code, groups_of(record)["Part"]["reason"]) == (0, "its backward pass fails: rows in order")
