"""Runs a command in a sandbox: `... launch LAYERS COMMAND...`, where LAYERS is JSON. Replaces bubblewrap.

It serves compilers, the forkserver, and evaluators of clients' problem files. It exits with the command's exit code, or
125 if a requested layer is not available.
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
    layers, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        status = _run_in_private_root(layers, command) if layers["private_root"] else _become(layers, command)
    except OSError as error:
        print(f"the sandbox cannot be set up: {error}", file=sys.stderr)
        status = CANNOT
    sys.stderr.flush()
    os._exit(status)


def _run_in_private_root(layers: dict[str, Any], command: list[str]) -> int:
    """Fork twice: this process waits, PID 1 of the namespaces reaps orphans, and the third becomes the command."""
    namespaces.enter_namespaces_for_many()
    namespaces.die_with_parent()
    first = os.fork()
    if first:
        return shell_status(os.waitpid(first, 0)[1])
    contents = Contents(
        readable=tuple(layers["readable"]),
        writable=tuple(layers["writable"]),
        devices=tuple(layers["devices"]),
        temporary_bytes=layers["temporary_bytes"],
    )
    enter_private_root(contents, can_write_proc=layers["for_workers"])
    if layers["for_workers"]:
        namespaces.drop_root()
    namespaces.drop_privileges()
    namespaces.die_with_parent()  # a change of user resets this
    child = os.fork()
    return wait_for(child) if child else _become(layers, command)


def _become(layers: dict[str, Any], command: list[str]) -> NoReturn:
    namespaces.die_with_parent()
    if layers["runs_problems"]:
        namespaces.restrict_evaluator()
    elif not layers["for_workers"]:
        _seal(layers)
    os.execvp(command[0], command)


def _seal(layers: dict[str, Any]) -> None:
    has_own_root = layers["own_root"]
    if not has_own_root and layers["writable"]:
        os.environ["TMPDIR"] = layers["writable"][0]
    namespaces.apply_limits(namespaces.Limits(**layers["limits"]), shares_user=not has_own_root)
    namespaces.drop_privileges()
    access = Access(
        readable=(*layers["readable"], "/proc"),
        writable=(*layers["writable"], *(("/tmp",) if has_own_root else ())),
        devices=tuple(layers["devices"]),
        listable=("/",) if has_own_root else (),
    )
    if layers["filters"]:
        namespaces.restrict_calls(access, has_own_root=has_own_root)
