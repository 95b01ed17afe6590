"""A real server in this process, with a scripted executor: evaluation takes no time, and every outcome can be had."""

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from harness.domain import Correctness, Evaluation, Outcome, Timing, Trial
from harness.executors.executor import DeviceFacts, DeviceStatus, ExecutorStatus

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

BROKEN = "reference.py: forward raised RuntimeError: boom"
REFERENCE = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, a):
        return a
def get_inputs():
    return [torch.randn(8)]
def get_init_inputs():
    return []
"""


class ScriptedExecutor:
    """Answers as the candidate's first line says: `# correct 2.0`, `# wrong_value`, `# raise`, `# problem_error` (the
    reference raises), `# wait` (until `release` is set). `languages` None: it has a device for all."""

    capacity = 8
    failure = ""
    lost = ()
    work = None
    languages = None
    device = "cpu"

    def __init__(self):
        self.evaluated = []
        self.release = threading.Event()
        self.closed = threading.Event()

    def devices(self, language):
        has_device = self.languages is None or language in self.languages
        return (DeviceFacts(name=self.device, chip="Scripted CPU"),) if has_device else ()

    def submit(self, task):
        future = Future()
        word, _, speedup = (task.candidate.source if task.candidate else "# no_code").splitlines()[0][2:].partition(" ")
        if word == "wait":
            threading.Thread(target=self._wait, args=(task, future), daemon=True).start()
        elif word == "raise":
            future.set_exception(RuntimeError("the device was lost"))
        else:
            self._answer(task, future, word, speedup)
        return future

    def _wait(self, task, future):
        while not self.release.wait(0.01):
            if self.closed.is_set():
                future.set_exception(RuntimeError("closed"))
                return
        self._answer(task, future, "wrong_value", "")

    def _answer(self, task, future, word, speedup):
        self.evaluated.append(task)
        evaluation = make_evaluation(task.on_device("cpu").subject, word, float(speedup) if speedup else None)
        future.set_result(replace(evaluation, work=self.work))

    def status(self):
        done = len(self.evaluated)
        devices = (DeviceStatus(name="cpu", waiting=0, running=0, done=done),)
        return ExecutorStatus(building=0, builds={}, devices=devices, lost=self.lost, failure=self.failure)

    def close(self):
        self.closed.set()


def make_evaluation(subject, outcome, speedup=None):
    timing = correctness = None
    if outcome == "correct":
        correctness = Correctness(trials=(Trial(distribution="as_given", passed=True),), weights="none")
    if speedup is not None:
        timing = Timing(
            baseline=subject.baseline, baseline_us=100.0, candidate_us=100.0 / speedup, speedup=speedup,
            speedup_low=speedup - 0.1, speedup_high=speedup + 0.1, verdict="faster", blocks=(), overhead_us=1.0,
        )  # fmt: skip
    environment = (("harness", "0.1.0"), ("torch", "2.9.0"), ("cpu", "Scripted CPU"))
    return Evaluation(
        subject=subject, outcome=Outcome(outcome), correctness=correctness,
        timing=timing, environment=environment, message=BROKEN if outcome == "problem_error" else "",
    )  # fmt: skip


@dataclass
class Answer:
    status: int
    body: object
    headers: object = field(repr=False)


@dataclass
class Server:
    """`get`, `post`, `delete` with JSON bodies."""

    url: str
    service: object
    executor: object
    token: str = ""

    def call(self, method, path, body=None, *, token=None, raw=None):
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        used = self.token if token is None else token
        if used:
            headers["Authorization"] = f"Bearer {used}"
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return _read(reply.status, reply)
        except urllib.error.HTTPError as error:
            with error:
                return _read(error.code, error)

    def await_state(self, task_id, state):
        for _ in range(6000):
            if self.get(f"/v1/evaluations/{task_id}").body.get("state") == state:
                return
            time.sleep(0.01)
        raise AssertionError(f"{task_id} was not {state} within a minute")

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.call("POST", path, body, **options)

    def delete(self, path, **options):
        return self.call("DELETE", path, **options)


def _read(status, reply):
    text = reply.read().decode()
    is_json = "json" in reply.headers.get("Content-Type", "")
    return Answer(status, json.loads(text) if is_json else text, reply.headers)


@contextlib.contextmanager
def run_service(settings, executor):
    from harness.service.server import make_server
    from harness.service.service import Service

    service = Service(settings, executor)
    server = make_server(service, "127.0.0.1", 0)
    server.config.timeout_graceful_shutdown = 1
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    token = next(iter(settings.tokens), "")
    try:
        yield Server(f"http://127.0.0.1:{port}", service, executor, token)
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def end_beside():
    """Ends services beside the next tests: uvicorn sleeps 0.1 to 0.2 s before it ends."""
    with ThreadPoolExecutor() as pool:
        ends = []
        yield lambda end: ends.append(pool.submit(end))
        for one in ends:
            one.result()


@pytest.fixture
def open_service(tmp_path, tiny_suite, end_beside):
    """Starts services; further arguments are settings."""
    from harness.service.settings import ServiceSettings

    stack = contextlib.ExitStack()

    def start(executor=None, **changes):
        settings = ServiceSettings(folder=tmp_path / "queue", problems_dir=tiny_suite.parent)
        return stack.enter_context(run_service(replace(settings, **changes), executor or ScriptedExecutor()))

    yield start
    end_beside(stack.close)


@pytest.fixture
def server(open_service):
    return open_service()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """For tests that change nothing in it."""
    from harness.service.settings import ServiceSettings

    folder = tmp_path_factory.mktemp("shared")
    (folder / "problems" / "tiny").mkdir(parents=True)
    (folder / "problems" / "tiny" / "add.py").write_text(REFERENCE)
    settings = ServiceSettings(folder=folder / "queue", problems_dir=folder / "problems")
    with run_service(settings, ScriptedExecutor()) as server:
        yield server


@pytest.fixture
def request_of():
    """A body for `/v1/evaluations`: the scripted outcome and other fields."""

    def make(script="correct 2.0", **changes):
        body = {"task_id": "t1", "candidate": f"# {script}\nx = 1\n", "problem": "add", "suite": "tiny"}
        return {name: value for name, value in (body | changes).items() if value is not None}

    return make


@pytest.fixture
def gym_request_of():
    """A body for `/evaluate`."""

    def make(script="correct 2.0", **changes):
        return {"task_id": "t1", "kernel_code": f"# {script}\nx = 1\n", "reference_code": REFERENCE} | changes

    return make
