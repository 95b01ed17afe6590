"""The walls around workers and compilers: bubblewrap where it is installed, an allow-listed environment everywhere.

What each worker gives up by itself after it was forked is in `harness.worker.confine`; the judge records both.
"""

from __future__ import annotations

import os
import shutil
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
JUDGE_ONLY = "OMP_WAIT_POLICY"  # see `harness.executors`: the judge's threads sleep, a worker's do as libraries do
ENVIRONMENT_PREFIXES = ("OMP_", "MKL_", "KMP_", "GOMP_", "NVIDIA_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Which walls this machine has. `bubblewrap` is the program's path or None; see `probe_confinement`."""

    bubblewrap: str | None
    namespaces: bool = True

    def wrap(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path] = ()) -> list[str]:
        """The command inside a read-only system without network, home or other processes; as it is without bwrap."""
        if self.bubblewrap is None:
            return list(command)
        return [*_bubblewrap_arguments(self.bubblewrap, readable, writable), "--", *command]


def probe_confinement(wanted: str = "auto") -> Confinement:
    """The strongest walls to be had. `wanted` "auto" or "none"; bubblewrap counts only if it really starts."""
    if wanted == "none":
        return Confinement(bubblewrap=None, namespaces=False)
    path = shutil.which("bwrap")
    if path is not None and not _starts(path):
        path = None
    return Confinement(bubblewrap=path)


def _starts(path: str) -> bool:
    import subprocess

    command = [*_bubblewrap_arguments(path, (), ()), "--", "true"]
    return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0


def _bubblewrap_arguments(path: str, readable: Iterable[Path], writable: Iterable[Path]) -> list[str]:
    arguments = [path, "--die-with-parent", "--new-session"]
    arguments += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if os.getuid() == 0:
        # Root keeps what it needs to become an ordinary user inside, which process limits do bind.
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        open_to_all = ["--perms", "1777"]
    else:
        arguments += ["--unshare-user"]
        open_to_all = []
    for folder in (*SYSTEM_FOLDERS, *SYSTEM_FILES):
        arguments += ["--ro-bind-try", folder, folder]
    arguments += ["--proc", "/proc", "--dev", "/dev", *open_to_all, "--tmpfs", "/tmp"]
    for node in sorted(Path("/dev").glob("nvidia*")):
        arguments += ["--dev-bind-try", str(node), str(node)]
    for path_to_read in _without_nested(readable):
        # Folders above it would be closed to others where the originals are, and the ordinary user be shut out.
        for above in reversed(path_to_read.parents[:-1]):
            arguments += ["--dir", str(above)]
        arguments += ["--ro-bind-try", str(path_to_read), str(path_to_read)]
    for path_to_write in writable:
        arguments += ["--bind", str(path_to_write), str(path_to_write)]
    return arguments


def _without_nested(folders: Iterable[Path]) -> list[Path]:
    """Each folder once, outer ones first; what lies below another or below a system folder is there already."""
    kept = [Path(folder) for folder in SYSTEM_FOLDERS]
    system = len(kept)
    for folder in sorted(set(folders), key=lambda path: len(path.parts)):
        if folder.exists() and not any(folder.is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return kept[system:]


def interpreter_folders() -> list[Path]:
    """What a Python with torch must be able to read: its installation, its environment, its import path."""
    names = [sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_path("include"), *_site_folders()]
    names += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    names += [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(name) for name in names if name]


def _site_folders() -> list[str]:
    """Folders of the import path that hold installed packages; never the working folder or a checkout."""
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def worker_package_files() -> list[Path]:
    """The parts of this package that a worker imports. The judge, the problems and the results stay out of sight."""
    package = Path(__file__).resolve().parents[1]
    return [package / "__init__.py", *(package / room for room in ("domain", "wire", "worker"))]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a worker or compiler: an allow-list, so that no key or token gets in."""
    kept = {name: value for name, value in os.environ.items() if name in ENVIRONMENT}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT_PREFIXES)}
    kept.pop(JUDGE_ONLY, None)
    kept.setdefault("PATH", os.defpath)
    kept["LANG"] = kept.get("LANG", "C.UTF-8")
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept | dict(extra or {})
