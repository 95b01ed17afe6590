"""Imports compilers into the forkserver: importing them in each worker would take seconds."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

# By the word in a program that names them. None of these modules opens a GPU when it is imported, or starts threads or
# processes without a pool.
_INDUCTOR = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.codecache")
MODULES = {"triton": ("triton.language", "triton.compiler"), "torch.compile": _INDUCTOR, "helion": _INDUCTOR}
# Each reads all files of its compiler for the keys of its cache, and keeps the result.
_KEYS = (
    ("triton.runtime.cache", "triton_key"),
    ("triton.compiler.compiler", "triton_key"),
    ("torch._inductor.codecache", "torch_key"),
)

WARM_POOL = "TORCH_WARM_POOL"


def preload_compilers(words: Sequence[str]) -> None:
    """Ignore failures: the program that uses the compiler fails again with the reason."""
    with _without_pool():
        for module in dict.fromkeys(module for word in words for module in MODULES[word]):
            with suppress(Exception):
                importlib.import_module(module)
    for module, key in _KEYS:
        find_key = getattr(sys.modules.get(module), key, None)
        if find_key is not None:
            with suppress(Exception):
                find_key()
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
