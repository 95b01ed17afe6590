import multiprocessing
import os
import time

import pytest

from harness.protocol import Doorbell, Signal, make_doorbell
from harness.protocol.channel import MAX_ADDRESSES, SIZE_BYTES

PATIENCE_S = 60.0


def obey(descriptor, ready):
    """A worker: answers WAKE, and GO with two addresses, until REST."""
    bell = Doorbell(descriptor)
    ready.set()
    while (signal := bell.await_signal()) is not Signal.REST:
        if signal is Signal.GO:
            bell.answer_call([0x7F00_0000_0000, 2**64 - 1])
        else:
            bell.answer()
    bell.answer()


@pytest.fixture
def worker():
    """The evaluator's end of a doorbell that a process of its own obeys."""
    descriptor = make_doorbell()
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=obey, args=(descriptor, ready))
    process.start()
    assert ready.wait(PATIENCE_S)
    bell = Doorbell(descriptor)
    yield bell
    await_answer(bell, bell.ring(Signal.REST))
    process.join(PATIENCE_S)
    os.close(descriptor)
    assert process.exitcode == 0


def await_answer(bell, signal):
    deadline_s = time.monotonic() + PATIENCE_S
    while not bell.has_answered(signal, looks=100):
        assert time.monotonic() < deadline_s
        time.sleep(0)


def test_each_signal_is_answered_with_its_own_number(worker):
    first, second = worker.ring(Signal.WAKE), None
    await_answer(worker, first)
    second = worker.ring(Signal.WAKE)
    await_answer(worker, second)
    assert first != second
    assert not worker.has_answered(first, looks=10)


def test_the_answer_to_a_call_tells_where_its_outputs_lie(worker):
    await_answer(worker, worker.ring(Signal.GO))
    assert worker.read_call() == (0x7F00_0000_0000, 2**64 - 1)


def test_where_the_inputs_lie_comes_with_the_signal():
    descriptor = make_doorbell()
    ours, theirs = Doorbell(descriptor), Doorbell(descriptor)
    ours.ring(Signal.GO, 12_544, [7, 2**64 - 1])
    assert (theirs.await_signal(), theirs.read_shift(), theirs.read_words(2)) == (Signal.GO, 12_544, (7, 2**64 - 1))
    os.close(descriptor)


def test_more_outputs_than_fit_are_cut_off():
    descriptor = make_doorbell()
    ours, theirs = Doorbell(descriptor), Doorbell(descriptor)
    ours.ring(Signal.GO)
    assert theirs.await_signal() is Signal.GO
    theirs.answer_call(list(range(MAX_ADDRESSES + 5)))
    assert ours.read_call() == tuple(range(MAX_ADDRESSES))
    os.close(descriptor)


@pytest.mark.parametrize("size", [0, SIZE_BYTES // 2, 2 * SIZE_BYTES])
def test_the_page_cannot_be_resized_by_the_other_end(size):
    descriptor = make_doorbell()
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, size)
    os.close(descriptor)
