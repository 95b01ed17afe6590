"""Both ends know every kind of message."""

import pytest

from harness.protocol.messages import WorkerRequest
from harness.worker.program import Worker


@pytest.mark.parametrize("request_kind", list(WorkerRequest))
def test_a_worker_handles_every_request(request_kind):
    assert callable(getattr(Worker, f"do_{request_kind}"))


def test_every_handler_of_a_worker_has_a_request():
    handlers = {name.removeprefix("do_") for name in vars(Worker) if name.startswith("do_")}
    assert handlers == set(WorkerRequest)
