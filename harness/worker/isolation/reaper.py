"""How processes ended, and an end to all that one has started."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from harness.protocol.process_tree import find_tree


def require_child_lists() -> None:
    """Raises OSError on a kernel that does not list a process's children: nothing could be stopped as a whole."""
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        raise OSError("this kernel has no /proc/<pid>/task/<tid>/children (CONFIG_PROC_CHILDREN)")


def wait_for(child: int) -> int:
    """What process 1 of new namespaces does: collects orphans until its own child ends; how that ended."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return shell_status(status)


def shell_status(status: int) -> int:
    """An exit code that also tells a signal: 128 + its number, as shells have it."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def end_descendants() -> None:
    """Ends all descendants of this process, which must adopt orphans; returns when the kernel knows of none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for process in find_tree(os.getpid()) - {os.getpid()}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)
