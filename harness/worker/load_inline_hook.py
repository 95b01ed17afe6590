"""Replaces torch's `load_inline` and `load`: sends build requests to the evaluator and imports the returned library."""

import importlib.util
import inspect
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from harness.protocol import Channel
from harness.protocol.channel import WorkerReply
from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer

HEADER_SUFFIXES = frozenset({
    ".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".tcc", ".def", ".cu", ".cpp", ".cc",
    ".c",
})  # fmt: skip
# HOME is the scratch folder; without a sandbox these are writable too.
SHARED_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
MAX_HEADER_BYTES = 4 * 1024 * 1024
SENDABLE_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")  # accepted by the evaluator
# Keywords that are sent, and those that do not affect the result.
_CARRIED = frozenset({
    "name", "sources", "cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags",
    "extra_include_paths", "with_cuda", "is_python_module", "with_pytorch_error_handling", "no_implicit_headers",
})  # fmt: skip
_WITHOUT_EFFECT = frozenset({
    "build_directory", "verbose", "keep_intermediates", "use_pch", "gil_not_used", "extra_sycl_cflags",
})  # fmt: skip
_SEARCHED_FOLDER = re.compile(r"(?:^|(?<=\s))(?:-I|-isystem|-iquote|-idirafter)\s*([^\s-]\S*)")


class LoadInlineHook:
    def __init__(self, evaluator: Channel, scratch: Path, observer: Observer, emulators: EmulatorLink) -> None:
        self._evaluator = evaluator
        self._scratch = scratch
        self._observer = observer
        self._emulators = emulators
        self._load_inline = inspect.signature(cpp_extension.load_inline)
        self._load = inspect.signature(cpp_extension.load)
        self._names: dict[str, str] = {}  # request -> name of its extension
        self._loaded: dict[str, Any] = {}  # name -> module or path

    def install(self) -> None:
        cpp_extension.load_inline = self.load_inline
        cpp_extension.load = self.load

    def load_inline(self, *args: Any, **kwargs: Any) -> Any:
        given = _bind(self._load_inline, args, kwargs)
        request = _common_request(given, (), has_cuda_source=bool(given["cuda_sources"]))
        request["cpp_sources"] = _strings(given["cpp_sources"])
        request["cuda_sources"] = _strings(given["cuda_sources"])
        request["functions"] = _functions(given["functions"])
        for option in ("no_implicit_headers", "with_pytorch_error_handling"):
            if given.get(option) is not None:
                request[option] = bool(given[option])
        return self._build(request)

    def load(self, *args: Any, **kwargs: Any) -> Any:
        given = _bind(self._load, args, kwargs)
        paths = [Path(path) for path in _strings(given["sources"])]
        has_cuda_source = any(path.suffix in (".cu", ".cuh") for path in paths)
        request = _common_request(given, [path.parent for path in paths], has_cuda_source=has_cuda_source)
        request["files"] = [[_sendable(path), path.read_text(encoding="utf-8")] for path in paths]
        return self._build(request)

    def _build(self, request: dict[str, Any]) -> Any:
        """An equal request returns the same extension; another with the same name a new module name, as in torch."""
        key = json.dumps(request, sort_keys=True)
        if key not in self._names:
            self._names[key] = self._choose_name(request["name"])
        name = self._names[key]
        if name not in self._loaded:
            self._loaded[name] = self._build_named({**request, "name": name})
        return self._loaded[name]

    def _choose_name(self, name: str) -> str:
        versions = itertools.chain((name,), (f"{name}_v{number}" for number in itertools.count(1)))
        return next(version for version in versions if version not in self._names.values())

    def _build_named(self, request: dict[str, Any]) -> Any:
        self._evaluator.send({"kind": WorkerReply.BUILD, "request": request})
        answer, descriptors = self._evaluator.receive()
        if not answer["ok"]:
            raise RuntimeError(f"Error building extension '{request['name']}': {answer['log']}")
        folder = self._scratch / "extensions" / request["name"]
        folder.mkdir(parents=True)
        path = folder / f"{request['name']}.so"
        with os.fdopen(descriptors[0], "rb") as library, path.open("wb") as copy:
            shutil.copyfileobj(library, copy)
        loaded = self._observer.watch(lambda: _load_library(request, path))
        self._emulators.adopt(path, loaded, _source_of(request))
        return loaded


