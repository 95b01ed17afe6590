"""Reads which functions a recording launches, and their machine code. The worker wrote both."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.protocol.device_memory import MOST_RECORDING_BYTES

MOST_CODE_BYTES = 512 << 20  # of all images
MOST_NAME_CHARACTERS = 2 << 20  # of all kernels of a call, which are searched
_NAME = re.compile(r"[!-~]+")  # the driver reads others differently: it encodes them, and ends at a zero byte


class MalformedRecording(Exception):
    """The message is the reason."""


@dataclass(frozen=True, slots=True)
class RecordedFunction:
    """`path` is the library of the machine that the code is read from; otherwise the recording holds its `image`, which
    is empty if the recorder has not seen it. `compilation` is the JSON by which the worker says that Triton made it.
    """

    name: str
    path: str
    image: bytes
    compilation: str = ""


def read_functions(recording: int, recorded_bytes: int) -> list[RecordedFunction]:
    """Both are descriptors. Call after the end of the worker, which could change them. Raises MalformedRecording."""
    size_bytes = os.fstat(recording).st_size
    if size_bytes > MOST_RECORDING_BYTES:
        raise MalformedRecording(f"its recording has more than {MOST_RECORDING_BYTES >> 20} MiB")
    try:
        found = json.loads(os.pread(recording, size_bytes, 0))
        images = _read_images(found["images"], recorded_bytes)
        said = {image: _read_compilation(found.get("compilations", {}), image) for _, image in images.values()}
        functions = [_read_function(facts, images, said) for facts in found["functions"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, OSError) as error:
        raise MalformedRecording("its recording cannot be read") from error
    if sum(len(one.name) for one in functions) > MOST_NAME_CHARACTERS:
        raise MalformedRecording("its recording has too long names of kernels")
    return functions


def list_readable(recording: int, recorded_bytes: int) -> list[RecordedFunction]:
    """Of a malformed recording none."""
    try:
        return read_functions(recording, recorded_bytes)
    except MalformedRecording:
        return []


def _read_images(rows: Mapping[str, Any], recorded_bytes: int) -> dict[int, tuple[str, bytes]]:
    """The replayer finds an image by the text of its number, so that each has one text only."""
    images, left_bytes = dict[int, tuple[str, bytes]](), min(os.fstat(recorded_bytes).st_size, MOST_CODE_BYTES)
    for text, facts in rows.items():
        number, path, start, size = int(text), facts["path"], facts["offset"], facts["size"]
        if str(number) != text or type(path) is not str or not (_is_count(start) and _is_count(size)):
            raise ValueError("an invalid image")
        code = b""
        if not path:
            left_bytes -= size
            code = os.pread(recorded_bytes, size, start) if left_bytes >= 0 else b""
            if len(code) != size:
                raise ValueError("code is missing")
        images[number] = path, code
    return images


def _read_compilation(rows: Mapping[str, Any], image: bytes) -> str:
    text = rows.get(hashlib.sha256(image).hexdigest(), "") if rows and image else ""
    if type(text) is not str:
        raise ValueError("an invalid compilation")
    return text


def _read_function(
    facts: Mapping[str, Any], images: Mapping[int, tuple[str, bytes]], said: Mapping[bytes, str]
) -> RecordedFunction:
    name, number = facts["name"], facts["image"]
    if type(name) is not str or type(number) is not int:
        raise ValueError("an invalid function")
    if number == -1:
        return RecordedFunction("", "", b"")
    if not _NAME.fullmatch(name):
        raise ValueError("an invalid name")
    path, image = images[number]
    return RecordedFunction(name, path, image, said[image])


def _is_count(number: object) -> bool:
    return type(number) is int and number >= 0
