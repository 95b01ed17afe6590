"""Isolates a process: namespaces, mounts, privileges, system calls, resource limits."""

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from harness.worker.isolation import linux
from harness.worker.isolation.landlock import Access, restrict_with_landlock
from harness.worker.isolation.linux import libc, system_call

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


_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_ALLOW, _REFUSE, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_X32_CALLS = 0x40000000  # start of x86-64's x32 numbers
_SET_FILTER, _KEEP_SPECULATION = 1, 4  # the latter avoids a slowdown on older Linux
_AF_UNIX = 1
_SOCKET_KINDS, _SOCKET_KIND_MASK = (1, 5), 0xF  # stream and seqpacket, which send only once connected
_NEW_NAMESPACES = 0x7E020000
_PR_SET_DUMPABLE = 4  # would hide memory use from the evaluator
_PR_SET_PDEATHSIG, _F_SETSIG, _EXIT_SIGNAL_MASK = 1, 10, 0xFF

# Numbers on x86-64 and AArch64 (None: does not exist).
_REFUSED: dict[str, tuple[int, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "acct": (163, 89), "syslog": (103, 116),
    "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "open_by_handle_at": (304, 265),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "unshare": (272, 97), "setns": (308, 268),
    # These can deliver SIGCONT as their notification.
    "timer_create": (222, 107), "mq_notify": (244, 184),
    # Waking thousands of waiters in interrupt context delays other processes on that core, even with the candidate
    # stopped; uninterruptible waits delay its exit.
    "timerfd_create": (283, 85), "signalfd": (282, None), "signalfd4": (289, 74), "io_setup": (206, 0),
    "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
_MAKES_SANDBOXES = ("mount", "umount2", "pivot_root", "mount_setattr", "unshare")
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# Position of the signal number among the arguments. SIGCONT would undo the evaluator's pause.
_SIGNALLING: dict[str, tuple[int, int, int]] = {
    "kill": (62, 129, 1), "tkill": (200, 130, 1), "tgkill": (234, 131, 2), "rt_sigqueueinfo": (129, 138, 1),
    "rt_tgsigqueueinfo": (297, 240, 2), "pidfd_send_signal": (424, 424, 1),
}  # fmt: skip
_SIGCONT = 18
_SOCKET, _CLONE, _CLONE3, _PRCTL, _SECCOMP = (41, 198), (56, 220), (435, 435), (157, 167), (317, 277)
_FCNTL, _CONNECT = (72, 25), (42, 203)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_system_calls(*, allow_connections: bool, allow_sandboxes: bool = False) -> bool:
    """Return False on an unknown architecture or without seccomp.

    Only Unix sockets are allowed (CUDA's driver makes some), and only in pairs if not `allow_connections`.
    `allow_sandboxes` permits namespaces, mounts and signals, for a process that starts and pauses workers.
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        return False
    index, _ = _MACHINES[machine]
    code = _write_program(machine, allow_connections=allow_connections, allow_sandboxes=allow_sandboxes)
    program = _Program(len(code) // 8, code)
    try:
        system_call("seccomp", _SECCOMP[index], _SET_FILTER, _KEEP_SPECULATION, ctypes.byref(program))
    except OSError:
        return False
    return True


def _write_program(machine: str, *, allow_connections: bool, allow_sandboxes: bool) -> bytes:
    index, architecture = _MACHINES[machine]
    lines = [_step(_LOAD, _ARCHITECTURE), *_unless_equal(architecture, _REFUSE), _step(_LOAD, _NUMBER)]
    if machine == "x86_64":
        lines += [_step(_JUMP_AT_LEAST, _X32_CALLS, otherwise=1), _step(_RETURN, _REFUSE)]
    for name, numbers in _REFUSED.items():
        number = numbers[index]
        if number is not None and not (allow_sandboxes and name in _MAKES_SANDBOXES):
            lines += _if_equal(number, [_step(_RETURN, _REFUSE)])
    if not allow_sandboxes:
        lines += _check_processes(index)
    lines += _if_equal(_SOCKET[index], _check_socket(allow_connections=allow_connections))
    if not allow_connections:
        lines += _if_equal(_CONNECT[index], [_step(_RETURN, _REFUSE)])
    return b"".join([*lines, _step(_RETURN, _ALLOW)])


def _check_processes(index: int) -> list[bytes]:
    """Refuse new namespaces, SIGCONT in all its forms, and `prctl` calls that hide the process from the evaluator."""
    # clone3's flags are in memory, out of reach of filters; libc falls back to clone.
    lines = _if_equal(_CLONE3[index], [_step(_RETURN, _NO_SUCH_CALL)])
    has_new_namespace = [_step(_JUMP_ANY_BIT, _NEW_NAMESPACES, otherwise=1), _step(_RETURN, _REFUSE)]
    continues_parent = [_step(_AND, _EXIT_SIGNAL_MASK), *_if_equal(_SIGCONT, [_step(_RETURN, _REFUSE)])]
    checks = [_step(_LOAD, _FIRST_ARGUMENT), *has_new_namespace, *continues_parent]
    lines += _if_equal(_CLONE[index], [*checks, _step(_RETURN, _ALLOW)])
    second = _step(_LOAD, _FIRST_ARGUMENT + 8)
    hides = _if_equal(_PR_SET_DUMPABLE, [_step(_RETURN, _REFUSE)])
    orphans = _if_equal(_PR_SET_PDEATHSIG, [second, *_if_equal(_SIGCONT, [_step(_RETURN, _REFUSE)])])
    lines += _if_equal(_PRCTL[index], [_step(_LOAD, _FIRST_ARGUMENT), *hides, *orphans, _step(_RETURN, _ALLOW)])
    lines += _if_equal(
        _FCNTL[index], [second, *_if_equal(_F_SETSIG, [_step(_RETURN, _REFUSE)]), _step(_RETURN, _ALLOW)]
    )
    for call in _SIGNALLING.values():
        continues = _if_equal(_SIGCONT, [_step(_RETURN, _REFUSE)])
        sent = _step(_LOAD, _FIRST_ARGUMENT + 8 * call[2])
        lines += _if_equal(call[index], [sent, *continues, _step(_RETURN, _ALLOW)])
    return lines


def _check_socket(*, allow_connections: bool) -> list[bytes]:
    is_unix = [_step(_LOAD, _FIRST_ARGUMENT), *_unless_equal(_AF_UNIX, _REFUSE)]
    if allow_connections:
        return [*is_unix, _step(_RETURN, _ALLOW)]
    load_kind = [_step(_LOAD, _FIRST_ARGUMENT + 8), _step(_AND, _SOCKET_KIND_MASK)]
    allowed = [step for kind in _SOCKET_KINDS for step in _if_equal(kind, [_step(_RETURN, _ALLOW)])]
    return [*is_unix, *load_kind, *allowed, _step(_RETURN, _REFUSE)]


def _step(operation: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, then, otherwise, value)


def _if_equal(value: int, steps: list[bytes]) -> list[bytes]:
    return [_step(_JUMP_EQUAL, value, otherwise=len(steps)), *steps]


def _unless_equal(value: int, answer: int) -> list[bytes]:
    return [_step(_JUMP_EQUAL, value, then=1), _step(_RETURN, answer)]