def _source_of(request: dict[str, Any]) -> str:
    strings = [*request.get("cpp_sources", []), *request.get("cuda_sources", [])]
    return "\n".join([*strings, *(text for _, text in (*request.get("files", []), *request["headers"]))])


def _load_library(request: dict[str, Any], path: Path) -> Any:
    if not request["is_python_module"]:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        return str(path)
    spec = importlib.util.spec_from_file_location(request["name"], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported as an extension")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bind(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Raises TypeError as torch would, and RuntimeError for unsupported options."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        if name not in _CARRIED | _WITHOUT_EFFECT and value:
            raise RuntimeError(
                f"{name}={value!r:.100} is not supported: extensions consist of C++ and CUDA sources, "
                "and are a Python module or an operator library"
            )
    return dict(bound.arguments)


def _common_request(given: dict[str, Any], source_folders: Iterable[Path], *, has_cuda_source: bool) -> dict[str, Any]:
    cflags, cuda_cflags = _flags(given["extra_cflags"]), _flags(given["extra_cuda_cflags"])
    needs_cuda = has_cuda_source if given["with_cuda"] is None else given["with_cuda"]
    targets = _list_targets(cuda_cflags) if needs_cuda else []
    named = [Path(path) for path in _flags(given["extra_include_paths"])]
    in_flags = [Path(path) for path in _SEARCHED_FOLDER.findall(" ".join((*cflags, *cuda_cflags)))]
    beside = [Path(given["build_directory"])] if given["build_directory"] else []
    elsewhere = [f"-I{folder.resolve()}" for folder in named if folder.is_dir() and not _is_own(folder)]
    return {
        "name": str(given["name"]),
        "headers": _headers([*source_folders, *beside, *named, *in_flags]),
        "extra_cflags": cflags + elsewhere,
        "extra_cuda_cflags": targets + cuda_cflags + elsewhere,
        "extra_ldflags": _flags(given["extra_ldflags"]),
        "with_cuda": None if given["with_cuda"] is None else bool(given["with_cuda"]),
        "is_python_module": bool(given["is_python_module"]),
    }


def _list_targets(cuda_cflags: list[str]) -> list[str]:
    """Return flags of TORCH_CUDA_ARCH_LIST if set and no flag names a target. Raises torch's ValueError."""
    is_named = os.environ.get("TORCH_CUDA_ARCH_LIST", "") not in ("", "native")
    return list(cpp_extension._get_cuda_arch_flags(cuda_cflags)) if is_named else []


def _flags(value: Any) -> list[str]:
    """Iterate a plain string by characters, like torch."""
    return [os.fspath(item) for item in value or ()]


def _strings(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    return [os.fspath(item) for item in value]


def _functions(value: Any) -> list[list[str]] | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        value = {name: name for name in value}
    if not isinstance(value, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(value)}")
    return [[str(name), str(docstring)] for name, docstring in value.items()]


def _headers(folders: Iterable[Path]) -> list[list[str]]:
    found: dict[str, str] = {}
    total = 0
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for path in sorted(folder.rglob("*")) if _is_own(folder) else ():
            name = str(path.relative_to(folder))
            if path.suffix not in HEADER_SUFFIXES or not SENDABLE_NAME.fullmatch(name) or not path.is_file():
                continue
            total += path.stat().st_size
            if total > MAX_HEADER_BYTES:
                raise RuntimeError(f"headers below {folder} exceed {MAX_HEADER_BYTES} bytes")
            found.setdefault(name, path.read_text(encoding="utf-8", errors="replace"))
    return [[name, text] for name, text in found.items()]


def _sendable(path: Path) -> str:
    if not SENDABLE_NAME.fullmatch(path.name):
        raise RuntimeError(f"the source file {path.name!r} must have a name of ASCII letters, digits and ._+-")
    return path.name


def _is_own(folder: Path) -> bool:
    path = folder.resolve()
    temporary = any(Path(root).resolve() in path.parents for root in SHARED_TEMPORARY_FOLDERS)
    return path.is_dir() and os.access(path, os.W_OK) and (temporary or path.is_relative_to(Path.home().resolve()))
