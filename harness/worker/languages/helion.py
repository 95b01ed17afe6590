"""Prepares Helion in the worker. Its kernels take a given configuration; Triton compiles or interprets them."""

import os
from typing import Any

from harness.worker.languages import Preparation


def prepare(preparation: Preparation) -> None:
    os.environ["HELION_AUTOTUNE_EFFORT"] = "none"  # its search takes minutes: the default configuration instead
    if preparation.target is not None:
        _choose_first_configurations()


def _choose_first_configurations() -> None:
    """Make each kernel use its first configuration, since times mean nothing here. Do nothing without Helion."""
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
