"""What a process gives up before it runs foreign code: the network, other processes, other folders, privileges.

Does not decide a policy: the judge says which walls and limits it wants, and this module reports which of them it got.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from harness.worker.isolation import linux
from harness.worker.isolation.landlock import Access, restrict_with_landlock
from harness.worker.isolation.linux import libc
from harness.worker.isolation.seccomp import filter_system_calls

_NEW_NAMESPACES = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}

INSIDE_ID = 1000
NOBODY_ID = 65534
SHARED_MEMORY_BYTES = 64 << 20  # of /dev/shm, where semaphores lie
OPEN_FILES = 4096  # of one process: whoever has to look at them all can


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`memory_bytes` None leaves the address space unlimited (a CUDA context reserves far more than it uses)."""

    memory_bytes: int | None
    scratch_bytes: int
    processes: int
    cpu_s: int


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends, however that ends."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


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
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _is_open_to_others(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def enter_namespaces() -> bool:
    """New user, mount, process, network and IPC namespaces; the next child is process 1 there. False: not allowed."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INSIDE_ID} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{INSIDE_ID} {group} 1")
    return True


def enter_namespaces_for_many() -> None:
    """The same, with a host name, for several workers or a whole build. Root keeps two users there: itself and nobody.

    Raises OSError where that is not allowed. A helper that stays outside writes the map of users, which only it may.
    """
    told, tell = os.pipe()
    process = os.getpid()
    helper = os.fork()
    if helper == 0:
        os.close(tell)
        os._exit(0 if os.read(told, 1) and _map_users(process) else 1)
    os.close(told)
    refused = libc.unshare(_NEW_NAMESPACES | linux.CLONE_NEWUTS) != 0
    if not refused:
        os.write(tell, b"!")
    os.close(tell)
    if os.waitpid(helper, 0)[1] != 0 or refused:
        raise PermissionError("user namespaces are not allowed here")


def _map_users(process: int) -> bool:
    folder = Path(f"/proc/{process}")
    user, group = os.getuid(), os.getgid()
    try:
        if user == 0:
            with contextlib.suppress(PermissionError):
                (folder / "uid_map").write_text(f"0 0 1\n{NOBODY_ID} {NOBODY_ID} 1\n")
                (folder / "gid_map").write_text(f"0 0 1\n{NOBODY_ID} {NOBODY_ID} 1\n")
                return True
        (folder / "setgroups").write_text("deny")
        (folder / "uid_map").write_text(f"{user} {user} 1")
        (folder / "gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


def close_file_system() -> bool:
    """Makes every mount of this namespace read-only; what is mounted afterwards is not. False: kernel before 5.12."""
    linux.mount("none", "/", None, linux.MS_PRIVATE | linux.MS_REC)
    try:
        linux.set_mount_attributes("/", linux.MOUNT_ATTR_RDONLY, recursive=True)
    except OSError:
        return False
    return True


def mount_scratch(folder: str, size_bytes: int) -> None:
    """A private file system in memory over `folder`, a small one over /dev/shm, and, where the kernel allows it, a
    /proc of this namespace."""
    plain = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("scratch", folder, "tmpfs", plain, f"size={size_bytes},mode=700")
    with contextlib.suppress(OSError):
        linux.mount("shm", "/dev/shm", "tmpfs", plain, f"size={SHARED_MEMORY_BYTES},mode=700")
    # Refused where an outer sandbox covers parts of /proc; then that sandbox's view stays, which is narrow already.
    with contextlib.suppress(OSError):
        linux.mount("proc", "/proc", "proc", plain | linux.MS_NOEXEC)


def adopt_orphans() -> None:
    """Whatever descendants lose their parent become children of this process, so that none is lost sight of."""
    linux.check(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def restrict_calls(access: Access, *, has_own_root: bool) -> list[str]:
    """Landlock and seccomp, after privileges were dropped; the names of those that are in force.

    Where the file system is shared with others, sockets by path would reach them, so there none may be connected.
    """
    restricted = ["landlock"] if restrict_with_landlock(access) else []
    return restricted + (["seccomp"] if filter_system_calls(allow_connections=has_own_root) else [])


def drop_privileges() -> None:
    """No capability is left, and no program started from here can gain one."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None or libc.syscall(number, header, nothing) != 0:
        raise OSError(ctypes.get_errno(), f"capabilities could not be dropped on {os.uname().machine}")


def apply_limits(limits: Limits, *, shares_user: bool = False) -> None:
    """Resource limits of this process and its children. The address space counts what is mapped already on top, and
    where the user has other processes outside, so does the number of processes."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.scratch_bytes)
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit_processes(limits.processes, shares_user=shares_user)
    # Past the first value there is a signal that tells what it was for, at the second one that cannot be ignored.
    _lower(resource.RLIMIT_CPU, limits.cpu_s, grace=5)
    if limits.memory_bytes is not None:
        mapped_pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower(resource.RLIMIT_AS, mapped_pages * resource.getpagesize() + limits.memory_bytes)


def _limit_processes(count: int, *, shares_user: bool) -> None:
    """The kernel counts all tasks of a user, those in other containers too, which nobody sees from in here: where so
    many are there that nothing could be started any more, only the worker's keeper counts."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    wanted = count + (_count_tasks_of_user() if shares_user else 0)
    if not shares_user or _allows_threads(wanted, before):
        _lower(resource.RLIMIT_NPROC, wanted)


def _allows_threads(limit: int, before: tuple[int, int]) -> bool:
    """Whether a thread can be started under that limit, which is taken back."""
    soft, hard = before
    ceiling = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (ceiling, hard))
    try:
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    except RuntimeError:
        return False
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return True


def _count_tasks_of_user() -> int:
    tasks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if process.stat().st_uid == os.getuid():
                tasks += len(os.listdir(process / "task"))  # noqa: PTH208 - their number is all that is wanted
    return tasks


def _lower(which: int, value: int, *, grace: int = 0) -> None:
    hard = resource.getrlimit(which)[1]
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    last = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(which, (ceiling, last))


def redirect_output(descriptor: int) -> None:
    """Standard output and error go to `descriptor`, standard input to nothing."""
    with Path("/dev/null").open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
