"""The evaluator's side of a process that replays one recording. The process is not trusted: device code of a candidate
shares its address space, so another clock bounds its times and outputs are compared.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.domain import WireError, WorkerLost, WorkerTimeout
from harness.protocol.channel import MAX_DESCRIPTORS
from harness.protocol.messages import WorkerRequest
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.gpu.recording import NotReplayable, Recording
from harness.sandbox.worker_process import WorkerLimits, WorkerProcess

START_S, REPLAY_S = 60.0, 60.0
CONNECTIONS = 8  # for work in parallel: the driver's own default
Graph = Literal["call", "empty", "nothing"]
Clock = Literal["device", "host"]
Place = tuple[int, int]  # address, bytes


class Replayer:
    """Methods raise NotReplayable if the process failed. It replays recordings of one program, one after the other."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    def end(self) -> None:
        self._worker.end()

    def load(self, recording: Recording) -> None:
        pages = recording.pages.pages
        for first in range(0, len(pages), MAX_DESCRIPTORS):
            part = pages[first : first + MAX_DESCRIPTORS]
            self.ask(WorkerRequest.MAP_PAGES, [page[2] for page in part], pages=[page[:2] for page in part])
        self.ask(WorkerRequest.BUILD_GRAPH, recording.descriptors)

    def unload(self) -> bool:
        """Return whether another recording can be loaded."""
        return self._succeeds(lambda: self.ask(WorkerRequest.UNLOAD))

    def is_alive(self) -> bool:
        return self._succeeds(lambda: self.replay("empty"))

    def _succeeds(self, request: Callable[[], object]) -> bool:
        try:
            request()
        except NotReplayable:
            return False
        return True

    def replay(
        self, graph: Graph = "call", clock: Clock = "device", places: Sequence[Place] = ()
    ) -> tuple[float, list[str]]:
        """Return the time in us and the bytes of `places` in hexadecimal."""
        answer = self.ask(WorkerRequest.REPLAY, graph=graph, clock=clock, places=[list(one) for one in places])
        time_us, read = answer.get("time_us"), answer.get("read")
        if not isinstance(time_us, float) or not math.isfinite(time_us) or not isinstance(read, list):
            raise NotReplayable("the process that replays it gave an invalid answer")
        return time_us, [str(one) for one in read]

    def replay_in_row(self, count: int) -> int:
        """Replay the call `count` times without a wait between, and return `count`."""
        self.ask(WorkerRequest.REPLAY_IN_ROW, count=count)
        return count

    def ask(self, request: WorkerRequest, descriptors: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        try:
            self._worker.line.send({"kind": request, **fields}, descriptors, timeout_s=START_S)
            answer, _ = self._worker.line.receive(timeout_s=REPLAY_S)
        except (WorkerLost, WorkerTimeout, WireError) as error:
            raise NotReplayable(f"the process that replays it failed: {error}") from error
        if answer["kind"] != request:
            raise NotReplayable(f"its replay failed: {answer.get('message', answer['kind'])}"[:300])
        return answer


@dataclass(slots=True)
class KeptBaseline:
    """A baseline's recording and its replayers, shared by all candidates of a problem."""

    recording: Recording
    call_us: float | None = None  # of a whole call, in its worker
    replayers: deque[Replayer] = field(default_factory=deque)  # loaded; the oldest first

    def end_replayers(self) -> None:
        while self.replayers:
            self.replayers.popleft().end()

    def close(self) -> None:
        self.end_replayers()
        self.recording.close()


def start_replayer(forkserver: Forkserver, device: Device, *, is_parallel: bool) -> Replayer:
    """Opening the device takes half the time if not `is_parallel`. Raises NotReplayable or HarnessError."""
    replayer = Replayer(forkserver.spawn(WorkerLimits(memory_bytes=None)))
    index = device.torch_device.index or 0
    connections = CONNECTIONS if is_parallel else 1
    try:
        replayer.ask(WorkerRequest.OPEN_REPLAYER, device=index, cores=device.replayer_cores, connections=connections)
    except NotReplayable:
        replayer.end()
        raise
    return replayer
