"""Prepares torch's compiler beside kernels that a program writes: it compiles here, where it is seen."""

import os
import sys
from typing import Any

from harness.worker.languages import Preparation
from harness.worker.triton_compilations import keep_compilations

_CONFIG = "torch._inductor.config"
_SETTINGS = {  # without other processes, and without kernels that an earlier worker compiled and stored with its graph
    "compile_threads": ("TORCHINDUCTOR_COMPILE_THREADS", 1),
    "bundle_triton_into_fx_graph_cache": ("TORCHINDUCTOR_BUNDLE_TRITON_INTO_FX_GRAPH_CACHE", 0),
}


def prepare(preparation: Preparation) -> None:
    if preparation.target is not None:
        return
    keep_compilations()
    for name, (variable, value) in _SETTINGS.items():
        os.environ[variable] = str(value)
        config: Any = sys.modules.get(_CONFIG)
        if hasattr(config, name):  # imported before, so that it has read the environment
            setattr(config, name, type(getattr(config, name))(value))
