"""Where the builds that one worker asks for are answered: within limits for all of them together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

from harness.domain import BuildRequest, BuildResult, Outcome
from harness.judge.failure import CandidateFailure
from harness.judge.requests import MAX_SOURCE_CHARACTERS, count_characters, parse_build_request
from harness.judge.supervisor import WorkerProcess

MAX_BUILDS = 64  # that one worker may ask for
MAX_BUILD_CHARACTERS = 4 * MAX_SOURCE_CHARACTERS  # of sources, in all of them together
MAX_BUILDS_S = 1800.0  # for all of them together
MAX_BUILD_TIMEOUTS = 2
AnswerBuild = Callable[[BuildRequest], BuildResult]


class BuildDesk:
    """Raises CandidateFailure for what asks too much."""

    def __init__(self, worker: WorkerProcess, build: AnswerBuild) -> None:
        self._worker = worker
        self._build = build
        self._count = 0
        self._characters = 0
        self._spent_s = 0.0
        self._timeouts = 0

    def answer(self, message: dict[str, Any]) -> None:
        """To a request, as it came: the extension, or the log."""
        self._count += 1
        if self._count > MAX_BUILDS:
            raise CandidateFailure(Outcome.REJECTED, f"it asked for more than {MAX_BUILDS} extensions")
        request = parse_build_request(message.get("request"))
        self._characters += count_characters(request)
        if self._characters > MAX_BUILD_CHARACTERS:
            raise CandidateFailure(Outcome.REJECTED, f"its extensions have over {MAX_BUILD_CHARACTERS} characters")
        result = self._build(request)
        self._limit(result)
        line = self._worker.line
        if result.extension is None:
            line.send({"kind": "built", "ok": False, "log": result.log[-20000:]}, timeout_s=30.0)
            return
        descriptor = _copy_to_memory(result.extension)
        try:
            line.send({"kind": "built", "ok": True, "log": ""}, (descriptor,), timeout_s=30.0)
        finally:
            os.close(descriptor)

    def _limit(self, result: BuildResult) -> None:
        """A limit for each build is none for all of them."""
        self._spent_s += result.duration_s
        self._timeouts += result.status == "timeout"
        if self._spent_s <= MAX_BUILDS_S and self._timeouts < MAX_BUILD_TIMEOUTS:
            return
        self._worker.end()
        took = f"its {self._count} builds took {self._spent_s:.0f} s, {self._timeouts} of them past their limit"
        raise CandidateFailure(Outcome.TIMEOUT, took)


def _copy_to_memory(path: str) -> int:
    """A descriptor of a copy: through one of the file itself a worker of the same user could change the cache."""
    descriptor = os.memfd_create("harness-library")
    with open(path, "rb") as library, os.fdopen(os.dup(descriptor), "wb") as copy:  # noqa: PTH123 - one line of both
        shutil.copyfileobj(library, copy)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
