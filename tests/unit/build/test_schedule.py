import threading

from harness.build.schedule import GROWING_S, MemoryGate, available_bytes

GIB = 1 << 30


class Machine:
    def __init__(self, available):
        self.available = available
        self.now = 0.0

    def gate(self):
        return MemoryGate(lambda: self.available, lambda: self.now)


def starts_at_once(gate, need_bytes):
    """Whether a build of another thread is let in at once; it ends when this returns."""
    entered, leave = threading.Event(), threading.Event()

    def build():
        with gate.hold(need_bytes):
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=build)
    thread.start()
    let_in = entered.wait(0.2)
    leave.set()
    return let_in, thread


def test_one_build_runs_however_little_memory_there_is():
    with Machine(0).gate().hold(GIB):
        pass


def test_a_second_build_waits_until_there_is_room_for_it():
    machine = Machine(1.5 * GIB)
    gate = machine.gate()
    with gate.hold(GIB):
        let_in, thread = starts_at_once(gate, GIB)
    thread.join(5)
    assert not let_in
    assert not thread.is_alive()


def test_a_second_build_runs_beside_the_first_where_both_fit():
    gate = Machine(3 * GIB).gate()
    with gate.hold(GIB):
        let_in, thread = starts_at_once(gate, GIB)
    thread.join(5)
    assert let_in


def test_a_build_that_has_grown_is_not_counted_twice():
    machine = Machine(1.5 * GIB)
    gate = machine.gate()
    with gate.hold(GIB):
        machine.now = GROWING_S + 1
        let_in, thread = starts_at_once(gate, GIB)
    thread.join(5)
    assert let_in


def test_the_kernel_is_asked_for_available_memory():
    assert 0 < available_bytes() < 1 << 62
