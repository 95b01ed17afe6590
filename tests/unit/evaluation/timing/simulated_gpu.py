"""A worker on a GPU that exists only as made-up times and computed outputs."""

import random
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import torch

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
    """A worker that takes `take_us(inputs)` a call: `ahead_us` of it while its inputs are written, and `woken_us` while
    it is woken.
    """

    def __init__(self, take_us, *, spoil=lambda outputs: outputs, ahead_us=0.0, woken_us=0.0):
        self.take_us, self.spoil, self.ahead_us, self.woken_us = take_us, spoil, ahead_us, woken_us
        self.source = random.Random(7)
        self.calls, self.saw_new_memory = 0, False

    def reset_state(self, given=None):
        pass

    def collect_garbage(self):
        pass

    def call(self, inputs, device, *, look=True):
        self.calls += 1
        time_us = self.take_us(inputs[0]) + abs(self.source.gauss(0, SCATTER_US))
        call_us = time_us - self.ahead_us - self.woken_us
        window_us = WRITTEN_US + self.woken_us + call_us
        return make_run(self.spoil(inputs[0].exp()), call_us=call_us, evaluator_us=window_us)


CALLED = Called(reported_us=1.0, at_ns=0, tree={"t": 0}, specs=(SPEC,), devices=("cpu",), addresses=(0,))


def make_run(output, **times):
    return Run(outputs=FlatOutputs(tree={"t": 0}, tensors=(output,)), called=CALLED, taken=True, **times)


class SimulatedRecording:
    """Work that takes `time_us` a replay."""

    is_parallel, reads_back, own_bytes, called, functions = False, False, 0, CALLED, ()

    def __init__(self, time_us):
        self.time_us, self.replays = time_us, 0
        self.client = SimpleNamespace(lay_out=lambda inputs: inputs)

    def end_worker(self):
        pass

    def list_functions(self):
        return []

    def write_inputs(self, inputs, state):
        self.output = inputs[0].exp()

    def replay_in(self, process):
        """`process` has the variables of the code."""
        self.replays += 1

    def describe_run(self, inputs):
        return make_run(self.output)

    def view_outputs(self):
        return [self.output.view(-1).view(torch.uint8)]

    def view_memory(self):
        return [(0, self.output.view(-1).view(torch.uint8))]

    def restored(self):
        return nullcontext()

    def list_given(self, *, with_inputs):
        return []

    def read(self, address, size_bytes):
        return self.output.numpy().tobytes()[address : address + size_bytes]


class SimulatedReplayer:
    def load(self, recording):
        self.recording, self.variables = recording, {}

    def replay(self, graph="call", clock="device", places=()):
        if graph != "call":
            return 1.0, []
        self.recording.replay_in(self)
        return self.recording.time_us + 1.0, [self.recording.read(*place).hex() for place in places]

    def is_alive(self):
        return True

    def end(self):
        pass


class SimulatedAhead:
    """Counts the replayers that were taken."""

    forkserver = SimpleNamespace(unrecordable="")

    def __init__(self):
        self.taken = 0

    def finish(self):
        pass

    def take_replayer(self, *, is_parallel):
        self.taken += 1
        return SimulatedReplayer()

    def end_replayer(self, replayer):
        pass

    @contextmanager
    def replayer(self, *, is_parallel):
        yield self.take_replayer(is_parallel=is_parallel)


def make_reference(**settings):
    problem = Problem(name="p", suite="s", source=SOURCE, **settings)
    plain = prepare_reference(load_problem(problem, "full"), CpuDevice(), 1, 2)
    return replace(plain, device=SimulatedGpu())
