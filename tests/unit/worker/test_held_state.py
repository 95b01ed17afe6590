"""State that the evaluator packs and the worker copies into the module."""

import threading

import pytest
import torch
from torch import nn

from harness.protocol import Doorbell, Signal, make_doorbell
from harness.sandbox.worker_client import describe
from harness.tensors.values import pack_by_dtype
from harness.worker.memory import HeldState, Window


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(3))
        self.register_buffer("count", torch.tensor([7, 8]))
        self.register_buffer("turned", torch.randn(5, 3).t())
        self.weight = nn.Parameter(torch.randn(2, 3))


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(6))
        self.register_buffer("mask", torch.tensor([[True], [False]]))
        self.register_buffer("scale", torch.randn(()))
        self.register_buffer("brain", torch.randn(4).bfloat16())
        self.register_buffer("tiny", torch.randn(3).to(torch.float8_e4m3fn))
        self.register_buffer("slice", torch.randn(10, 4)[2:5, 1:3])
        self.register_buffer("wave", torch.randn(3, dtype=torch.complex64))
        self.inner = Inner()


def hold(model):
    state = model.state_dict()
    return HeldState(model, [(name, name, describe(tensor)) for name, tensor in state.items()])


def load(held, given):
    with torch.no_grad():
        held.load(held.split(pack_by_dtype(list(given.values()))))


def test_packed_state_of_all_forms_arrives_in_the_same_tensors():
    model, other = Module(), Module()
    held, before = hold(model), dict(model.state_dict())
    given = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    assert len(pack_by_dtype(list(given.values()))) == len({tensor.dtype for tensor in given.values()})
    load(held, given)
    for name, tensor in model.state_dict().items():
        assert (tensor.data_ptr(), tensor.stride()) == (before[name].data_ptr(), before[name].stride())
        assert torch.equal(*(one.reshape(-1).view(torch.uint8) for one in (tensor, given[name])))


def test_no_state_is_written_where_none_is_given():
    model = Module()
    held, before = hold(model), model.mean.clone()
    load(held, {})
    assert torch.equal(model.mean, before)


def test_state_is_written_where_the_module_has_it_now():
    model = Module()
    held = hold(model)
    model.mean = torch.zeros(6)
    load(held, {name: tensor.clone() for name, tensor in Module().state_dict().items()})
    assert model.mean.count_nonzero() == 6


def test_copies_of_the_state_do_not_change_later():
    model = Module()
    held = hold(model)
    (mean, *_), expected = held.copy(), model.mean.clone()
    model.mean.zero_()
    assert torch.equal(mean, expected)


@pytest.fixture
def bell(monkeypatch):
    """The evaluator's end; the worker's is in another thread."""
    monkeypatch.setattr(torch._C, "_cuda_synchronize", lambda: None, raising=False)
    return make_doorbell()


def test_the_state_of_a_call_in_a_window_is_written_after_go(bell):
    model, given = nn.Module(), torch.arange(6.0)
    model.register_buffer("mean", torch.zeros(6))
    held = hold(model)
    evaluator, seen = Doorbell(bell), []

    def place_inputs(bell):
        seen.append((bell.read_shift(), model.mean.clone()))
        return (torch.ones(6),), held.split([given])

    window = Window(bell, torch.device("cpu"))
    calls = []
    worker = threading.Thread(
        target=lambda: calls.append(window.await_call(lambda x: x + model.mean, place_inputs, held))
    )
    with torch.no_grad():
        worker.start()
        for kind, shift_bytes in ((Signal.WAKE, 0), (Signal.GO, 512)):
            signal = evaluator.ring(kind, shift_bytes)
            while not evaluator.has_answered(signal, looks=1000):
                pass
        worker.join()
    assert [shift for shift, _ in seen] == [0, 512]
    assert all(mean.count_nonzero() == 0 for _, mean in seen)
    (call,) = calls
    assert torch.equal(call.tensors[0], given + 1)
    assert torch.equal(call.state[0], given)
