"""Chains of operators in a long forward: they become problems, and their kernels are put into the model."""

import shutil
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

from harness.capture.capture import read_capture
from harness.capture.comparison import applied, compare_models, copy_structure, expect, run_calls
from harness.capture.groups import describe_arguments, outline_module
from harness.capture.runtime import apply_plans, make_dispatches
from harness.capture.trial_calls import load_text
from harness.capture.values import describe
from harness.capture.watch import CallForm
from harness.domain import ProblemError

SCRIPT = Path(__file__).with_name("long_forward.py")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def captured(capture, kept):
    """Capture the network once. Return it, its calls, and the record's plans with the modules' own code as kernels."""
    if not (kept / "captured").exists():
        assert capture(SCRIPT.read_text(), "--module", "LayerChain")[0] == 0
        shutil.copytree(".", kept, dirs_exist_ok=True)
    record = read_capture(kept / "captured/net")
    groups = [group for group in record["groups"] if group["problem"]]
    for group in groups:
        text = (kept / f"captured/net/{group['problem']}.py").read_text()
        Path(f"{group['problem']}.py").write_text(text.replace("class Model(", "class ModelNew("))
    plans = [group | {"backward": False, "outlines": record["outlines"]} for group in groups]
    net = load_text(SCRIPT.read_text().replace("range(50)", "range(0)"))["net"].cpu()
    return net, [((torch.randn(2, 16, 32),), {})], plans


def test_chains_of_a_long_forward_are_problems_without_parameters(captured):
    _, _, plans = captured
    assert [plan["calls"] for plan in plans] == [2] * len(plans)
    assert sorted(len(plan["inputs"]) for plan in plans) == [1, 2, 2, 3, 3]  # softmax, norm, SwiGLU, RoPE, norm
    assert all("Parameter" not in Path(f"{plan['problem']}.py").read_text() for plan in plans)


def test_kernels_of_chains_are_used_in_the_model_and_taken_out_again(captured):
    net, calls, plans = captured
    names, expected = list(net.state_dict()), expect(net, calls)
    dispatches = [one for plan in plans for one in make_dispatches(net, plan, Path(f"{plan['problem']}.py"))]
    assert compare_models(dispatches, expected) == ""
    assert {one.used for one in dispatches} == {1}
    assert all("forward" not in vars(layer) for layer in net.layers)
    with applied(dispatches):
        copied = copy_structure(net, dispatches)
    run_calls(copied, calls)
    assert list(net.state_dict()) == names
    found = [chain.forward.used for layer in copied.layers for chain in layer.forward.graph.children()
             if "forward" in vars(chain)]  # fmt: skip
    assert found == [2] * len(dispatches)


def test_calls_with_other_constants_use_the_forward_of_the_module(captured):
    net, calls, plans = captured
    apply_plans(net, plans, Path())
    outline = net.layers[0].forward
    given = (calls[0][0][0], net.cos, net.sin)
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    with torch.no_grad():
        expected = outline.forward(*given, mask=mask), outline.forward(*given, scale=2.0)
        assert torch.equal(net.layers[0](*given, mask=mask), expected[0])
        assert torch.equal(net.layers[0](*given, scale=2.0), expected[1])
        net.layers[0](*given)
    used = [one.forward.used for one in outline.chains.values()]
    assert used == [1] * len(used)


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.kept = nn.Linear(4, 4), 0


class Branches(Part):
    def forward(self, x):
        return self.linear(x) if x.sum() > 0 else x.exp().sin()


class Assigns(Part):
    def forward(self, x):
        self.kept = x.exp().sin()
        return self.linear(self.kept)


class Makes(Part):
    def forward(self, x):
        return self.linear(x).exp().sin() * torch.ones(4)


class AddsInPlace(Part):
    def forward(self, x):
        y = self.linear(x)
        z = y.sin()
        y += 1.0
        return z.cos() * y


