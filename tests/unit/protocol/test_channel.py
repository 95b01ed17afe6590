import json
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import WireError, WorkerLost, WorkerTimeout
from harness.protocol import GO, Channel, make_pair

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def ends():
    ours, theirs = make_pair()
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def receiver(ends):
    return Channel(ends[0], max_body_bytes=4096)


def frame(body, descriptors=0):
    return struct.pack(">II", len(body), descriptors) + body


@given(content=st.dictionaries(TEXTS, VALUES, max_size=5))
def test_any_message_arrives_as_it_was_sent(content):
    ours, theirs = make_pair()
    with ours, theirs:
        message = {**content, "kind": "call"}
        Channel(ours).send(message, timeout_s=30)
        assert Channel(theirs).receive(timeout_s=30) == (message, [])


def test_a_message_larger_than_the_sockets_buffer_arrives(ends):
    message = {"kind": "big", "text": "é" * 3_000_000}
    sender = threading.Thread(target=Channel(ends[0]).send, args=(message,), kwargs={"timeout_s": 20})
    sender.start()
    assert Channel(ends[1]).receive(timeout_s=30)[0] == message
    sender.join()


def test_descriptors_arrive_with_their_message(ends):
    read_end, write_end = os.pipe()
    Channel(ends[0]).send({"kind": "x"}, (write_end, read_end), timeout_s=30)
    message, descriptors = Channel(ends[1]).receive(timeout_s=30)
    assert message == {"kind": "x"}
    os.write(descriptors[0], b"through")
    assert os.read(read_end, 20) == b"through"
    for descriptor in (read_end, write_end, *descriptors):
        os.close(descriptor)


def test_half_a_surrogate_pair_is_replaced_when_sent(ends):
    Channel(ends[0]).send({"kind": "failed", "message": "bad \ud800 text"}, timeout_s=30)
    assert Channel(ends[1]).receive(timeout_s=30)[0]["message"] == "bad ? text"


@pytest.mark.parametrize("text", [r"\ud800", r"\\\ud8ff", r"\uDFFF and on"])
def test_half_a_surrogate_pair_is_refused_when_received(text, ends, receiver):
    ends[1].sendall(frame(b'{"kind": "x", "text": "' + text.encode() + b'"}'))
    with pytest.raises(WireError, match="surrogate"):
        receiver.receive(timeout_s=30)


def test_a_text_that_only_spells_an_escape_is_taken(ends, receiver):
    ends[1].sendall(frame(json.dumps({"kind": "x", "text": r"\ud800"}).encode()))
    assert receiver.receive(timeout_s=30)[0]["text"] == r"\ud800"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 2000, "not JSON"),
        (b"1" * 4090, "not an object with a kind"),
        (b"null", "not an object with a kind"),
        (b"[]", "not an object with a kind"),
        (b"{}", "not an object with a kind"),
        (b'{"kind": 3}', "not an object with a kind"),
    ],
)
def test_a_body_that_is_no_message_is_refused(body, words, ends, receiver):
    ends[1].sendall(frame(body))
    with pytest.raises(WireError, match=words):
        receiver.receive(timeout_s=30)


def test_an_announced_length_over_the_limit_is_refused_unread(ends, receiver):
    ends[1].sendall(struct.pack(">II", 4097, 0))
    with pytest.raises(WireError, match="4097 bytes exceeds the limit of 4096"):
        receiver.receive(timeout_s=30)


def test_descriptors_that_were_announced_and_did_not_come_are_noticed(ends, receiver):
    ends[1].sendall(frame(b'{"kind": "x"}', descriptors=1))
    with pytest.raises(WireError, match="expected 1 descriptors, received 0"):
        receiver.receive(timeout_s=30)


def test_descriptors_of_a_broken_message_are_closed(ends, receiver):
    read_end, write_end = os.pipe()
    socket.send_fds(ends[1], [frame(b"junk", descriptors=1)], [write_end])
    os.close(write_end)
    with pytest.raises(WireError):
        receiver.receive(timeout_s=30)
    assert os.read(read_end, 1) == b""  # nobody holds the other end any more
    os.close(read_end)


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", struct.pack(">II", 10, 0) + b'{"ki'])
def test_a_line_that_ends_is_a_lost_worker(sent, ends, receiver):
    ends[1].sendall(sent)
    ends[1].close()
    with pytest.raises(WorkerLost):
        receiver.receive(timeout_s=30)


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", struct.pack(">II", 10, 0) + b'{"ki'])
def test_a_line_that_falls_silent_is_a_timeout(sent, ends, receiver):
    ends[1].sendall(sent)
    with pytest.raises(WorkerTimeout):
        receiver.receive(timeout_s=0.05)


@pytest.mark.parametrize("after_s", [0.002, 0.05])
def test_message_that_arrives_during_a_wait_is_received(after_s, ends, receiver):
    sender = Channel(ends[1])
    threading.Timer(after_s, sender.send, ({"kind": "x"},)).start()
    assert receiver.receive(timeout_s=30) == ({"kind": "x"}, [])
    threading.Timer(after_s, sender.send_signal, (GO,)).start()
    assert receiver.await_signal() == GO


def test_a_signal_awaited_on_a_closed_line_is_a_lost_worker(ends, receiver):
    ends[1].close()
    with pytest.raises(WorkerLost):
        receiver.await_signal()


def test_a_reader_that_does_not_read_is_a_timeout(ends):
    with pytest.raises(WorkerTimeout, match="did not read"):
        Channel(ends[0]).send({"kind": "x", "text": "x" * 5_000_000}, timeout_s=0.05)


def test_sending_to_a_closed_line_is_a_lost_worker(ends):
    ends[1].close()
    with pytest.raises(WorkerLost):
        Channel(ends[0]).send({"kind": "x"}, timeout_s=30)


@settings(max_examples=100)
@given(noise=st.binary(max_size=300))
def test_noise_never_raises_anything_but_the_three_errors(noise):
    ours, theirs = make_pair()
    with ours, theirs:
        theirs.sendall(noise)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises((WireError, WorkerLost, WorkerTimeout)):
            for _ in range(100):
                Channel(ours, max_body_bytes=4096).receive(timeout_s=30)


def count_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_descriptors_that_come_with_half_a_header_are_closed(ends):
    before = count_descriptors()
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
    socket.send_fds(ends[1], [b"\0\0\0"], descriptors)
    ends[1].shutdown(socket.SHUT_WR)
    for descriptor in descriptors:
        os.close(descriptor)
    with pytest.raises(WorkerLost):
        Channel(ends[0]).receive(timeout_s=5.0)
    assert count_descriptors() == before


def test_a_line_beyond_the_first_thousand_descriptors_can_be_watched(ends):
    high = os.dup2(ends[0].fileno(), 2000)
    with socket.socket(fileno=high) as far:
        channel = Channel(far)
        assert not channel.is_readable()
        ends[1].sendall(b"x")
        assert channel.is_readable()
