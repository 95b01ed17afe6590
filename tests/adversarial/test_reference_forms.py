"""References as people write them: each is right when it is evaluated as its own candidate."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self{init_arguments}):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}

def get_init_inputs():
    return {init_inputs}

TRAINING = True
SEEDED_CALLS = True
"""
X = "[torch.randn(32, 48)]"


def write(forward, inputs=X, *, arguments="x", init="pass", init_arguments="", init_inputs="[]"):
    return SOURCE.format(
        forward=forward.replace("\n", "\n        "), inputs=inputs, arguments=arguments, init=init,
        init_arguments=f", {init_arguments}" if init_arguments else "", init_inputs=init_inputs,
    )  # fmt: skip


FORMS = {
    "dict of tensors": write(
        "return d['a'] * d['b']", "[{'a': torch.randn(8, 9), 'b': torch.randn(9)}]", arguments="d"
    ),
    "dict with numbers as keys": write(
        "return d[0] * d[1]", "[{0: torch.randn(8, 9), 1: torch.randn(9)}]", arguments="d"
    ),
    "list of tensors": write("return torch.cat(x)", "[[torch.randn(8, 9), torch.randn(3, 9)]]"),
    "a tensor without dimensions": write("return x * s", "[torch.randn(8), torch.rand(())]", arguments="x, s"),
    "numbers and None": write("return x * s if n is None else x", "[torch.randn(8), 3, None]", arguments="x, s, n"),
    "integers": write("return self.e(x)", "[torch.randint(0, 50, (32, 7))]", init="self.e = nn.Embedding(50, 16)"),
    "requires grad": write("return x * 2", "[torch.randn(32, 48, requires_grad=True)]"),
    "inputs on a device of their own": write("return x * 2", "[torch.randn(32, 48, device='cpu')]"),
    "transposed inputs": write("return x * 2", "[torch.randn(32, 48).t()]"),
    "a view of the inputs": write("return x[:, :5]"),
    "rows that share memory": write("return x.mean(0, keepdim=True).expand(4, -1)"),
    "tuple in a tuple": write("return self.l(x)", "[torch.randn(5, 3, 48)]", init="self.l = nn.LSTM(48, 16)"),
    "numbers beside tensors": write("return {'y': x * 2, 'loss': x.sum(), 'n': 3, 'none': None}"),
    "whole numbers": write("return x.argmax(-1), x > 0"),
    "half precision": write(
        "return self.w(x)", "[torch.randn(32, 48).half()]", init="self.w = nn.Linear(48, 16).half()"
    ),
    "bfloat16 inside": write(
        "return F.linear(x.bfloat16(), self.w.weight.bfloat16())", init="self.w = nn.Linear(48, 16)"
    ),
    "cross entropy": write(
        "return F.cross_entropy(x, y)", "[torch.randn(32, 10), torch.randint(0, 10, (32,))]", arguments="x, y"
    ),
    "dropout in evaluation mode": write("return F.dropout(x, 0.5, training=False)"),
    "dropout": write("return self.d(x)", init="self.d = nn.Dropout(0.1)"),
    "dropout in attention": write(
        "return F.scaled_dot_product_attention(x, x, x, dropout_p=0.2)", "[torch.randn(2, 5, 8, 16)]"
    ),
    "a random first state": write(
        "return self.l(x, torch.randn(1, 3, 16))", "[torch.randn(5, 3, 48)]", init="self.l = nn.GRU(48, 16)"
    ),
    "running statistics": write("return self.b(x)", init="self.b = nn.BatchNorm1d(48)"),
    "a mask made at the first call": write(
        "if self.m is None: self.m = torch.tril(torch.ones(48, 48))\nreturn x @ self.m", init="self.m = None"
    ),
    "a tensor that is no buffer": write("return x * self.m", init="self.m = torch.randn(48)"),
    "a tensor that is no buffer beside weights": write(
        "return self.w(x) * self.m", init="self.m = torch.randn(16); self.w = nn.Linear(48, 16)"
    ),
    "numbers of random and numpy": write(
        "return x * self.m",
        init="import random, numpy; self.m = random.random() + torch.from_numpy(numpy.random.rand(48)).float()",
    ),
    "a default dtype that stays set": write(
        "return self.w(x) + torch.ones(16)",
        "[torch.randn(32, 48).half()]",
        init="torch.set_default_dtype(torch.half); self.w = nn.Linear(48, 16)",
    ),
    "a sparse buffer": write(
        "return torch.sparse.mm(self.a, x)",
        init="self.register_buffer('a', torch.relu(torch.randn(9, 32)).to_sparse())",
    ),
    "the least number of its dtype": write("return torch.where(x > 0, x, torch.finfo(x.dtype).min)"),
    "a conjugated view": write("return torch.complex(x, x * 2).conj()"),
    "weights given as a tensor": write(
        "return x * self.w", init="self.w = nn.Parameter(w)", init_arguments="w", init_inputs="[torch.ones(48)]"
    ),
    "sizes given as a dict": write(
        "return self.w(x)",
        init="self.w = nn.Linear(c[0], c['out'])",
        init_arguments="c",
        init_inputs="[{0: 48, 'out': 16}]",
    ),
}


def evaluate(bench, source, tmp_path):
    from harness.problems.discovery import read_problem

    path = tmp_path / "toy.py"
    path.write_text(source)
    return bench.evaluate(source.replace("class Model(", "class ModelNew("), read_problem(path, "mine"))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.quick(6)
def test_a_reference_is_right_by_its_own_measure(bench, tmp_path, name):
    evaluation = evaluate(bench, FORMS[name], tmp_path)
    assert evaluation.outcome == "correct", evaluation.message
    assert [finding.message for finding in evaluation.findings if finding.severity != "note"] == []


UNFIT = {
    "lazy weights": (write("return self.w(x)", init="self.w = nn.LazyLinear(16)"), "set the sizes in __init__"),
    "weights made at the first call": (
        write("if self.w is None: self.w = nn.Linear(48, 16)\nreturn self.w(x)", init="self.w = None"),
        "the first call made the weights w.bias, w.weight; make them in __init__",
    ),
    "a class as an argument": (
        write("return self.a(x)", init="self.a = a()", init_arguments="a", init_inputs="[nn.ReLU]"),
        "get_init_inputs(): a value of type type cannot be sent; return tensors",
    ),
    "a sparse input": (write("return x @ x", "[torch.eye(9).to_sparse()]"), "layout sparse_coo cannot be sent; return"),
    "a nested input": (write("return x", "[torch.nested.nested_tensor([torch.ones(2)])]"), "of layout nested cannot"),
    "a sparse output": (write("return x.to_sparse()"), "forward must return tensors, or nested lists"),
    "outputs of other shapes for other inputs": (write("return x[x > 0]"), "of what forward returns change with the"),
    "inputs of other shapes for another seed": (
        write("return x.sum(0)", "[torch.randn(int(torch.randint(10, 10_000, ())), 48)]"),
        "the shapes of what get_inputs() returns change with the seed",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_reference_that_no_candidate_can_follow_says_why(bench, tmp_path, name):
    source, message = UNFIT[name]
    evaluation = evaluate(bench, source, tmp_path)
    assert evaluation.outcome == "problem_error"
    assert evaluation.message.startswith("mine/toy.py: ")
    assert message in evaluation.message
