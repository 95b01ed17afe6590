"""Imports compilers into the forkserver: importing them in each worker would take seconds."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

WARM_POOL = "TORCH_WARM_POOL"


def preload_compilers(names: Sequence[str]) -> None:
    """Import modules, then call each `module:function` whose module is imported. Ignore failures: the program that uses
    the compiler fails again with the reason."""
    with _without_pool():
        for name in names:
            if ":" not in name:
                with suppress(Exception):
                    importlib.import_module(name)
    for name in names:
        module, _, attribute = name.partition(":")
        function = getattr(sys.modules.get(module), attribute, None) if attribute else None
        if function is not None:
            with suppress(Exception):
                function()
    gc.freeze()


@contextmanager
def _without_pool() -> Iterator[None]:
    """Older versions of torch start compiling processes when Inductor is imported. All workers would share them,
    outside their isolation.
    """
    usual = os.environ.get(WARM_POOL)
    os.environ[WARM_POOL] = "0"
    try:
        yield
    finally:
        del os.environ[WARM_POOL]
        if usual is not None:
            os.environ[WARM_POOL] = usual
