"""Isolation layers, readable paths and environment of workers and compilers.

The outermost layer is a private root, which `harness.worker.isolation.launcher` makes; `harness.worker.init_process`
applies the others in each worker.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt/cuda", "/etc/alternatives")
SYSTEM_FILES = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/passwd",
    "/sys/devices", "/sys/class",
)  # fmt: skip
ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX",
)  # fmt: skip
EVALUATOR_ONLY = "OMP_WAIT_POLICY"  # set by `harness.executors.processes`; workers keep the libraries' default
ENVIRONMENT_PREFIXES = ("OMP_", "MKL_", "KMP_", "GOMP_", "NVIDIA_")

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
# Runs before any isolation, so it imports only this package's isolation modules.
_LAUNCHER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from harness.worker.isolation.launcher import main; main()"
)
PROBE_TIMEOUT_S = 10.0
TEMPORARY_BYTES = 4 << 30  # of /tmp
BUILD_LIMITS = {"memory_bytes": None, "scratch_bytes": 8 << 30, "processes": 4096, "cpu_s": 7200}


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """`namespaces`: with a private root. `filters`: Landlock, seccomp. `weakness`: why a layer is missing."""

    namespaces: bool = True
    filters: bool = True
    weakness: str = ""

    def wrap(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path] = ()) -> list[str]:
        if not self.filters and not self.namespaces:
            return list(command)
        return self._launch(command, [*readable, *worker_package_files()], writable)

    def wrap_forkserver(self, command: Sequence[str], *, readable: Iterable[Path]) -> list[str]:
        return self._launch(command, readable, for_workers=True) if self.namespaces else list(command)

    def _launch(
        self,
        command: Sequence[str],
        readable: Iterable[Path],
        writable: Iterable[Path] = (),
        *,
        for_workers: bool = False,
        runs_problems: bool = False,
    ) -> list[str]:
        isolation = {
            "private_root": self.namespaces,
            "for_workers": for_workers,
            "runs_problems": runs_problems,
            "filters": self.filters,
            "readable": readable_paths(readable),
            "writable": [str(path) for path in writable],
            "devices": device_paths(),
            "temporary_bytes": TEMPORARY_BYTES,
            "limits": BUILD_LIMITS,
        }
        package_root = str(Path(__file__).resolve().parents[2])
        return [sys.executable, "-I", "-S", "-B", "-c", _LAUNCHER, package_root, json.dumps(isolation), *command]


def wrap_evaluator(command: Sequence[str], *, readable: Iterable[Path]) -> list[str]:
    """Wrap a command that makes sandboxes itself."""
    return Isolation()._launch(command, readable, for_workers=True, runs_problems=True)


def probe_isolation(wanted: str = "auto") -> Isolation:
    if wanted == "none":
        return Isolation(namespaces=False, filters=False, weakness="isolation was disabled")
    why = explain_start_failure(Isolation())
    return Isolation(namespaces=not why, weakness=why)


def explain_start_failure(isolation: Isolation) -> str:
    """Return "" if a command starts."""
    command = isolation.wrap(["true"], readable=interpreter_folders())
    return _explain_failure("a private root", command, PROBE_TIMEOUT_S)


def explain_evaluator_failure() -> str:
    """Return "" if a sandboxed evaluator can make sandboxes."""
    inner = Isolation().wrap(["true"], readable=interpreter_folders())
    outer = wrap_evaluator(inner, readable=[*interpreter_folders(), *worker_package_files()])
    return _explain_failure("a private root in a private root", outer, 6 * PROBE_TIMEOUT_S)


def _explain_failure(name: str, command: Sequence[str], timeout_s: float) -> str:
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=timeout_s, cwd="/")
    except subprocess.TimeoutExpired:
        return f"{name} does not start within {timeout_s:g} s"
    except subprocess.CalledProcessError as error:
        return f"{name} does not start: {error.stderr.decode(errors='replace').strip()[-300:]}"
    except OSError as error:
        return f"{name} does not start: {error}"
    return ""


def readable_paths(more: Iterable[Path]) -> list[str]:
    return [*SYSTEM_FOLDERS, *SYSTEM_FILES, *(str(path) for path in _without_nested(more))]


def device_paths() -> list[str]:
    return [*DEVICES, *sorted(str(node) for node in Path("/dev").glob("nvidia*"))]


def _without_nested(folders: Iterable[Path]) -> list[Path]:
    kept = [Path(folder) for folder in SYSTEM_FOLDERS]
    system = len(kept)
    named = {name for folder in folders for name in (folder.absolute(), folder.resolve())}
    for folder in sorted(named, key=lambda path: len(path.parts)):
        if folder.exists() and not any(folder.is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return kept[system:]


def interpreter_folders() -> list[Path]:
    names = [sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_path("include"), *_site_folders()]
    names += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    names += [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [*(Path(name) for name in names if name), *_compiler_folders()]


def _compiler_folders() -> list[Path]:
    """If a compiler is directly below the home folder, return only its own folder."""
    named = [os.environ.get(name, "") for name in ("CC", "CXX")]
    found = [shutil.which(name) for name in (*named, "cc", "c++", "gcc", "g++", "nvcc") if name]
    programs = {Path(path) for path in found if path} | {Path(path).resolve() for path in found if path}
    closed = {Path("/"), Path.home(), *Path.home().parents}
    return [path.parent if path.parent.parent in closed else path.parent.parent for path in sorted(programs)]


def _site_folders() -> list[str]:
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def worker_package_files() -> list[Path]:
    """Evaluator, problems and results stay hidden."""
    package = Path(__file__).resolve().parents[1]
    return [package / name for name in ("__init__.py", "construction", "domain", "protocol", "worker")]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Use an allow-list, which excludes keys and tokens."""
    kept = {name: value for name, value in os.environ.items() if name in ENVIRONMENT}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT_PREFIXES)}
    kept.pop(EVALUATOR_ONLY, None)
    kept.setdefault("PATH", os.defpath)
    kept["LANG"] = kept.get("LANG", "C.UTF-8")
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept | dict(extra or {})
