"""Closes file descriptors, and makes memory that processes share by them."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@contextmanager
def closing_on_error(descriptors: Iterable[int]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        close_all(descriptors)
        raise


def make_sealed_memory(name: str, size_bytes: int) -> int:
    """Seal the size, since an access beyond a shrunk file would end this process."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with closing_on_error([descriptor]):
        os.ftruncate(descriptor, size_bytes)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor
