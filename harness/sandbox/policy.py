"""The walls around workers and compilers: which there are to be, what can be seen behind them, and the environment.

The outermost is bubblewrap, or a private root that `launcher` makes in namespaces of its own. What each
worker gives up after it was forked is in `harness.worker.init_process`. The judge records what was in force.
"""

from __future__ import annotations

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
JUDGE_ONLY = "OMP_WAIT_POLICY"  # see `harness.executors`: the judge's threads sleep, a worker's do as libraries do
ENVIRONMENT_PREFIXES = ("OMP_", "MKL_", "KMP_", "GOMP_", "NVIDIA_")


DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
# The launcher runs before anything is closed: it imports this package's walls from here, and no other package.
_LAUNCHER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from harness.worker.isolation.launcher import main; main()"
)
PROBE_TIMEOUT_S = 10.0
TEMPORARY_BYTES = 4 << 30  # of /tmp beside a compiler, where bubblewrap is missing
BUILD_LIMITS = {"memory_bytes": None, "scratch_bytes": 8 << 30, "processes": 4096, "cpu_s": 7200}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Which walls are to be built. `probe_confinement` finds the strongest that this machine has.

    `bubblewrap` is that program's path or None. Without it, `namespaces` means that a private root is made by
    `worker.isolation.launcher`. `filters`: Landlock and seccomp, as far as the kernel has them. `weakness` says why no
    stronger walls were taken, or is empty.
    """

    bubblewrap: str | None
    namespaces: bool = True
    filters: bool = True
    weakness: str = ""

    @property
    def has_own_root(self) -> bool:
        return self.bubblewrap is not None or self.namespaces

    @property
    def root_name(self) -> str | None:
        """The outermost wall, for the record."""
        if self.bubblewrap is not None:
            return "bubblewrap"
        return "private root" if self.namespaces else None

    def wrap(self, command: Sequence[str], *, readable: Iterable[Path], writable: Iterable[Path] = ()) -> list[str]:
        """The command without network, and without sight of anything but what it may read, as far as walls are to be
        had. All privileges are gone, and only `writable` can be written."""
        if not self.filters and not self.has_own_root:
            return list(command)
        readable, writable = [*readable, *worker_package_files()], list(writable)
        launched = self._launch(command, readable, writable, for_workers=False)
        return self._put_into_bubblewrap(launched, readable, writable)

    def wrap_forkserver(self, command: Sequence[str], *, readable: Iterable[Path]) -> list[str]:
        """The same root for a command that makes more walls itself, for each of its workers."""
        readable = list(readable)
        if self.bubblewrap is None and self.namespaces:
            return self._launch(command, readable, (), for_workers=True)
        return self._put_into_bubblewrap(command, readable, ())

    def _put_into_bubblewrap(
        self, command: Sequence[str], readable: Iterable[Path], writable: Iterable[Path]
    ) -> list[str]:
        if self.bubblewrap is None:
            return list(command)
        return [*_bubblewrap_arguments(self.bubblewrap, readable, writable), "--", *command]

    def _launch(
        self, command: Sequence[str], readable: Iterable[Path], writable: Iterable[Path], *, for_workers: bool
    ) -> list[str]:
        walls = {
            "private_root": self.bubblewrap is None and self.namespaces,
            "own_root": self.has_own_root,
            "for_workers": for_workers,
            "filters": self.filters,
            "readable": readable_paths(readable),
            "writable": [str(path) for path in writable],
            "devices": device_paths(),
            "temporary_bytes": TEMPORARY_BYTES,
            "limits": BUILD_LIMITS,
        }
        package_root = str(Path(__file__).resolve().parents[2])
        return [sys.executable, "-I", "-S", "-B", "-c", _LAUNCHER, package_root, json.dumps(walls), *command]


def probe_confinement(wanted: str = "auto", *, timeout_s: float = PROBE_TIMEOUT_S) -> Confinement:
    """The strongest walls to be had. `wanted` "auto" or "none"; each kind counts only if it really starts in time."""
    if wanted == "none":
        return Confinement(bubblewrap=None, namespaces=False, filters=False, weakness="no walls were wanted")
    path = shutil.which("bwrap")
    why = "bubblewrap is not installed" if path is None else why_not(Confinement(bubblewrap=path), timeout_s)
    if not why:
        return Confinement(bubblewrap=path)
    own = Confinement(bubblewrap=None, weakness=why)
    lacks = why_not(own, timeout_s)
    if not lacks:
        return own
    return Confinement(bubblewrap=None, namespaces=False, weakness=f"{why}; {lacks}")


def why_not(walls: Confinement, timeout_s: float = PROBE_TIMEOUT_S) -> str:
    """What went wrong when a command was started behind these walls; empty if nothing did."""
    name = walls.root_name
    command = walls.wrap(["true"], readable=interpreter_folders())
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
    """All that can be read behind the walls: the system's folders and files, and these. One list for every kind."""
    return [*SYSTEM_FOLDERS, *SYSTEM_FILES, *(str(path) for path in _without_nested(more))]


def device_paths() -> list[str]:
    """Harmless device nodes, and those of NVIDIA's driver where there is one."""
    return [*DEVICES, *sorted(str(node) for node in Path("/dev").glob("nvidia*"))]


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
    """Each folder once, outer ones first, by every name it goes by; what lies below another is there already."""
    kept = [Path(folder) for folder in SYSTEM_FOLDERS]
    system = len(kept)
    named = {name for folder in folders for name in (folder.absolute(), folder.resolve())}
    for folder in sorted(named, key=lambda path: len(path.parts)):
        if folder.exists() and not any(folder.is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return kept[system:]


def interpreter_folders() -> list[Path]:
    """What a Python with torch, and the compilers, must be able to read: installation, environment, import path."""
    names = [sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_path("include"), *_site_folders()]
    names += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    names += [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [*(Path(name) for name in names if name), *_compiler_folders()]


def _compiler_folders() -> list[Path]:
    """The installations of the compilers that are on the PATH or named by CC and CXX, wherever they lie; of one that
    lies straight below the home folder only its own folder."""
    named = [os.environ.get(name, "") for name in ("CC", "CXX")]
    found = [shutil.which(name) for name in (*named, "cc", "c++", "gcc", "g++", "nvcc") if name]
    programs = {Path(path) for path in found if path} | {Path(path).resolve() for path in found if path}
    closed = {Path("/"), Path.home(), *Path.home().parents}
    return [path.parent if path.parent.parent in closed else path.parent.parent for path in sorted(programs)]


def _site_folders() -> list[str]:
    """Folders of the import path that hold installed packages; never the working folder or a checkout."""
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def worker_package_files() -> list[Path]:
    """The parts of this package that a worker imports. The judge, the problems and the results stay out of sight."""
    package = Path(__file__).resolve().parents[1]
    return [package / "__init__.py", *(package / name for name in ("domain", "protocol", "worker"))]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a worker or compiler: an allow-list, so that no key or token gets in."""
    kept = {name: value for name, value in os.environ.items() if name in ENVIRONMENT}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT_PREFIXES)}
    kept.pop(JUDGE_ONLY, None)
    kept.setdefault("PATH", os.defpath)
    kept["LANG"] = kept.get("LANG", "C.UTF-8")
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept | dict(extra or {})
