"""Restricts file access, TCP and signals by Landlock. Features that this Linux lacks are skipped.

ioctl stays allowed on listed devices, for GPU drivers.
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from harness.worker.isolation.linux import libc, system_call

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PATH_BENEATH, _VERSION = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP, _SCOPES = 3, 3  # bind and connect; abstract Unix sockets and signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Missing paths are ignored."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...]
    listable: tuple[str, ...] = ()


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def restrict_with_landlock(access: Access) -> bool:
    """Return False without Landlock. The process must have set no_new_privs."""
    version = int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))
    if version < 1:
        return False
    handled = max(rights for since, rights in _ALL_BY_VERSION.items() if since <= version)
    wanted = _Ruleset(handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    ruleset = system_call("landlock_create_ruleset", _CREATE, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
    try:
        _allow(ruleset, access.readable, handled & (_EXECUTE | _READ_FILE | _READ_DIR))
        _allow(ruleset, access.writable, handled)
        _allow(ruleset, access.devices, handled & (_OF_FILES & ~_EXECUTE | _READ_DIR))
        _allow(ruleset, access.listable, _READ_DIR)
        system_call("landlock_restrict_self", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # missing or not reachable
        try:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = _PathRule(rights if is_folder else rights & _OF_FILES, descriptor)
            system_call(f"landlock_add_rule {path}", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(descriptor)
