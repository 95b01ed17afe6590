"""Prepares Helion in a worker of the emulated device; Triton runs the code that Helion generates."""

from __future__ import annotations

from typing import Any


def choose_first_configurations() -> None:
    """Make each kernel use its first configuration, since times mean nothing here. Does nothing without Helion."""
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
