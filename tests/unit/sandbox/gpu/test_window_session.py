"""A call in a window, with a simulated worker in this process's memory."""

import gc
import time
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.protocol import Signal, TensorSpec
from harness.sandbox.arena_layout import Region
from harness.sandbox.gpu import window as window_module
from harness.sandbox.gpu.window import WindowSession, shift_inputs
from harness.sandbox.worker_client import Called, PlacedInputs, WorkerClient
from harness.tensors import outputs

SHAPE = (512, 1024)
SPEC = TensorSpec(dtype="float32", shape=SHAPE, stride=(1024, 1))


class Worker:
    """Doubles its input into one of its output tensors. `late` rows are written when the outputs have been read."""

    arena_address, arena_span = 0, (0, 0)

    def __init__(self, late):
        self.outputs = [torch.zeros(SHAPE) for _ in range(3)]
        self.calls, self.reads, self.late = 0, [], late
        self.late_rows = 0
        self.delay_s = {"write": 0.0, "wake": 0.0, "call": 0.0, "reading": 0.0}

    def lay_out(self, inputs, state):
        self.inputs, self.given = inputs, state
        return PlacedInputs(tree={"t": 0}, specs=(SPEC,), tensors=tuple(inputs))

    def ring(self, kind, shift_bytes=0, seed=0):
        if kind is Signal.WAKE:
            time.sleep(self.delay_s["wake"])
        if kind in (Signal.GO, Signal.GO_AHEAD_OF_STREAMS):
            time.sleep(self.delay_s["call"])
            self.current = self.outputs[self.calls % len(self.outputs)]
            self.calls += 1
            done = self.inputs[0] * 2.0
            in_time = SHAPE[0] - self.late_rows
            self.current[:in_time] = done[:in_time]
            self.late[:] = [lambda: self.current.copy_(done)]

    def hold_state(self, state, own):
        pass

    def read_addresses(self):
        time.sleep(self.delay_s["reading"])
        return (self.current.data_ptr(),)

    def await_called(self):
        return Called(
            reported_us=1.0,
            at_ns=0,
            tree={"t": 0},
            specs=(SPEC,),
            devices=("cpu",),
            addresses=(self.current.data_ptr(),),
        )

    def inputs_unchanged(self, placed):
        return True

    def arm(self, placed, **settings):
        self.late.clear()

    def write(self, placed):
        time.sleep(self.delay_s["write"])

    def export_pages(self, address):
        return []


@pytest.fixture
def window(host_copies, monkeypatch):
    device, late = host_copies
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    for name in ("reset_persisting_lines", "flush_cache"):
        monkeypatch.setattr(type(device), name, lambda self: None, raising=False)
    worker = Worker(late)
    arena = SimpleNamespace(
        address=0, size_bytes=1 << 62, bytes_view=lambda offset, size: torch.zeros(size, dtype=torch.uint8)
    )
    footprint = SimpleNamespace(
        views=frozenset(),
        output=Region(offset=0, size_bytes=256),
        output_specs=(SPEC,),
        kept_calls=2,
        has_form=lambda called: True,
    )
    return WindowSession(worker, arena, footprint, device, keeps_on_host=True), worker, device


def call(session, device, **settings):
    inputs = (torch.randn(SHAPE),)
    return inputs[0] * 2.0, session.call(inputs, device, **settings)


def test_outputs_at_changing_addresses_are_read_from_where_they_are(window):
    session, _, device = window
    for number in range(9):
        expected, run = call(session, device)
        assert torch.equal(run.outputs.tensors[0], expected)
        assert session.saw_new_memory == (number == 0)


def test_rows_that_are_late_are_missing(window):
    session, worker, device = window
    call(session, device)
    worker.late_rows = 100
    expected, run = call(session, device)
    found = run.outputs.tensors[0]
    assert torch.equal(found[:-100], expected[:-100])
    assert not torch.equal(found[-100:], expected[-100:])


@pytest.mark.parametrize("late", ["call", "reading"])
@pytest.mark.quick(1)
def test_call_read_after_the_hold_of_streams_shows_nothing(window, monkeypatch, late):
    monkeypatch.setattr(window_module, "HELD_US", 1_000_000)
    session, worker, device = window
    call(session, device)
    expected, run = call(session, device, hold_streams=True)
    assert torch.equal(run.outputs.tensors[0], expected)
    assert not session.outlasted_hold
    worker.delay_s[late] = 1.1
    call(session, device, hold_streams=True)
    assert session.outlasted_hold
    call(session, device)
    assert not session.outlasted_hold


def test_samples_lack_late_rows(window, monkeypatch):
    monkeypatch.setattr(outputs, "LEAST_BYTES", 0)
    session, worker, device = window
    session.take_samples()
    for _ in range(3):
        expected, run = call(session, device)
        assert torch.equal(run.outputs.tensors[0], run.sample.take(0, expected))
    worker.late_rows = 100
    expected, run = call(session, device)
    assert not torch.equal(run.outputs.tensors[0], run.sample.take(0, expected))


def test_a_closed_session_maps_no_memory_of_its_worker(window, monkeypatch):
    class Pages:
        """Stands for mapped pages, which need a GPU."""

    session, _, device = window
    locate, mapped = session._memory.locate, weakref.WeakSet()

    def locate_in_pages(address, size_bytes):
        mapped.add(pages := Pages())
        return replace(locate(address, size_bytes), pages=pages)

    monkeypatch.setattr(session._memory, "locate", locate_in_pages)
    for _ in range(3):
        call(session, device)
    assert mapped
    session.close()
    gc.collect()
    assert not mapped


def test_times_of_a_window_add_up(window):
    session, _, device = window
    for _ in range(3):
        _, run = call(session, device)
    assert run.evaluator_us > run.call_us > 0


@pytest.mark.parametrize(("part", "is_of_call"), [("write", False), ("wake", False), ("call", True), ("reading", True)])
def test_no_time_after_the_first_input_is_written_is_left_out(window, part, is_of_call):
    session, worker, device = window
    call(session, device)
    worker.delay_s[part] = 0.1
    _, run = call(session, device)
    assert run.evaluator_us > 1e5
    assert (run.call_us > 1e5) == is_of_call


def test_state_is_given_to_one_call_together_with_its_inputs(window):
    session, worker, device = window
    session.state = {"mean": TensorSpec(dtype="float32", shape=(3,), stride=(1,))}
    session.hold_state({"mean": torch.zeros(3)})
    given = []
    for state in ({"mean": torch.ones(3)}, None):
        session.reset_state(state)
        for _ in range(2):
            call(session, device)
            given.append({name: tensor.tolist() for name, tensor in worker.given.items()})
    assert given == [{"mean": [1, 1, 1]}, {}, {"mean": [0, 0, 0]}, {}]


def test_state_lies_behind_the_inputs_and_moves_with_them():
    written = {}

    class Arena:
        def bytes_view(self, offset, size_bytes):
            return written.setdefault(offset, torch.zeros(size_bytes, dtype=torch.uint8))

    client = WorkerClient(None, Arena(), None)
    state = {"mean": torch.arange(3.0), "steps": torch.tensor(5), "variance": torch.arange(4.0).view(2, 2)}
    placed = client.lay_out((torch.randn(100),), state)
    assert [(spec.dtype, spec.shape, spec.offset) for spec in placed.specs] == [
        ("float32", (100,), 0), ("float32", (7,), 512), ("int64", (1,), 768),
    ]  # fmt: skip
    assert placed.state_tensors == 2
    client.write(shift_inputs(placed, 1024))
    assert sorted(written) == [1024, 1536, 1792]
    assert written[1536].view(torch.float32).tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert client.lay_out((torch.randn(100),)).state_tensors == 0
