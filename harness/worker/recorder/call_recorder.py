"""Records the GPU work of one call as data, through the forwarding driver library (folder `driver`) that replaces
libcuda.so.1.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

MOST_RECORDINGS = 6  # until two in a row have the same shape: the first ones may hold autotuning


class NotRecordable(Exception):
    """The message is the reason."""


class CallRecorder:
    def __init__(self, private_folder: str) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._private = private_folder.encode()
        if not hasattr(self._library, "harness_begin_recording"):
            raise NotRecordable("the forwarding driver library is not loaded in the worker")

    def record(self, reset: Callable[[], None], call: Callable[[], Any]) -> tuple[Any, dict[str, Any], list[int]]:
        """Return the last call's result, its recording, and descriptors of the recording's JSON and bytes. `reset`
        precedes each call and is not recorded. Raises NotRecordable if calls do not become steady.
        """
        before: list[Any] | None = None
        for _ in range(MOST_RECORDINGS):
            reset()
            result, descriptors = self._record_once(call)
            recording = json.loads(_read(descriptors[0]))
            shape = [_outline(row) for row in recording["operations"]]
            if shape == before:
                return result, recording, descriptors
            before = shape
            del result
            for descriptor in descriptors:
                os.close(descriptor)
        raise NotRecordable(f"{MOST_RECORDINGS} calls in a row launched different work")

    def _record_once(self, call: Callable[[], Any]) -> tuple[Any, list[int]]:
        descriptors = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("recording", "recorded-bytes")]
        self._library.harness_begin_recording()
        try:
            try:
                result = call()
            finally:
                failed = self._library.harness_end_recording(*descriptors, self._private)
            if failed:
                raise NotRecordable("the recording could not be written")
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return result, descriptors


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _outline(row: list[Any]) -> list[Any]:
    return [row[0], row[1:6]] if row[0] == "launch" else row[:1]
