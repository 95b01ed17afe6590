"""A worker on a GPU that exists only as made-up times and computed outputs."""

import random
from dataclasses import replace

from harness.domain import Problem
from harness.evaluation.correctness.reference import prepare_reference
from harness.problems.loading import load_problem
from harness.protocol.tensor_layout import TensorSpec
from harness.sandbox.devices import CpuDevice
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import Run
from harness.sandbox.worker_client import Called
from harness.tensors.outputs import FlatOutputs

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.exp()


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""
WRITTEN_US, SCATTER_US = 120.0, 4.0
SPEC = TensorSpec(dtype="float32", shape=(8, 8), stride=(8, 1))


class SimulatedGpu(CpuDevice):
    replays_calls = True


class SimulatedSession(WindowSession):
    """A worker that takes `take_us(inputs)` a call, of which `ahead_us` while its inputs are written."""

    def __init__(self, take_us, *, spoil=lambda outputs: outputs, ahead_us=0.0):
        self.take_us, self.spoil, self.ahead_us, self.source = take_us, spoil, ahead_us, random.Random(7)
        self.calls, self.saw_new_memory = 0, False

    def reset_state(self, given=None):
        pass

    def collect_garbage(self):
        pass

    def call(self, inputs, device, *, look=True):
        self.calls += 1
        time_us = self.take_us(inputs[0]) + abs(self.source.gauss(0, SCATTER_US))
        outputs = FlatOutputs(tree={"t": 0}, tensors=(self.spoil(inputs[0].exp()),))
        called = Called(reported_us=1.0, at_ns=0, tree=outputs.tree, specs=(SPEC,), devices=("cpu",), addresses=(0,))
        call_us = time_us - self.ahead_us
        return Run(outputs=outputs, called=called, call_us=call_us, evaluator_us=call_us + WRITTEN_US, taken=True)


def make_reference():
    plain = prepare_reference(load_problem(Problem(name="p", suite="s", source=SOURCE), "full"), CpuDevice(), 1, 2)
    return replace(plain, device=SimulatedGpu())
