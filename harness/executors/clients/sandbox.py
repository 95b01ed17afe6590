"""The sandbox of an evaluator that runs a client's problem files.

It sees Python, compilers, this package, devices, prebuilt headers and measurements, all read-only; no network and
no process outside. Its files are in memory and end with it. Workers and compilers have their usual sandboxes
inside.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.cache import DRIVERS, KITS, READY, default_cache_folder, find_machine_folder
from harness.hardware.host import CGROUP
from harness.sandbox.policy import clean_environment, interpreter_folders, probe_isolation, wrap_evaluator
from harness.shipped import PACKAGE, find_shipped

if TYPE_CHECKING:
    from harness.executors.evaluator_process import Start

SCRATCH = "/tmp"
MOST_BUILDS_BYTES = 1 << 30


def wrap(command: list[str], *, shared: Path) -> list[str]:
    """`shared` is the cache of trusted evaluations."""
    readable = [*interpreter_folders(), PACKAGE, find_shipped("redteam_corpus"), CGROUP]
    readable += [shared / KITS, find_machine_folder(shared), *shared.glob(DRIVERS)]
    return wrap_evaluator(command, readable=readable)


def name_cache(start: Start) -> Path:
    assert start.setup.settings.cache is not None
    return start.setup.settings.cache


def make_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Exclude keys and tokens of the service. Caches and temporary files are in the scratch space."""
    return clean_environment({"HOME": SCRATCH, "XDG_CACHE_HOME": SCRATCH, **own})


def settle(start: Start) -> Start:
    """Run inside the sandbox before any client code. Make a separate cache with copies of the shared measurements and
    links to the shared prebuilt headers, and find the isolation that is possible here.
    """
    settings, shared, own = start.setup.settings, name_cache(start), default_cache_folder()
    if find_machine_folder(shared).is_dir():
        shutil.copytree(find_machine_folder(shared), find_machine_folder(own))
    (own / KITS).mkdir(parents=True, exist_ok=True)
    for made in (*(ready.parent for ready in (shared / KITS).glob(f"*/{READY}")), *shared.glob(DRIVERS)):
        (own / made.relative_to(shared)).symlink_to(made)

    def move(folder: Path | None) -> Path | None:
        return None if folder is None else own / folder.relative_to(shared)

    settled = replace(
        settings,
        cache=own,
        measurements=move(settings.measurements),
        max_cache_bytes=min(settings.max_cache_bytes, MOST_BUILDS_BYTES),
    )
    setup = replace(start.setup, settings=settled, isolation=probe_isolation(settings.isolation))
    return replace(start, setup=setup, floors=move(start.floors))
