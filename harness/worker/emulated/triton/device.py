"""Prepares Triton in a worker of the emulated device."""

from __future__ import annotations

import os
from typing import Any

from harness.worker.emulated.link import EmulatorLink


def install(link: EmulatorLink, target: dict[str, Any], *, compiles: bool) -> None:
    """Must run before the candidate is imported. Does nothing without Triton."""
    os.environ["TRITON_INTERPRET"] = "0" if compiles else "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as Triton 3.9 does, which warns where it is not set
    try:
        from harness.worker.emulated.triton import autotune, block_pointers, driver
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        return
    driver.activate(target)
    block_pointers.install(lambda: _warn_of_block_pointers(link) if compiles else None)
    if compiles:
        from harness.worker.emulated.triton.compilation import KernelCompiler

        autotune.choose_compilable()
        KernelCompiler(link, target).install()
    else:
        from harness.worker.emulated.triton.launch import install as install_interpreter

        autotune.choose_by_order(link)
        install_interpreter(link)


def _warn_of_block_pointers(link: EmulatorLink) -> None:
    message = "block pointers exist only in Triton before 3.9; compiled as earlier versions do"
    link.report_compilation("removed_interface", "", message, decides=False)
