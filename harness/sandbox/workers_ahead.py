"""Starts GPU workers ahead and ends them in the background: contexts take 0.2 and 0.1 s. `finish` precedes timing."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

from harness.domain import HarnessError, WireError, WorkerLost, WorkerTimeout
from harness.protocol.channel import WorkerRequest
from harness.sandbox.devices import Device
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.gpu.recording import NotReplayable, Replayer, start_replayer
from harness.sandbox.memory_limits import limit_worker
from harness.sandbox.worker_process import WorkerLimits, WorkerProcess

WARM_TIMEOUT_S = 30.0
THREADS = 3  # more create no more contexts a second


class WorkersAhead:
    """Waiting workers have run no candidate. Without a GPU, they start when needed. `spawn` is thread-safe."""

    def __init__(self, forkserver: Forkserver, device: Device | None) -> None:
        self.forkserver = forkserver
        self._device = device if device is not None and device.has_contexts else None
        self._thread = ThreadPoolExecutor(THREADS, "workers")
        self._lock = threading.Lock()
        self._waiting: deque[Future[WorkerProcess | None]] = deque()
        self._replayers: deque[Future[Replayer | None]] = deque()
        self._used: deque[Replayer] = deque()  # by the candidate that is evaluated
        self._ending: list[Future[object]] = []

    def preload(self, names: Iterable[str]) -> None:
        """Ends waiting workers, which were forked before the preload."""
        if self.forkserver.preload(names):
            self.release()

    def forget_preloaded(self) -> None:
        if self.forkserver.has_preloaded:
            self.release()
            self.forkserver.close()

    def prepare(self, count: int, replayers: int = 0) -> None:
        while self._device is not None and len(self._waiting) < count:
            self._waiting.append(self._thread.submit(self._start, self._device))
        while self._device is not None and len(self._replayers) + len(self._used) < replayers:
            self._replayers.append(self._thread.submit(self._start_replayer, self._device))

    def take_replayer(self, *, is_parallel: bool) -> Replayer:
        """Waiting replayers are not for parallel work. Raises NotReplayable."""
        waiting = self._replayers.popleft().result() if self._replayers and not is_parallel else None
        if waiting is None:
            if self._device is None:
                raise HarnessError("replays need a GPU")
            waiting = start_replayer(self.forkserver, self._device, is_parallel=is_parallel)
        return waiting

    def end_replayer(self, replayer: Replayer) -> None:
        self._ending.append(self._thread.submit(replayer.end))

    @contextmanager
    def replayer(self, *, is_parallel: bool) -> Iterator[Replayer]:
        """A candidate's cases share replayers. Raises NotReplayable."""
        is_used = bool(self._used) and not is_parallel
        replayer = self._used.popleft() if is_used else self.take_replayer(is_parallel=is_parallel)
        try:
            yield replayer
        except BaseException:
            self.end_replayer(replayer)
            raise
        if is_parallel or not replayer.unload():
            self.end_replayer(replayer)
        else:
            self._used.append(replayer)

    def spawn(self, limits: WorkerLimits, *, ends_beside: bool) -> WorkerProcess:
        """Return a waiting worker or a new one. With `ends_beside`, leaving its context does not wait; see `finish`."""
        worker = self._take() or self.forkserver.spawn(limits)
        if ends_beside and self._device is not None:
            worker.end_with(lambda: self._ending.append(self._thread.submit(worker.end)))
        return worker

    def finish(self) -> None:
        wait(self._waiting)
        wait(self._replayers)
        while self._ending:
            self._ending.pop().result()

    def stop(self) -> None:
        while self._used:
            self.end_replayer(self._used.popleft())
        self._waiting = deque(one for one in self._waiting if not one.cancel())
        self._replayers = deque(one for one in self._replayers if not one.cancel())
        self.finish()

    @property
    def some_wait(self) -> bool:
        return bool(self._waiting or self._replayers)

    def release(self) -> None:
        self.stop()
        while (worker := self._take()) is not None:
            worker.end()
        while self._replayers:
            if (replayer := self._replayers.popleft().result()) is not None:
                replayer.end()

    def close(self) -> None:
        self.release()
        self._thread.shutdown()

    @contextmanager
    def stopped_at_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.stop()

    def _start(self, device: Device) -> WorkerProcess | None:
        try:
            worker = self.forkserver.spawn(limit_worker(device.torch_device, 0))
        except (HarnessError, OSError):  # OSError: the forkserver has just ended
            return None  # the next `spawn` starts one and raises
        return worker if _is_warm(worker, device) else None

    def _start_replayer(self, device: Device) -> Replayer | None:
        with suppress(HarnessError, NotReplayable, OSError):  # the next one is started, and raises, where it is used
            return start_replayer(self.forkserver, device, is_parallel=False)
        return None

    def _take(self) -> WorkerProcess | None:
        while self._device is not None:
            with self._lock:
                if not self._waiting:
                    break
                start = self._waiting.popleft()
            worker = start.result()
            if worker is not None and _is_warm(worker, self._device):
                return worker
        return None


def _is_warm(worker: WorkerProcess, device: Device) -> bool:
    """End the worker and return False if it fails to warm up, for example if another process took all memory."""
    with suppress(WorkerLost, WorkerTimeout, WireError):
        message = {"kind": WorkerRequest.WARM, "device": str(device.torch_device)}
        worker.line.send(message, timeout_s=WARM_TIMEOUT_S)
        answer, _ = worker.line.receive(timeout_s=WARM_TIMEOUT_S)
        if answer["kind"] == WorkerRequest.WARM:
            return True
    worker.end()
    return False
