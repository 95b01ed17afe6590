"""Calls the C functions of the emulator in each loaded extension."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.worker.emulated.host_memory import watch_functions, watch_host_code

MAX_FINDINGS = 64
MAX_TEXT = 600


class EmulatorLink:
    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._libraries: list[ctypes.CDLL] = []
        self._reported: dict[tuple[Any, ...], dict[str, Any]] = {}  # by kernels in Python, each finding once per line

    def adopt(self, path: Path, module: Any, source: str) -> None:
        if not self._settings:
            return
        library = ctypes.CDLL(str(path))
        if not hasattr(library, "harness_emulator_take_findings"):
            return
        library.harness_emulator_take_findings.restype = ctypes.c_char_p
        library.harness_emulator_configure.argtypes = [ctypes.c_char_p]
        library.harness_emulator_configure.restype = None
        library.harness_emulator_error_text.restype = ctypes.c_char_p
        library.harness_emulator_keep_from_kernels.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.harness_emulator_keep_from_kernels.restype = None
        library.harness_emulator_place_on_gpu.argtypes = [ctypes.c_void_p]
        library.harness_emulator_place_on_gpu.restype = None
        self._libraries.append(library)
        _configure(library, self._settings)
        if library.harness_emulator_is_checked():
            watch_host_code(source, library.harness_emulator_place_on_gpu)
        if isinstance(module, ModuleType):
            watch_functions(module, source, library.harness_emulator_keep_from_kernels)

    def configure(self, changed: dict[str, Any]) -> None:
        """Apply settings also to extensions loaded later."""
        self._settings = {**self._settings, **changed}
        for library in self._libraries:
            _configure(library, self._settings)

    def setting(self, name: str) -> Any:
        return self._settings.get(name)

    def report(self, finding: dict[str, Any]) -> None:
        if len(self._reported) < MAX_FINDINGS:
            self._reported.setdefault((finding["check"], finding["line"], finding["kernel"]), finding)

    def report_compilation(
        self, check: str, kernel: str, message: str, *, decides: bool = True, file: str = "", line: int = 0
    ) -> None:
        self.report({
            "check": check, "severity": "error" if decides else "warning", "message": message,
            "file": file, "line": line, "kernel": kernel, "block": "", "thread": "",
        })  # fmt: skip

    def raise_error(self) -> None:
        """Raise a pending launch error, as torch does at its next use of the GPU."""
        for library in self._libraries:
            error = library.harness_emulator_take_error()
            if error:
                raise RuntimeError(f"CUDA error: {library.harness_emulator_error_text(error).decode()}")

    def take_findings(self) -> list[dict[str, Any]]:
        found = [one for library in self._libraries for one in json.loads(library.harness_emulator_take_findings())]
        found += self._reported.values()
        self._reported.clear()
        return [{name: _shorten(value) for name, value in one.items()} for one in found[:MAX_FINDINGS]]


def _configure(library: ctypes.CDLL, settings: dict[str, Any]) -> None:
    library.harness_emulator_configure(json.dumps(settings).encode())


def _shorten(value: Any) -> Any:
    return value[:MAX_TEXT] if isinstance(value, str) else value
