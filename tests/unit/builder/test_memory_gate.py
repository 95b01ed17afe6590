import shutil
import subprocess
import sys
import threading

import pytest

from harness.builder.runner import GROWING_S, MemoryGate
from harness.hardware.host import available_memory_bytes

GIB = 1 << 30


class Machine:
    def __init__(self, available):
        self.available = available
        self.now = 0.0

    def gate(self):
        return MemoryGate(lambda: self.available, lambda: self.now)


def starts(gate, need_bytes, within_s):
    """Whether a build of another thread is let in, and that thread; the build ends when this returns."""
    entered, leave = threading.Event(), threading.Event()

    def build():
        with gate.hold(need_bytes):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=build)
    thread.start()
    let_in = entered.wait(within_s)
    leave.set()
    return let_in, thread


def test_one_build_runs_however_little_memory_there_is():
    with Machine(0).gate().hold(GIB):
        pass


def test_a_second_build_waits_until_there_is_room_for_it():
    machine = Machine(1.5 * GIB)
    gate = machine.gate()
    with gate.hold(GIB):
        let_in, thread = starts(gate, GIB, within_s=0.2)
    thread.join(60)
    assert not let_in
    assert not thread.is_alive()


def test_a_second_build_runs_beside_the_first_where_both_fit():
    gate = Machine(3 * GIB).gate()
    with gate.hold(GIB):
        let_in, thread = starts(gate, GIB, within_s=60)
    thread.join(60)
    assert let_in


def test_a_build_that_has_grown_is_not_counted_twice():
    machine = Machine(1.5 * GIB)
    gate = machine.gate()
    with gate.hold(GIB):
        machine.now = GROWING_S + 1
        let_in, thread = starts(gate, GIB, within_s=60)
    thread.join(60)
    assert let_in


# A second build of a process whose control group has 1 GiB left, or as much as the machine, while one runs.
SECOND_BUILD = """
import sys, threading
from harness.builder.runner import MemoryGate
gate = MemoryGate()
def build():
    with gate.hold(2 << 30):
        print("second", flush=True)
with gate.hold(1):
    second = threading.Thread(target=build)
    second.start()
    second.join(float(sys.argv[1]))
    print("first", flush=True)
second.join()
"""
IN_OTHER_GROUPS = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]


def write_groups(folder, limit_bytes):
    """What /sys/fs/cgroup shows, in both layouts: the top group has a limit, of which nothing is used."""
    for version, name, use in (
        ("", "memory.max", "memory.current"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        (folder / version).mkdir(parents=True, exist_ok=True)
        for file, value in ((name, limit_bytes), (use, 0), ("memory.stat", "anon 0")):
            (folder / version / file).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("limit_bytes", "wait_s", "order"), [(GIB, 1, ["first", "second"]), (1 << 50, 60, ["second", "first"])]
)
@pytest.mark.quick(1)
def test_second_build_waits_for_memory_in_the_control_group(tmp_path, limit_bytes, wait_s, order):
    write_groups(tmp_path, limit_bytes)
    mount = f"mount --bind {tmp_path} /sys/fs/cgroup"
    if (
        shutil.which("unshare") is None
        or subprocess.run([*IN_OTHER_GROUPS, mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs user namespaces, to show other control groups to a process")
    if available_memory_bytes(cgroup=tmp_path / "none") < 3 * GIB:
        pytest.skip("needs 3 GiB of free memory")
    command = [*IN_OTHER_GROUPS, f'{mount} && exec "$0" -c "$1" "$2"', sys.executable, SECOND_BUILD, str(wait_s)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert finished.stdout.split() == order
