"""What a worker gives up before it imports a candidate: the network, other processes, other folders, privileges.

Linux system calls through ctypes, since Python 3.11 has none of them. Does not decide a policy: the judge says which
limits it wants, and this module reports which of them it got.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

_NEW_NAMESPACES = 0x00020000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000  # mount, user, pid, net, ipc
_MS_NOSUID_NODEV, _MS_NOEXEC = 2 | 4, 8
_MS_PRIVATE_RECURSIVE = 0x4000 | 0x40000
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}

INSIDE_ID = 1000
NOBODY_ID = 65534

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`memory_bytes` None leaves the address space unlimited (a CUDA context reserves far more than it uses)."""

    memory_bytes: int | None
    scratch_bytes: int
    processes: int
    cpu_s: int


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends, however that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def drop_root() -> None:
    """An ordinary user from here on, if that one can read what it must: limits on processes do not bind root.

    In a container whose root is the only user there is, root it stays.
    """
    needed = (Path(sys.executable), Path(os.__file__), Path(__file__))
    if os.getuid() == 0 and all(_is_open_to_others(path.resolve()) for path in needed):
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
            os.setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
        # Changing ids hides /proc/self from its owner; the id maps below are written there.
        _libc.prctl(4, 1, 0, 0, 0)


def _is_open_to_others(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def enter_namespaces() -> bool:
    """New user, mount, process, network and IPC namespaces; the next child is process 1 there. False: not allowed."""
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INSIDE_ID} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{INSIDE_ID} {group} 1")
    return True


def close_file_system() -> bool:
    """Makes every mount of this namespace read-only; what is mounted afterwards is not. False: kernel before 5.12."""
    _mount(b"none", b"/", None, _MS_PRIVATE_RECURSIVE, None)
    read_only = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)  # set, clear, propagation, user namespace
    size = ctypes.c_size_t(ctypes.sizeof(read_only))
    return int(_libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, read_only, size)) == 0


def mount_scratch(folder: str, size_bytes: int) -> None:
    """A private file system in memory over `folder`, and, where the kernel allows it, a /proc of this namespace."""
    options = f"size={size_bytes},mode=700".encode()
    _mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _MS_NOSUID_NODEV, options)
    # Refused where an outer sandbox covers parts of /proc; then that sandbox's view stays, which is narrow already.
    _libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV | _MS_NOEXEC, None)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, data: bytes | None) -> None:
    if _libc.mount(source, target, kind, flags, data) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mounting {target.decode()}: {os.strerror(code)}")


def drop_privileges() -> None:
    """No capability is left, and no program started from here can gain one."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None or _libc.syscall(number, header, nothing) != 0:
        raise OSError(ctypes.get_errno(), f"capabilities could not be dropped on {os.uname().machine}")


def apply_limits(limits: Limits) -> None:
    """Resource limits of this process and its children. The address space counts what is mapped already on top."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.scratch_bytes)
    _lower(resource.RLIMIT_NPROC, limits.processes)
    _lower(resource.RLIMIT_CPU, limits.cpu_s)
    if limits.memory_bytes is not None:
        mapped_pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower(resource.RLIMIT_AS, mapped_pages * resource.getpagesize() + limits.memory_bytes)


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (ceiling, ceiling))


def redirect_output(descriptor: int) -> None:
    """Standard output and error go to `descriptor`, standard input to nothing."""
    with Path("/dev/null").open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
