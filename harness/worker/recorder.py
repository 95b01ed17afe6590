"""Stands in the place of torch's `load_inline` and `load`: sends the request to the judge, loads what comes back.

The arguments are bound to torch's own signatures, so a wrong keyword fails here as it would there. The judge's side
compiles; here a finished library is copied into the scratch folder and imported under the name that was asked for.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from harness.wire import Channel
from harness.worker.profile import Observer

HEADER_SUFFIXES = (".h", ".hpp", ".cuh", ".hh", ".inl", ".inc")
MAX_HEADER_BYTES = 4 * 1024 * 1024


class Recorder:
    """Captures extension builds of one candidate. `install` puts it in the place of torch's functions.

    What it loads is loaded under the eyes of `observer`.
    """

    def __init__(self, judge: Channel, scratch: Path, observer: Observer) -> None:
        self._judge = judge
        self._scratch = scratch
        self._observer = observer
        self._load_inline = inspect.signature(cpp_extension.load_inline)
        self._load = inspect.signature(cpp_extension.load)
        self._count = 0

    def install(self) -> None:
        cpp_extension.load_inline = self.load_inline
        cpp_extension.load = self.load

    def load_inline(self, *args: Any, **kwargs: Any) -> Any:
        given = _bind(self._load_inline, args, kwargs)
        request = _common_request(given)
        request["cpp_sources"] = _texts(given["cpp_sources"])
        request["cuda_sources"] = _texts(given["cuda_sources"])
        request["functions"] = _functions(given["functions"])
        for option in ("no_implicit_headers", "with_pytorch_error_handling"):
            if given.get(option) is not None:
                request[option] = bool(given[option])
        return self._build(request)

    def load(self, *args: Any, **kwargs: Any) -> Any:
        given = _bind(self._load, args, kwargs)
        request = _common_request(given)
        paths = [Path(path) for path in _texts(given["sources"])]
        request["files"] = [[path.name, path.read_text()] for path in paths]
        request["headers"] += _headers({path.resolve().parent for path in paths})
        return self._build(request)

    def _build(self, request: dict[str, Any]) -> Any:
        self._judge.send({"kind": "build", "request": request})
        answer, descriptors = self._judge.receive()
        if not answer["ok"]:
            raise RuntimeError(f"Error building extension '{request['name']}': {answer['log']}")
        self._count += 1
        folder = self._scratch / "extensions" / str(self._count)
        folder.mkdir(parents=True)
        path = folder / f"{request['name']}.so"
        with os.fdopen(descriptors[0], "rb") as library, path.open("wb") as copy:
            shutil.copyfileobj(library, copy)
        return self._observer.watch(lambda: _load_library(request, path))


def _load_library(request: dict[str, Any], path: Path) -> Any:
    if not request["is_python_module"]:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        return str(path)
    return _import_extension(request["name"], path)


def _import_extension(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported as an extension")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bind(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _common_request(given: dict[str, Any]) -> dict[str, Any]:
    folders = {Path(path).resolve() for path in _texts(given["extra_include_paths"])}
    return {
        "name": str(given["name"]),
        "headers": _headers(folders),
        "extra_cflags": _texts(given["extra_cflags"]),
        "extra_cuda_cflags": _texts(given["extra_cuda_cflags"]),
        "extra_ldflags": _texts(given["extra_ldflags"]),
        "with_cuda": None if given["with_cuda"] is None else bool(given["with_cuda"]),
        "is_python_module": bool(given["is_python_module"]),
    }


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    return [os.fspath(item) for item in value]


def _functions(value: Any) -> list[list[str]] | None:
    """Exported names with docstrings, by torch's rules; its error where it has one."""
    if value is None:
        return None
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        value = {name: name for name in value}
    if not isinstance(value, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(value)}")
    return [[str(name), str(docstring)] for name, docstring in value.items()]


def _headers(folders: set[Path]) -> list[list[str]]:
    """Header files that the candidate wrote into its own folders, by path below the folder."""
    found: dict[str, str] = {}
    total = 0
    for folder in sorted(folders):
        if not _is_own(folder):
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix in HEADER_SUFFIXES and path.is_file():
                total += path.stat().st_size
                if total > MAX_HEADER_BYTES:
                    raise RuntimeError(f"headers below {folder} exceed {MAX_HEADER_BYTES} bytes")
                found[str(path.relative_to(folder))] = path.read_text()
    return [[name, text] for name, text in found.items()]


def _is_own(folder: Path) -> bool:
    """Only folders a worker can write to hold its own headers; system ones are the judge's to add."""
    return folder.is_dir() and os.access(folder, os.W_OK)
