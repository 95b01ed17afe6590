"""Denies (EPERM) system calls that neither candidates nor compilers need, by seccomp. Supports x86-64 and AArch64."""

import ctypes
import os
import struct

from harness.worker.isolation.linux import system_call

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
