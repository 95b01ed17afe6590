"""Baselines of captured problems take as long as the modules that they replace."""

import torch
from captured_modules import groups_of, written

from harness.capture.trial_calls import load_text

ATTENTION = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x):
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


net = Block().eval()
with torch.no_grad():
    for step in range(50):
        net(torch.randn(2, 32, 64))
"""
SLOWER = """
class Slower(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            for _ in range(20):
                x = torch.sin(x)
                x = torch.asin(x)
        return torch.sin(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Slower()

    def forward(self, x):
        return self.part(x) + 1


net = Net().eval()
with torch.no_grad():
    for step in range(50):
        net(torch.rand(256, 256) / 2)
"""


def test_self_attention_is_written_as_the_operators_that_calls_have(capture):
    capture(ATTENTION, "--module", "Block")
    text = written()["block"].source
    assert "contiguous" not in text and "scaled_dot_product_attention" in text  # the slow path copies the three parts
    model = load_text(text)["Model"]()
    block = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
    block.load_state_dict({name: value.clone() for name, value in model.attention.state_dict().items()})
    x = torch.randn(2, 32, 64)
    y = torch.nn.functional.layer_norm(x, (64,), model.norm.weight, model.norm.bias)
    with torch.no_grad():
        torch.testing.assert_close(model(x), x + block(y, y, y, need_weights=False)[0])


def test_a_baseline_that_is_slower_than_its_module_is_named(capture):
    _, record, _ = capture(SLOWER, "--module", "Slower")
    group = groups_of(record)["Slower"]
    assert group["problem"] == "slower" and group["slowdown"] > 2
    (note,) = group["left_out"]
    assert "x the module's time" in note
