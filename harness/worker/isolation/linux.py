"""Wraps system calls that Python 3.11 does not (failures raise OSError), waits for processes and ends descendants."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from harness.protocol.process_tree import find_tree

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND = 2, 4, 8, 0x1000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MNT_DETACH = 2

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def system_call(what: str, number: int, *arguments: object) -> int:
    """Call by number. Integers are passed as long."""
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return check(int(libc.syscall(ctypes.c_long(number), *passed)), what)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    strings = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    check(libc.mount(strings[0], strings[1], strings[2], ctypes.c_ulong(flags), strings[3]), f"mounting {target}")


def detach_mount(target: str) -> None:
    check(libc.umount2(os.fsencode(target), _MNT_DETACH), f"unmounting {target}")


def set_mount_attributes(target: str, attributes: int, *, recursive: bool) -> None:
    """Requires Linux 5.12."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)  # set, clear, propagation, user namespace
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.sizeof(wanted)
    system_call(f"restricting {target}", _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, wanted, size)


def pivot_root(new_root: str, old_root: str) -> None:
    machine = os.uname().machine
    if machine not in _SYS_PIVOT_ROOT:
        raise OSError(f"pivot_root has no known number on {machine}")
    system_call("pivot_root", _SYS_PIVOT_ROOT[machine], os.fsencode(new_root), os.fsencode(old_root))


def require_child_lists() -> None:
    """Raises OSError if Linux lacks lists of children; then workers could not be stopped."""
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        raise OSError("Linux was built without CONFIG_PROC_CHILDREN: no /proc/<pid>/task/<tid>/children")


def wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return shell_status(status)


def shell_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def end_descendants() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            for process in find_tree(os.getpid()) - {os.getpid()}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)
