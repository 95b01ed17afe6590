"""Validates and answers the build requests of one hostile worker."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from harness.domain import BuildRequest, BuildResult, Outcome, WireError
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
    if not isinstance(value, dict):
        raise WireError("a build request is not an object")
    functions = value.get("functions")
    request = BuildRequest(
        name=_matching(value.get("name"), _NAME, "extension name"),
        cpp_sources=_strings(value, "cpp_sources"),
        cuda_sources=_strings(value, "cuda_sources"),
        functions=None if functions is None else _string_pairs(functions),
        files=_files(value, "files"),
        headers=_files(value, "headers"),
        extra_cflags=_strings(value, "extra_cflags"),
        extra_cuda_cflags=_strings(value, "extra_cuda_cflags"),
        extra_ldflags=_strings(value, "extra_ldflags"),
        with_cuda=_flag(value, "with_cuda", None),
        no_implicit_headers=bool(_flag(value, "no_implicit_headers", False)),
        with_pytorch_error_handling=bool(_flag(value, "with_pytorch_error_handling", True)),
        is_python_module=bool(_flag(value, "is_python_module", True)),
    )
    if count_characters(request) > MAX_SOURCE_CHARACTERS:
        raise WireError(f"the sources of one extension exceed {MAX_SOURCE_CHARACTERS} characters")
    return request


def count_characters(request: BuildRequest) -> int:
    flags = (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags)
    pairs = (*(request.functions or ()), *request.files, *request.headers)
    strings = (*request.cpp_sources, *request.cuda_sources, *flags, *(part for pair in pairs for part in pair))
    return sum(map(len, strings))


def _matching(value: object, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise WireError(f"invalid {what}: {value!r}"[:300])
    return value


def _strings(value: dict[str, Any], key: str) -> tuple[str, ...]:
    strings = value.get(key, [])
    if not isinstance(strings, list) or any(not isinstance(string, str) for string in strings):
        raise WireError(f"{key} is not a list of strings")
    return tuple(strings)


def _string_pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise WireError("expected a list of pairs")
    pairs = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or any(not isinstance(part, str) for part in pair):
            raise WireError("expected a pair of strings, [str, str]")
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _files(value: dict[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    files = dict(_string_pairs(value.get(key, [])))
    for name in files:
        _matching(name, _FILE_NAME, "file name")
        if key == "files" and "/" in name:
            raise WireError(f"invalid source name {name!r}: it contains a folder")
        if any(str(folder) in files for folder in PurePosixPath(name).parents):
            raise WireError(f"{key} contains {name!r} and a file with the name of its folder"[:300])
    return tuple(files.items())


def _flag(value: dict[str, Any], key: str, default: bool | None) -> bool | None:
    flag = value.get(key, default)
    if flag is not None and not isinstance(flag, bool):
        raise WireError(f"{key} is not true or false")
    return flag


def _copy_to_memory(path: str) -> int:
    """A worker that held a descriptor of the file could change the cache."""
    descriptor = os.memfd_create("harness-library")
    with open(path, "rb") as library, os.fdopen(os.dup(descriptor), "wb") as copy:  # noqa: PTH123 - one line of both
        shutil.copyfileobj(library, copy)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
