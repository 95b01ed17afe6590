"""Runs a user's script in this process, finds the watched model among its calls, and ends the script in time.

The script is trusted. Its own exceptions pass as `ScriptFailed` with the traceback of its frames.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from harness.domain import HarnessError, UsageError

MAX_LISTED = 8
OWN = str(Path(__file__).parents[1])
PASSED = ("run_script", "call", "backward", "__call__", "__torch_dispatch__")  # which call code of the script


class ScriptFailed(HarnessError):
    """The user's script raised; the message is its traceback."""


@dataclass(slots=True)
class ModelFinder:
    """`name` is a variable of the script or of a calling function, or the name of a class."""

    name: str
    found: Callable[[nn.Module], None]
    model: nn.Module | None = None
    others: dict[str, None] = field(default_factory=dict)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Examine each call before the hooks of its module, so that `found` may add some."""
        usual = nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            self._examine(module)
            return usual(module, *args, **kwargs)

        nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            nn.Module.__call__ = usual  # type: ignore[method-assign]

    def _examine(self, module: nn.Module) -> None:
        self.others.setdefault(type(module).__name__)
        if module is self.model or not self._matches(module):
            return
        if self.model is not None:
            raise UsageError(f"{self.name} is the name of several models: name one by its variable")
        if isinstance(module, torch.jit.ScriptModule):
            raise UsageError(f"{self.name} is a TorchScript module, which has no hooks: capture its original")
        self.model = module
        self.found(module)

    def _matches(self, module: nn.Module) -> bool:
        if type(module).__name__ == self.name:
            return self.model is None or module not in set(self.model.modules())
        frames = [frame for frame, _ in traceback.walk_stack(sys._getframe())] if self.model is None else []
        return any(_holds(frame, self.name, module) for frame in frames if not frame.f_code.co_filename.startswith(OWN))

    def require(self) -> nn.Module:
        if self.model is None:
            seen = ", ".join(list(self.others)[:MAX_LISTED]) or "none"
            raise UsageError(
                f"the script never called a model {self.name!r}: give --model a variable of the script or a class, and "
                f"call it, not its forward. Classes of modules that it called: {seen}"
            )
        return self.model


def _holds(frame: FrameType, name: str, module: nn.Module) -> bool:
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for attribute in rest:
        value = getattr(value, attribute, None)
    return unwrap(value) is module


def unwrap(value: Any) -> Any:
    """Return the module that torch.compile wrapped."""
    return getattr(value, "_orig_mod", value)


def run_script(script: Path, arguments: Sequence[str] = ()) -> None:
    """Run it as `__main__`, uncompiled, until it ends or a hook raises SystemExit. Raises ScriptFailed, and UsageError
    if there is no such file."""
    if not script.is_file():
        raise UsageError(f"no script {script}: give the path of a Python file")
    with _as_main(script, arguments), torch.compiler.set_stance("force_eager"):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise ScriptFailed(f"{script} ended with exit code {ended.code}") from ended
        except HarnessError:
            raise
        except Exception as error:
            if _is_own(error):
                raise
            raise ScriptFailed(f"{script} raised an exception:\n{_show(error, script)}") from error


@contextmanager
def _as_main(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Modules beside the script are imported anew by the next run."""
    before = sys.argv, list(sys.path), set(sys.modules), os.environ.copy()
    folder = str(script.resolve().parent)
    sys.argv, sys.path[:0] = [str(script), *arguments], [folder]
    try:
        yield
    finally:
        sys.argv, sys.path[:], known = before[0], before[1], before[2]
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder + os.sep):
                del sys.modules[name]


def _is_own(error: Exception) -> bool:
    """Return whether code of harness raised it, such as a hook, and not the script."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename.startswith(OWN) and frame.name not in PASSED for frame in frames)


def _show(error: Exception, script: Path) -> str:
    """Leave out frames of harness and runpy before the script's first."""
    frames = traceback.extract_tb(error.__traceback__)
    names = [frame.filename for frame in frames]
    with suppress(ValueError):
        frames = traceback.StackSummary.from_list(frames[names.index(str(script)) :])
    shown = [frame for frame in frames if not frame.filename.startswith(OWN)]
    return "".join(
        ["Traceback (most recent call last):\n", *traceback.format_list(shown), *traceback.format_exception_only(error)]
    ).rstrip()
