"""Reads and answers the build requests of one worker. Every part of a request is checked: the worker is hostile."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from harness.domain import BuildRequest, BuildResult, Outcome, WireError
from harness.sandbox.failure import CandidateFailure
from harness.sandbox.worker_process import WorkerProcess

MAX_SOURCE_CHARACTERS = 8 * 1024 * 1024  # of one extension
MAX_BUILDS = 64  # that one worker may ask for
MAX_BUILD_CHARACTERS = 4 * MAX_SOURCE_CHARACTERS  # of sources, in all of them together
MAX_BUILDS_S = 1800.0  # for all of them together
MAX_BUILD_TIMEOUTS = 2
AnswerBuild = Callable[[BuildRequest], BuildResult]
_NAME = re.compile(r"[^/\0]{1,200}")  # whether it can name a module is for the build to say
_FILE_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")


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


def parse_build_request(value: object) -> BuildRequest:
    """Raises WireError for anything that our recorder would not have sent."""
    if not isinstance(value, dict):
        raise WireError("a build request is not an object")
    functions = value.get("functions")
    request = BuildRequest(
        name=_matching(value.get("name"), _NAME, "an extension's name"),
        cpp_sources=_texts(value, "cpp_sources"),
        cuda_sources=_texts(value, "cuda_sources"),
        functions=None if functions is None else _text_pairs(functions),
        files=_files(value, "files"),
        headers=_files(value, "headers"),
        extra_cflags=_texts(value, "extra_cflags"),
        extra_cuda_cflags=_texts(value, "extra_cuda_cflags"),
        extra_ldflags=_texts(value, "extra_ldflags"),
        with_cuda=_flag(value, "with_cuda", None),
        no_implicit_headers=bool(_flag(value, "no_implicit_headers", False)),
        with_pytorch_error_handling=bool(_flag(value, "with_pytorch_error_handling", True)),
        is_python_module=bool(_flag(value, "is_python_module", True)),
    )
    if count_characters(request) > MAX_SOURCE_CHARACTERS:
        raise WireError(f"the sources of one extension exceed {MAX_SOURCE_CHARACTERS} characters")
    return request


def count_characters(request: BuildRequest) -> int:
    """How much text a request brings along: each part of it takes time, built or not."""
    flags = (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags)
    pairs = (*(request.functions or ()), *request.files, *request.headers)
    texts = (*request.cpp_sources, *request.cuda_sources, *flags, *(text for pair in pairs for text in pair))
    return sum(map(len, texts))


def _matching(value: object, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise WireError(f"{what} is not usable: {value!r}"[:300])
    return value


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...]:
    texts = value.get(key, [])
    if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
        raise WireError(f"{key} is not a list of strings")
    return tuple(texts)


def _text_pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise WireError("a list of pairs is missing")
    pairs = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or any(not isinstance(text, str) for text in pair):
            raise WireError("expected a pair of strings, [str, str]")
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _files(value: dict[str, Any], key: str) -> tuple[tuple[str, str], ...]:
    files = dict(_text_pairs(value.get(key, [])))
    for name in files:
        _matching(name, _FILE_NAME, "a file's name")
        if key == "files" and "/" in name:
            raise WireError(f"the source {name!r} names a folder")
        if any(str(folder) in files for folder in PurePosixPath(name).parents):
            raise WireError(f"{key} holds {name!r} and a file where its folder should be"[:300])
    return tuple(files.items())


def _flag(value: dict[str, Any], key: str, default: bool | None) -> bool | None:
    flag = value.get(key, default)
    if flag is not None and not isinstance(flag, bool):
        raise WireError(f"{key} is not true or false")
    return flag


def _copy_to_memory(path: str) -> int:
    """A descriptor of a copy: through one of the file itself a worker of the same user could change the cache."""
    descriptor = os.memfd_create("harness-library")
    with open(path, "rb") as library, os.fdopen(os.dup(descriptor), "wb") as copy:  # noqa: PTH123 - one line of both
        shutil.copyfileobj(library, copy)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