class ActsInPlace(AddsInPlace):
    def __init__(self):
        super().__init__()
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.linear(x)
        z = y.sin()
        return z.cos(), self.activation(y)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Branches, "depends on values or sizes of tensors"),
        (Assigns, "assigns attributes"),
        (Makes, "makes tensors that do not depend on its arguments"),
        (AddsInPlace, "in place"),
        (ActsInPlace, "in place"),
    ],
)
def test_a_forward_without_a_graph_has_no_chains(kind, reason):
    module = kind()
    with pytest.raises(ProblemError, match=reason):
        outline_module(module, CallForm({"x": describe(torch.ones(4))}))
    assert module.kept == 0


class Slices(Part):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(8, 4))

    def forward(self, x):
        return (self.linear(x) + self.table[: x.shape[0]]).exp().sin()


def test_chains_use_the_buffers_that_a_module_has_then():
    module, x = Slices(), torch.randn(4, 4)
    outline, chains = outline_module(module, CallForm({"x": describe(x)}))
    assert len(chains) == 1
    module.table.fill_(0.5)
    assert torch.equal(outline(x), module(x))


class TakesMore(Part):
    def forward(self, *x, pair, dtype, **rest):
        y = self.linear(x[0]).to(dtype).exp().sin() * pair[0]
        return y - pair[1] if "minus" in rest else y + rest["more"]


def test_arguments_in_containers_and_further_ones_may_have_chains():
    module, x = TakesMore(), torch.randn(4, 4)
    facts = describe(x)
    given = {"pair": (x, x), "dtype": torch.float32, "more": x}
    form = CallForm({"x_0": facts, "pair": (facts, facts), "dtype": torch.float32, "more": facts}, positional=1)
    outline, chains = outline_module(module, form)
    assert len(chains) == 1
    outline.chains["chain_0"].forward = lambda *args: torch.zeros(4, 4)
    assert not outline(x, **given).any()
    assert torch.equal(outline(x, **given, minus=True), module(x, **given, minus=True))  # by the module's forward


@dataclass
class Result(OrderedDict):
    y: torch.Tensor
    nothing: None = None

    def __post_init__(self):
        self["y"] = self.y


class Pair(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor


class Returns(Part):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        y = self.linear(x).exp().sin()
        return self.kind(y, self.linear(y)) if self.kind is Pair else self.kind(y=y)


def test_objects_that_a_graph_returns_keep_their_type():
    x = torch.randn(4, 4)
    for kind in (Result, Pair):
        outline, chains = outline_module(Returns(kind), CallForm({"x": describe(x)}))
        found, expected = outline(x), outline.module(x)
        assert type(found) is kind
        pairs = zip(*(one.values() if kind is Result else one for one in (found, expected)), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)
        assert torch.equal(
            found["y"] if kind is Result else found.low, expected["y"] if kind is Result else expected.low
        )
        assert (len(chains), outline.fails) == (1, False)
    with pytest.raises(ProblemError, match="it makes an object of type OrderedDict"):
        outline_module(Returns(OrderedDict), CallForm({"x": describe(x)}))


class Depends(Part):
    """The second chain needs the size of a result of the first."""

    def forward(self, x):
        y = x.exp().sin()
        return self.linear(y) + (y * y.shape[0]).cos() / y.numel()


def test_a_chain_that_needs_a_number_of_another_is_another():
    module, x = Depends(), torch.randn(4, 4)
    outline, chains = outline_module(module, CallForm({"x": describe(x)}))
    assert len(chains) == 2
    assert torch.equal(outline(x), module(x))
    form = CallForm({"x": (describe(x),), "flag": True}, positional=1)
    assert describe_arguments(form) == repr((1, {"x": ("Tensor float32",), "flag": "True"}))


class Asserts(Part):
    def forward(self, x):
        return self.linear(x.exp().sin() if isinstance(x, torch.Tensor) else x.exp().no_such_method())


def test_a_graph_that_fails_is_replaced_by_the_forward():
    module, x = Asserts(), torch.randn(4, 4)
    outline, _ = outline_module(module, CallForm({"x": describe(x)}))
    assert torch.equal(outline(x), module(x))
    assert outline.fails
