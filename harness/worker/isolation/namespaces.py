"""Isolates a process: namespaces, mounts, privileges, system calls, resource limits."""

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
SHARED_MEMORY_BYTES = 64 << 20  # /dev/shm, used for semaphores
OPEN_FILES = 4096  # per process; bounds the work of scanning them
EVALUATOR_PROCESSES = 8192  # of an evaluator, its workers and its compilers
FIRST_TO_KILL = 1000  # by the OOM killer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`memory_bytes` None means unlimited, since a CUDA context reserves far more than it uses."""

    memory_bytes: int | None
    scratch_bytes: int
    processes: int
    cpu_s: int


def die_with_parent() -> None:
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def drop_root() -> None:
    """Become an unprivileged user, since RLIMIT_NPROC does not bind root, if one is mapped and can read the files."""
    needed = (Path(sys.executable), Path(os.__file__), Path(__file__))
    if os.getuid() == 0 and all(_is_open_to_others(path.resolve()) for path in needed):
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
            os.setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
        # Changing ids makes /proc/self inaccessible to its owner, but the id maps are written there.
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _is_open_to_others(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def enter_namespaces() -> bool:
    """The next child is PID 1. Return False if namespaces are not permitted."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INSIDE_ID} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{INSIDE_ID} {group} 1")
    return True


def enter_namespaces_for_many() -> None:
    """Enter namespaces for several workers or a build: a process outside maps root and `nobody`. Raises OSError."""
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
    """Make all current mounts read-only. Return False before Linux 5.12."""
    linux.mount("none", "/", None, linux.MS_PRIVATE | linux.MS_REC)
    try:
        linux.set_mount_attributes("/", linux.MOUNT_ATTR_RDONLY, recursive=True)
    except OSError:
        return False
    return True


def mount_scratch(folder: str, size_bytes: int) -> None:
    """Mount a tmpfs over `folder`, a small one over /dev/shm, unless it would hide `folder`, and if permitted a /proc
    of this PID namespace.
    """
    plain = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("scratch", folder, "tmpfs", plain, f"size={size_bytes},mode=700")
    if not Path(folder).is_relative_to("/dev/shm"):
        with contextlib.suppress(OSError):
            linux.mount("shm", "/dev/shm", "tmpfs", plain, f"size={SHARED_MEMORY_BYTES},mode=700")
    # Refused if an outer sandbox masks parts of /proc; its restricted view then stays.
    with contextlib.suppress(OSError):
        linux.mount("proc", "/proc", "proc", plain | linux.MS_NOEXEC)


def adopt_orphans() -> None:
    linux.check(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def restrict_calls(access: Access, *, has_own_root: bool) -> list[str]:
    """Apply Landlock and seccomp; return active layers. Without a private root, Unix sockets may not connect."""
    restricted = ["landlock"] if restrict_with_landlock(access) else []
    return restricted + (["seccomp"] if filter_system_calls(allow_connections=has_own_root) else [])


def restrict_evaluator() -> None:
    """Remove privileges that an evaluator of a client's problem file does not need. It can still start sandboxes."""
    Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_KILL))
    _limit_processes(EVALUATOR_PROCESSES, shares_user=False)
    filter_system_calls(allow_connections=True, allow_sandboxes=True)


def drop_privileges() -> None:
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None or libc.syscall(number, header, nothing) != 0:
        raise OSError(ctypes.get_errno(), f"capabilities could not be dropped on {os.uname().machine}")


def apply_limits(limits: Limits, *, shares_user: bool = False) -> None:
    """Limits are added to the address space already mapped and, for `shares_user`, to the user's existing tasks."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.scratch_bytes)
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit_processes(limits.processes, shares_user=shares_user)
    # Soft limit: SIGXCPU, which identifies the cause; hard limit: SIGKILL.
    _lower(resource.RLIMIT_CPU, limits.cpu_s, grace=5)
    if limits.memory_bytes is not None:
        mapped_pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower(resource.RLIMIT_AS, mapped_pages * resource.getpagesize() + limits.memory_bytes)


def _limit_processes(count: int, *, shares_user: bool) -> None:
    """Linux counts the user's tasks in other containers, too. If they reach the limit, the init process enforces it."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    wanted = count + (_count_tasks_of_user() if shares_user else 0)
    if not shares_user or _allows_threads(wanted, before):
        _lower(resource.RLIMIT_NPROC, wanted)


def _allows_threads(limit: int, before: tuple[int, int]) -> bool:
    soft, hard = before
    lowered = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (lowered, hard))
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
    lowered = value if hard == resource.RLIM_INFINITY else min(value, hard)
    last = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(which, (lowered, last))


def redirect_output(descriptor: int) -> None:
    with Path("/dev/null").open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
