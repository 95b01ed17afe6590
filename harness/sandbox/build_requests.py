"""Validates and answers the build requests of one hostile worker."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from harness.domain import BuildRequest, BuildResult, Outcome, WireError
from harness.domain.records import make_value
from harness.protocol.messages import BUILT
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.worker_process import WorkerProcess

MAX_SOURCE_CHARACTERS = 8 * 1024 * 1024  # of one extension
MAX_BUILDS = 64  # per worker
MAX_BUILD_CHARACTERS = 4 * MAX_SOURCE_CHARACTERS  # of all builds together
MAX_BUILDS_S = 1800.0  # for all builds together
MAX_BUILD_TIMEOUTS = 2
AnswerBuild = Callable[[BuildRequest], BuildResult]
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
