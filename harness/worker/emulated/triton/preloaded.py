"""Imports Triton before workers are forked, as its compiler needs it and as its interpreter does: it decides at import
whether its own functions are interpreted. Later imports find the interpreter's, unless `choose_compiler` was called.
"""

import importlib
import os
import sys
from contextlib import suppress
from types import ModuleType

_NATIVE = "triton._C"  # can be imported only once
_OURS = __name__.rpartition(".")[0]


def choose_compiler() -> None:
    _take_out()
    sys.modules.update(_compiler)


def _take_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if f"{name}.".startswith(("triton.", f"{_OURS}."))]
    return {name: sys.modules.pop(name) for name in names if not name.startswith(_NATIVE) and name != __name__}


def _import(*parts: str, interprets: bool) -> None:
    os.environ["TRITON_INTERPRET"] = str(int(interprets))
    try:
        for part in ("block_pointers", "driver", *parts):
            importlib.import_module(f"{_OURS}.{part}")
        with suppress(ImportError):
            importlib.import_module("triton.experimental.gluon")  # as each first launch does
        sys.modules["triton"]._C = sys.modules[_NATIVE]  # type: ignore[attr-defined]
    finally:
        del os.environ["TRITON_INTERPRET"]


_import("compilation", interprets=False)
_compiler = _take_out()
_import("launch", interprets=True)
