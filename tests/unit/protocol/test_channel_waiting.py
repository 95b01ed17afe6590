"""What is done while a message is waited for."""

import threading
import time

import pytest

from harness.domain import WireError, WorkerTimeout
from harness.protocol import Channel, make_pair


@pytest.fixture
def line():
    ours, theirs = map(Channel, make_pair())
    yield ours, theirs
    ours.close()
    theirs.close()


class Stop(Exception):
    pass


def stop():
    raise Stop


def test_a_message_that_is_there_is_taken_without_looking_around(line):
    ours, theirs = line
    theirs.send({"kind": "x"})
    assert ours.receive(timeout_s=30.0, while_waiting=stop)[0] == {"kind": "x"}


def test_complete_message_is_announced_once_before_it_is_read(line):
    ours, theirs = line
    theirs.send({"kind": "x"})
    arrived = []
    assert ours.receive(timeout_s=30.0, on_arrival=lambda: arrived.append(1))[0] == {"kind": "x"}
    theirs.send_signal((4).to_bytes(4, "big") + bytes(4) + b"junk")
    with pytest.raises(WireError):
        ours.receive(timeout_s=30.0, on_arrival=lambda: arrived.append(2))
    assert arrived == [1, 2]


def test_looking_around_can_end_the_waiting(line):
    ours, _ = line
    with pytest.raises(Stop):
        ours.receive(timeout_s=30.0, while_waiting=stop)


def test_looking_around_goes_on_until_the_time_is_over(line):
    ours, _ = line
    looks = []
    with pytest.raises(WorkerTimeout):
        ours.receive(timeout_s=1.0, while_waiting=lambda: looks.append(1))
    assert 2 <= len(looks) <= 20


def test_a_message_that_trickles_in_does_not_keep_anyone_from_looking(line):
    ours, theirs = line
    frame = b"\0\0\0\x0c\0\0\0\0" + b'{"kind":"x"}'
    looks = []

    def trickle():
        for byte in frame:
            theirs.send_signal(bytes([byte]))
            time.sleep(0.02)

    sender = threading.Thread(target=trickle)
    sender.start()
    assert ours.receive(timeout_s=30.0, while_waiting=lambda: looks.append(1))[0] == {"kind": "x"}
    sender.join()
    assert looks
