"""Both ends know every kind of message."""

import pytest

from harness.protocol.channel import WorkerRequest
from harness.worker.program import Worker
from harness.worker.recorder.replayer import ReplayServer


@pytest.mark.parametrize("request_kind", list(WorkerRequest))
def test_a_worker_or_its_replay_server_handles_every_request(request_kind):
    assert sum(callable(getattr(kind, f"do_{request_kind}", None)) for kind in (Worker, ReplayServer)) == 1


def test_every_handler_of_a_worker_has_a_request():
    names = (*vars(Worker), *vars(ReplayServer))
    assert {name.removeprefix("do_") for name in names if name.startswith("do_")} == set(WorkerRequest)
