"""Waits for processes and ends descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from harness.protocol.process_tree import find_tree


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
