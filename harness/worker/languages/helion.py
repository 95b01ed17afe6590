"""Helion in the worker: its kernels take a given configuration, and Triton compiles or interprets what it generates."""

from __future__ import annotations

import os
from typing import Any

from harness.worker.languages import Preparation


def prepare(preparation: Preparation) -> None:
    os.environ["HELION_AUTOTUNE_EFFORT"] = "none"  # its search takes minutes: the default configuration instead
    if preparation.target is not None:
        _choose_first_configurations()


def _choose_first_configurations() -> None:
    """Kernels take the first of their configurations: times mean nothing here. Without Helion, the candidate's own
    import fails."""
    try:
        from helion.runtime.kernel import Kernel
    except ModuleNotFoundError as error:
        if error.name != "helion":
            raise
        return
    construct = Kernel.__init__

    def construct_with_one(kernel: Any, *args: Any, **kwargs: Any) -> None:
        construct(kernel, *args, **kwargs)
        kernel.configs = kernel.configs[:1]

    Kernel.__init__ = construct_with_one
