"""Tells from the content of recorded machine code where it comes from: a worker's word for it counts for nothing."""

from __future__ import annotations

import mmap
import struct
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

from harness.builder.cache import digest_code, list_device_code
from harness.builder.toolchain import find_cuda_home
from harness.evaluation.integrity.program_kernels import Agreement, ProgramKernels
from harness.sandbox.gpu.recorded_code import RecordedFunction

# "built": the evaluator compiled it of the candidate's sources; "compiled": it compiled the text of the program again.
# "machine": a library of this machine holds it, the reference runs it, or its worker compiled another kernel than the
# program's of that name. "said": only its worker says that it compiled the program's text. "unknown": all else.
Origin = Literal["built", "compiled", "machine", "said", "unknown"]

_FAT_BINARY = struct.Struct("<IHHQ")  # magic number, version, bytes of this header, bytes that follow it
_PART = struct.Struct("<HHIQI")  # for one device; the last three: bytes of this header, after it, of them compressed
_MAGIC = struct.pack("<I", 0xBA55ED50)
_SECTION = struct.Struct("<IIQQQQIIQQ")  # of an ELF file; the 1st, 3rd, 5th and 6th are name, flags, offset and size
_EXECUTABLE, FEWEST_BYTES = 4, 512  # a flag; instructions of functions that are compared
_LINKED_APART = b"__nv_relfatbin"
_SECTIONS = (b".nv_fatbin", _LINKED_APART, b".ldata")  # cuFFT has its code in the last, which is writable in memory
_DEVICE_LAUNCH = b"__cuda_syscall_cnp"  # what the driver links code to that launches kernels
_ORIGINS: dict[Agreement, Origin] = {"same": "compiled", "said": "said", "other": "machine"}


def find_origins(
    functions: Sequence[RecordedFunction],
    built: Sequence[str],
    theirs: Collection[RecordedFunction] = (),
    program: ProgramKernels | None = None,
) -> list[Origin]:
    """`built` are paths of the libraries that the evaluator built from the candidate's sources, `theirs` are those
    of the reference's recording.
    """
    their_images = {one.image for one in theirs if one.image}
    known: dict[bytes, Origin] = dict.fromkeys(their_images, "machine")
    compiled = frozenset[str]().union(*map(list_device_code, built))
    for one in functions:
        if one.image not in known:
            known[one.image] = _find_origin(one.image, compiled)
    unknown = [one for one in functions if known[one.image] == "unknown"]
    known |= {image: _ORIGINS[how] for image, how in (program.compare(unknown) if program else {}).items()}
    their_code = {code for image in their_images for code in _list_code(image)}
    their_names = {one.name for one in theirs if one.name}
    for one in unknown:
        is_theirs = one.name in their_names or not their_code.isdisjoint(_list_code(one.image))
        if is_theirs and known[one.image] in ("unknown", "said"):
            known[one.image] = "machine"  # in another form, or under other names
    return ["machine" if one.path else known[one.image] for one in functions]


def may_launch_kernels(functions: Sequence[RecordedFunction], built: Sequence[str]) -> bool:
    """Return True if code of the program may launch kernels on the device: a replay ends before these do. Only machine
    code that is not packed can be read.
    """
    images = {one.image for one in functions if not one.path}
    if any(_DEVICE_LAUNCH in image for image in images) or any(map(_is_linked_apart, built)):
        return True
    compiled = frozenset[str]().union(*map(list_device_code, built))
    others = (image for image in images if image.startswith(_MAGIC) and digest_code(image) not in compiled)
    return not all(parts and all(parts) for parts in map(_compare_parts, others))


def _is_linked_apart(path: str) -> bool:
    with map_file(path) as file:
        return any(name == _LINKED_APART for name, _, _ in _list_sections(file))


