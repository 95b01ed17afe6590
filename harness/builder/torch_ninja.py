"""Writes sources and ninja file through torch's own `load_inline` and `load`, without running ninja."""

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.builder.toolchain import import_torch_extension, ninja_program
from harness.domain import BuildRequest, BuildToolError

KEPT = "kept"  # the folder for nvcc's intermediate files
_planning = threading.Lock()
_STANDARDS = re.compile(r"-std=\S+")


def write_plan(request: BuildRequest, folder: Path) -> None:
    """A CUDA request must name the target in its flags. Raises BuildToolError if torch cannot use the tools."""
    include = folder / "include"
    for name, text in request.headers:
        path = include / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    options: dict[str, Any] = {
        "extra_cflags": list(request.extra_cflags),
        "extra_cuda_cflags": list(request.extra_cuda_cflags),
        "extra_ldflags": list(request.extra_ldflags),
        "extra_include_paths": [str(include)] if request.headers else None,
        "build_directory": str(folder),
        "with_cuda": request.with_cuda,
    }
    with _planning, ninja_on_path(), _torch_plans_only() as torch_extension:
        try:
            _call_torch(torch_extension, request, folder, options)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise BuildToolError(f"torch cannot build {request.name}: {error}") from error
    if request.needs_cuda:
        (folder / KEPT).mkdir()
        plan = folder / "build.ninja"
        plan.write_text(plan.read_text(encoding="utf-8").replace("= $nvcc ", f"= $nvcc --keep --keep-dir {KEPT} "))


def list_kept(folder: Path) -> list[Path]:
    """Return the fat binaries that nvcc made, which no flag or source of a request can name."""
    return sorted([*folder.glob(f"{KEPT}/*.fatbin"), *folder.glob("*.fatbin")])


def read_plan(folder: Path) -> dict[str, str]:
    text = (folder / "build.ninja").read_text(encoding="utf-8")
    return {name: value.strip() for name, value in re.findall(r"^(\w+) = ?(.*)$", text, re.MULTILINE)}


def plan_empty_builds(request: BuildRequest, folder: Path, target: str) -> Iterator[list[str]]:
    """Yield commands that build an empty file with each compiler of the plan, for torch's standard and the `target`."""
    plan = read_plan(folder)
    own = {*request.extra_cflags, *request.extra_cuda_cflags}

    def options_of(*names: str) -> list[str]:
        return [flag for name in names for flag in _STANDARDS.findall(plan.get(name, "")) if flag not in own]

    (folder / "empty").touch()
    host = options_of("cflags")
    yield [*shlex.split(plan["cxx"]), *host, "-x", "c++", "empty", "-shared", "-fPIC", "-o", "empty.so"]
    if "nvcc" in plan:
        device = options_of("cuda_cflags", "cuda_post_cflags")
        yield [*shlex.split(plan["nvcc"]), target, *device, "-x", "cu", "empty", "-c", "-o", "empty.o"]


def _call_torch(torch_extension: Any, request: BuildRequest, folder: Path, options: dict[str, Any]) -> None:
    if request.files:
        sources = folder / "sources"
        sources.mkdir()
        for name, text in request.files:
            (sources / name).write_text(text, encoding="utf-8")
        torch_extension.load(request.name, [str(sources / name) for name, _ in request.files], **options)
        return
    if not request.with_pytorch_error_handling:
        options["with_pytorch_error_handling"] = False
    if request.no_implicit_headers:
        options["no_implicit_headers"] = True
    torch_extension.load_inline(
        request.name,
        cpp_sources=list(request.cpp_sources),
        cuda_sources=list(request.cuda_sources),
        functions=None if request.functions is None else dict(request.functions),
        **options,
    )


@contextmanager
def _torch_plans_only() -> Iterator[Any]:
    """Disable building and importing in torch's extension module. Reset its counter, which renames extensions."""
    cpp_extension = import_torch_extension()
    replaced = {
        "_run_ninja_build": lambda *_, **__: None,
        "_import_module_from_library": lambda *_, **__: None,
        "JIT_EXTENSION_VERSIONER": type(cpp_extension.JIT_EXTENSION_VERSIONER)(),
        # load_inline would remove the precompiled header in torch's folder, which may be in use.
        "remove_extension_h_precompiler_headers": lambda: None,
    }
    saved = {name: getattr(cpp_extension, name) for name in replaced if hasattr(cpp_extension, name)}
    try:
        for name in saved:
            setattr(cpp_extension, name, replaced[name])
        yield cpp_extension
    finally:
        for name, value in saved.items():
            setattr(cpp_extension, name, value)


@contextmanager
def ninja_on_path() -> Iterator[None]:
    saved = os.environ.get("PATH")
    os.environ["PATH"] = f"{saved or ''}:{Path(ninja_program()).parent}"
    try:
        yield
    finally:
        if saved is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = saved
