"""Puts walls around a command and runs it: `... launch WALLS COMMAND...`, where WALLS is the judge's wish as JSON.

What bubblewrap does where that is installed: namespaces, a root of its own, no privileges, then Landlock, a filter of
system calls and limits. Used for the forkserver (which adds its own for each worker) and for compilers. Ends with the
command's own exit code; with 125, and a reason on standard error, if a wall that was asked for cannot be had.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

from harness.worker.isolation import namespaces
from harness.worker.isolation.landlock import Access
from harness.worker.isolation.private_root import Contents, enter_private_root
from harness.worker.isolation.reaper import shell_status, wait_for

CANNOT = 125


def main() -> NoReturn:
    walls, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        status = _run_in_private_root(walls, command) if walls["private_root"] else _become(walls, command)
    except OSError as error:
        print(f"the walls cannot be built: {error}", file=sys.stderr)
        status = CANNOT
    sys.stderr.flush()
    os._exit(status)


def _run_in_private_root(walls: dict[str, Any], command: list[str]) -> int:
    """Three processes: this one waits, process 1 of the namespaces collects orphans, the third is the command."""
    namespaces.enter_namespaces_for_many()
    namespaces.die_with_parent()
    first = os.fork()
    if first:
        return shell_status(os.waitpid(first, 0)[1])
    contents = Contents(
        readable=tuple(walls["readable"]),
        writable=tuple(walls["writable"]),
        devices=tuple(walls["devices"]),
        temporary_bytes=walls["temporary_bytes"],
    )
    enter_private_root(contents, can_write_proc=walls["for_workers"])
    if walls["for_workers"]:
        namespaces.drop_root()
    namespaces.drop_privileges()
    namespaces.die_with_parent()  # after the change of user, which would undo it
    child = os.fork()
    return wait_for(child) if child else _become(walls, command)


def _become(walls: dict[str, Any], command: list[str]) -> NoReturn:
    namespaces.die_with_parent()
    if not walls["for_workers"]:
        _seal(walls)
    os.execvp(command[0], command)


def _seal(walls: dict[str, Any]) -> None:
    """The last walls, for a command that builds none itself."""
    has_own_root = walls["own_root"]
    if not has_own_root and walls["writable"]:
        os.environ["TMPDIR"] = walls["writable"][0]
    namespaces.apply_limits(namespaces.Limits(**walls["limits"]), shares_user=not has_own_root)
    namespaces.drop_privileges()
    access = Access(
        readable=(*walls["readable"], "/proc"),
        writable=(*walls["writable"], *(("/tmp",) if has_own_root else ())),
        devices=tuple(walls["devices"]),
        listable=("/",) if has_own_root else (),
    )
    if walls["filters"]:
        namespaces.restrict_calls(access, has_own_root=has_own_root)