def _find_origin(image: bytes, compiled: Collection[str]) -> Origin:
    """`compiled` are digests of what the evaluator compiled."""
    if not image:
        return "unknown"
    if digest_code(image) in compiled:
        return "built"
    return "machine" if any(_compare_parts(image)) else "unknown"  # the driver takes the part for its device


def _compare_parts(image: bytes) -> list[bool]:
    """Return whether a library of this machine has each part of a fat binary. Code that a library unpacks at run time
    is in none of its files.
    """
    places = _list_parts(image, 0) if image.startswith(_MAGIC) else ()
    parts = [image[start : start + size_bytes] for start, size_bytes in places]
    return [any(_lies_at(part, *place) for place in _list_known_parts().get(len(part), ())) for part in parts]


def _lies_at(part: bytes, path: str, at: int) -> bool:
    with map_file(path) as file:
        return file[at : at + len(part)] == part


@cache
def _list_known_parts() -> dict[int, list[tuple[str, int]]]:
    """Return path and offset of all in torch's and NVIDIA's libraries, by size."""
    found = defaultdict[int, list[tuple[str, int]]](list)
    for path in _list_libraries():
        with suppress(OSError, ValueError, struct.error), map_file(path) as file:
            for _, start, end in _list_sections(file):
                for at in _walk(file, start, end):
                    for place, size_bytes in _list_parts(file, at):
                        found[size_bytes].append((path, place))
    return dict(found)


def _list_parts(code: bytes | mmap.mmap, at: int) -> Iterator[tuple[int, int]]:
    """Yield offset and size of the code for each device in the fat binary at `at`, without padding."""
    with suppress(struct.error):
        _, _, header_bytes, body_bytes = _FAT_BINARY.unpack_from(code, at)
        at += header_bytes
        end = at + body_bytes
        while at < end:
            _, _, header_bytes, body_bytes, packed_bytes = _PART.unpack_from(code, at)
            yield at + header_bytes, packed_bytes or body_bytes
            at += max(header_bytes + body_bytes, _PART.size)


def _list_libraries() -> set[str]:
    folders = [folder for entry in sys.path for folder in Path(entry).glob("nvidia/*/lib")]
    folders += [Path(entry, "torch", "lib") for entry in sys.path]
    home = find_cuda_home()
    folders += [Path(home, "lib64")] if home else []
    return {str(path.resolve()) for folder in folders for path in folder.glob("*.so*")}


def _list_sections(file: mmap.mmap) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and end of sections with device code."""
    sections, names = _read_sections(file)
    for section in sections:
        at, start, size_bytes = sections[names][4] + section[0], section[4], section[5]
        name = file[at : file.find(b"\0", at)]
        if name in _SECTIONS:
            yield name, start, start + size_bytes


def _list_code(image: bytes) -> list[bytes]:
    """Return the instructions of each function in an ELF file."""
    with suppress(struct.error):
        sections, _ = _read_sections(image)
        found = (image[one[4] : one[4] + one[5]] for one in sections if one[2] & _EXECUTABLE)
        return [code for code in found if len(code) >= FEWEST_BYTES]
    return []


def _read_sections(file: bytes | mmap.mmap) -> tuple[list[tuple[Any, ...]], int]:
    """Return them and the number of the one with their names; none of other files. Raises struct.error."""
    if file[:4] != b"\x7fELF":
        return [], 0
    (table,) = struct.unpack_from("<Q", file, 0x28)
    count, names = struct.unpack_from("<HH", file, 0x3C)
    return [_SECTION.unpack_from(file, table + _SECTION.size * at) for at in range(count)], names


def _walk(file: mmap.mmap, at: int, end: int) -> Iterator[int]:
    """Yield offsets of the fat binaries between."""
    while (at := file.find(_MAGIC, at, end)) >= 0:
        yield at
        _, _, header_bytes, body_bytes = _FAT_BINARY.unpack_from(file, at)
        at += max(header_bytes + body_bytes, 1)


@contextmanager
def map_file(path: str | Path) -> Iterator[mmap.mmap]:
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped
