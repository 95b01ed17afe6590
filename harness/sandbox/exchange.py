"""Exchanges requests and answers with one worker. Failures, timeouts and invalid answers raise CandidateFailure."""

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from harness.builder.fast.crash_stack import NATIVE_STACK, name_native_function, shorten_output
from harness.domain import (
    AnswerBuild,
    BuildRequest,
    BuildResult,
    CandidateFailure,
    Finding,
    HarnessError,
    Outcome,
    WireError,
    WorkerLost,
    WorkerTimeout,
)
from harness.domain.evaluation import MAX_MESSAGE
from harness.domain.options import TimeLimits
from harness.domain.records import make_value
from harness.protocol.channel import BUILT, WorkerReply, WorkerRequest
from harness.protocol.descriptors import close_all
from harness.protocol.process_tree import name_signal
from harness.sandbox.devices import SharedArena
from harness.sandbox.worker_process import WorkerProcess


def explain_failure(answer: dict[str, Any], failure: Outcome) -> CandidateFailure:
    if answer.get("wrong_outputs") is True:
        return CandidateFailure(Outcome.WRONG_SHAPE, str(answer.get("message"))[:MAX_MESSAGE])
    outcome = Outcome.OUT_OF_MEMORY if answer.get("out_of_memory") is True else failure
    message = f"{answer.get('error')}: {answer.get('message')}"[:4000]
    finding = Finding(
        check="exception", severity="fatal", message=message[:MAX_MESSAGE], evidence=str(answer.get("traceback"))[:8000]
    )
    return CandidateFailure(outcome, message, (finding,))


FATAL_ERROR = "Fatal Python error: "  # begins the stack that faulthandler prints
_CANDIDATE_FRAME = re.compile(r'File "[^"\n]*candidate[^"\n]*", line (\d+) in (\S+)')
STACK_GRACE_S = 0.5  # to print a stack
EXIT_GRACE_S = 2.0  # after a worker closed its connection: its exit status says why
BETWEEN_CALLS_S = 0.2  # memory is checked more often during a long call

Expected = WorkerRequest | WorkerReply
# Requests and replies of other names belong to these steps.
STEPS: dict[Expected, str] = {
    WorkerRequest.SETTLE: "start",
    **dict.fromkeys((WorkerRequest.WINDOW, WorkerRequest.STORE), "call"),
    **dict.fromkeys((WorkerReply.ARMED, WorkerReply.DISARMED, WorkerReply.CALLED), "call"),
}
TIMEOUTS = {
    "start": "the program was not imported within {:g} s (--load-timeout)",
    "construct": "the model was not constructed within {:g} s (--load-timeout)",
    "call": "forward() did not return within {:g} s (--call-timeout)",
    "first call": "the first call of forward() did not return within {:g} s (--first-call-timeout; --call-timeout "
    "if the program does not compile in its worker)",
}


class Exchange:
    """`answer_build` None marks a trusted program, whose failures are HarnessErrors."""

    def __init__(
        self, worker: WorkerProcess, arena: SharedArena, answer_build: AnswerBuild | None, limits: TimeLimits
    ) -> None:
        self.limits = limits
        self._worker = worker
        self._arena = arena
        self._builds = None if answer_build is None else BuildRequests(worker, answer_build)
        self.arrived_ns = 0  # of the last answer, before parsing
        self._has_called = False  # a call has returned

    @property
    def call_s(self) -> float:
        """The limit of the next call."""
        return self.limits.call_s if self._has_called else self.limits.first_call_s

    def ask(
        self,
        request: WorkerRequest,
        *,
        timeout_s: float | None = None,
        expected: WorkerReply | None = None,
        failure: Outcome = Outcome.RUNTIME_ERROR,
        descriptors: tuple[int, ...] = (),
        **fields: Any,
    ) -> dict[str, Any]:
        """Without `timeout_s` the limit of a call applies. The answer has the request's kind, or the `expected` one."""
        self.tell(request, timeout_s=timeout_s, failure=failure, descriptors=descriptors, **fields)
        return self.hear(expected or request, timeout_s=timeout_s, failure=failure)

    def tell(
        self,
        request: WorkerRequest,
        *,
        timeout_s: float | None = None,
        failure: Outcome = Outcome.RUNTIME_ERROR,
        descriptors: tuple[int, ...] = (),
        **fields: Any,
    ) -> None:
        timeout_s = timeout_s or self.limits.call_s
        with self.explaining(request, timeout_s, failure):
            self.watch_memory(BETWEEN_CALLS_S)
            self._arena.synchronize()  # the evaluator's own reads and writes end before the worker continues
            self._worker.line.send({"kind": request, **fields}, descriptors, timeout_s=timeout_s)

    def signal(self, signal: bytes, expected: WorkerReply, timeout_s: float) -> None:
        with self.explaining(expected, timeout_s):
            self._worker.line.send_signal(signal, timeout_s=timeout_s)

    def hear(
        self,
        expected: Expected,
        *,
        timeout_s: float | None = None,
        failure: Outcome = Outcome.RUNTIME_ERROR,
        stop: bool = False,
    ) -> dict[str, Any]:
        timeout_s = timeout_s or self.limits.call_s
        with self.explaining(expected, timeout_s, failure):
            answer = self._await_answer(timeout_s, stop=stop)
            require_kind(answer, expected, failure)
            return answer

    @contextmanager
    def explaining(
        self, expected: Expected, timeout_s: float, failure: Outcome = Outcome.RUNTIME_ERROR
    ) -> Iterator[None]:
        """Raise errors as CandidateFailure, or as HarnessError for a trusted program."""
        try:
            with self._reporting_first_call(expected):
                yield
            return
        except CandidateFailure as error:
            raised, cause = error, error.__cause__
        except WorkerTimeout as error:
            self._worker.print_stack()
            self._worker.end(grace_s=STACK_GRACE_S)
            step = "first call" if self._is_first_call(expected) else _name_step(expected)
            message = TIMEOUTS.get(step, f"no answer to {step} within {{:g}} s").format(timeout_s)
            raised, cause = CandidateFailure(Outcome.TIMEOUT, f"{message}{self._read_stacks()[0]}"), error
        except WorkerLost as error:
            raised, cause = self._explain_loss(_name_step(expected), failure), error
        except WireError as error:
            raised, cause = CandidateFailure.of_protocol(str(error)), error
        if self._builds is None:
            raise HarnessError(f"the baseline failed: {raised.message}") from raised
        raise raised from cause

    def receive(self, timeout_s: float, *, stop: bool = False) -> dict[str, Any]:
        def on_arrival() -> None:
            self.arrived_ns = time.monotonic_ns()
            if stop:
                self._worker.stop_at_once()

        answer, descriptors = self._worker.line.receive(
            timeout_s=timeout_s, while_waiting=self.watch_memory, on_arrival=on_arrival
        )
        close_all(descriptors)
        self._has_called |= answer["kind"] == WorkerReply.CALLED
        return answer

    def build(self, request: dict[str, Any]) -> None:
        if self._builds is None:
            raise HarnessError("the baseline requested the build of an extension; a reference must be plain PyTorch")
        self._builds.answer(request)

    def watch_memory(self, every_s: float = 0.0) -> None:
        overuse = self._worker.find_overuse(self._arena.descriptor, every_s)
        if overuse is not None:
            self._worker.end()
            raise CandidateFailure(Outcome.OUT_OF_MEMORY, overuse)

    def _is_first_call(self, expected: Expected) -> bool:
        return expected is WorkerReply.CALLED and not self._has_called

    @contextmanager
    def _reporting_first_call(self, expected: Expected) -> Iterator[None]:
        if self._builds is None or not self._is_first_call(expected):
            yield
            return
        self._worker.server.report_first_call(True)
        try:
            yield
        finally:
            self._worker.server.report_first_call(False)

    def _await_answer(self, timeout_s: float, *, stop: bool) -> dict[str, Any]:
        """Handles build requests, whose time does not count."""
        remaining_s = timeout_s
        while True:
            began_s = time.monotonic()
            answer = self.receive(remaining_s, stop=stop)
            if answer["kind"] != WorkerReply.BUILD:
                return answer
            remaining_s = max(remaining_s - (time.monotonic() - began_s), 1.0)
            if stop:
                self._worker.resume_at_once()
            self.build(answer)

    def _read_stacks(self) -> tuple[str, str]:
        """Return where the candidate was when it ended, and what it had printed before."""
        text = self._worker.printed()
        printed, _, dump = text.partition(NATIVE_STACK)[0].partition(FATAL_ERROR)
        frame, function = _CANDIDATE_FRAME.search(dump or text), name_native_function(text)
        where = f", in function {function}" if function else ""
        return f"{where}, in line {frame[1]} of the candidate ({frame[2]})" if frame else where, printed

    def _explain_loss(self, command: str, failure: Outcome) -> CandidateFailure:
        status = self._worker.end(grace_s=EXIT_GRACE_S)
        where, printed = self._read_stacks()
        output = f"{where}; it printed: {shorten_output(printed)}" if printed.strip() else where
        if status is None:
            return CandidateFailure(
                failure, f"the process closed its connection to the evaluator during {command}{output}"
            )
        if status > 128:
            name = name_signal(status - 128)
            # Linux ends a process this way when memory runs out; a candidate may also send it to itself.
            outcome = Outcome.OUT_OF_MEMORY if name == "SIGKILL" and self._worker.watch.has_seen_oom_kill() else failure
            return CandidateFailure(outcome, f"the process was ended by {name} during {command}{output}")
        return CandidateFailure(failure, f"the process exited with code {status} during {command}{output}")


def require_kind(answer: dict[str, Any], expected: Expected, failure: Outcome = Outcome.RUNTIME_ERROR) -> None:
    """Raises CandidateFailure."""
    if answer["kind"] == WorkerReply.FAILED:
        raise explain_failure(answer, failure)
    if answer["kind"] != expected:
        raise CandidateFailure.of_protocol(f"expected the answer {expected.value!r}, found {answer['kind']!r}")


def _name_step(expected: Expected) -> str:
    return STEPS.get(expected, expected.value.replace("_", " "))


MAX_SOURCE_CHARACTERS = 8 * 1024 * 1024  # of one extension
MAX_BUILDS = 64  # per worker
MAX_BUILD_CHARACTERS = 4 * MAX_SOURCE_CHARACTERS  # of all builds together
MAX_BUILDS_S = 1800.0  # for all builds together
MAX_BUILD_TIMEOUTS = 2
_NAME = re.compile(r"[^/\0]{1,200}")  # the build checks whether it can name a module
_FILE_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")


class BuildRequests:
    """Raises CandidateFailure above a limit."""

    def __init__(self, worker: WorkerProcess, build: AnswerBuild) -> None:
        self._worker = worker
        self._build = build
        self._count = 0
        self._characters = 0
        self._spent_s = 0.0
        self._timeouts = 0

    def answer(self, message: dict[str, Any]) -> None:
        self._count += 1
        if self._count > MAX_BUILDS:
            raise CandidateFailure(Outcome.REJECTED, f"it requested more than {MAX_BUILDS} extensions")
        request = parse_build_request(message.get("request"))
        self._characters += count_characters(request)
        if self._characters > MAX_BUILD_CHARACTERS:
            raise CandidateFailure(Outcome.REJECTED, f"its extensions have over {MAX_BUILD_CHARACTERS} characters")
        result = self._build(request)
        self._limit(result)
        line = self._worker.line
        if result.extension is None:
            line.send({"kind": BUILT, "ok": False, "log": result.log[-20000:]}, timeout_s=30.0)
            return
        descriptor = _copy_to_memory(result.extension)
        try:
            line.send({"kind": BUILT, "ok": True, "log": ""}, (descriptor,), timeout_s=30.0)
        finally:
            os.close(descriptor)

    def _limit(self, result: BuildResult) -> None:
        self._spent_s += result.duration_s
        self._timeouts += result.status == "timeout"
        if self._spent_s <= MAX_BUILDS_S and self._timeouts < MAX_BUILD_TIMEOUTS:
            return
        self._worker.end()
        took = f"its {self._count} builds took {self._spent_s:.0f} s, {self._timeouts} of them past their limit"
        raise CandidateFailure(Outcome.TIMEOUT, took)


def parse_build_request(value: object) -> BuildRequest:
    """Raises WireError."""
    try:
        request: BuildRequest = make_value(BuildRequest, value, checks=True)
    except (TypeError, ValueError) as error:
        raise WireError(f"invalid build request: {error}"[:300]) from error
    _require_match(request.name, _NAME, "extension name")
    _check_files(request.files, "source")
    _check_files(request.headers, "header")
    if any("/" in name for name, _ in request.files):
        raise WireError("the name of a source file contains a folder")
    if count_characters(request) > MAX_SOURCE_CHARACTERS:
        raise WireError(f"the sources of one extension exceed {MAX_SOURCE_CHARACTERS} characters")
    return request


def count_characters(request: BuildRequest) -> int:
    flags = (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags)
    pairs = (*(request.functions or ()), *request.files, *request.headers)
    strings = (*request.cpp_sources, *request.cuda_sources, *flags, *(part for pair in pairs for part in pair))
    return sum(map(len, strings))


def _require_match(name: str, pattern: re.Pattern[str], what: str) -> None:
    if not pattern.fullmatch(name):
        raise WireError(f"invalid {what}: {name!r}"[:300])


def _check_files(files: Sequence[tuple[str, str]], what: str) -> None:
    names = {name for name, _ in files}
    if len(names) < len(files):
        raise WireError(f"two {what} files have the same name")
    for name in names:
        _require_match(name, _FILE_NAME, f"name of a {what} file")
        if any(str(folder) in names for folder in PurePosixPath(name).parents):
            raise WireError(f"{name!r} lies in a folder with the name of another {what} file"[:300])


def _copy_to_memory(path: str) -> int:
    """A worker that held a descriptor of the file could change the cache."""
    descriptor = os.memfd_create("harness-library")
    with open(path, "rb") as library, os.fdopen(os.dup(descriptor), "wb") as copy:  # noqa: PTH123 - one line of both
        shutil.copyfileobj(library, copy)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
