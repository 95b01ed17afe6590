"""Prepares Helion in a worker of the emulated device, where Triton runs what Helion generates."""

from __future__ import annotations

from typing import Any


def choose_first_configurations() -> None:
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
