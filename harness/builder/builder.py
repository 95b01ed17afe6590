"""Builds a requested shared library: check flags, look up, compile in a sandbox, store.

Failed builds are cached too; time-outs and missing or broken tools are not.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from harness.builder.cache import DEFAULT_LIMIT_BYTES, DEVICE_CODE, digest_code, find_entry, prune_cache
from harness.builder.error_excerpt import name_first_error
from harness.builder.fast.prebuilt_cache import PrebuiltCache
from harness.builder.fast.strategy import SCRIPT, prepare_fast
from harness.builder.runner import FAST_BUILD_BYTES, PLAIN_BUILD_BYTES, Compiled, MemoryGate, Runner, Wrap
from harness.builder.targets import select_target, use_device_target, write_default_flag
from harness.builder.toolchain import Toolchain, ninja_program
from harness.builder.torch_ninja import list_kept, plan_empty_builds, write_plan
from harness.domain import BuildRequest, BuildResult, BuildToolError, HarnessError
from harness.domain.build import RUNNING
from harness.hardware.host import count_oom_kills

if TYPE_CHECKING:
    from harness.builder.emulated import EmulatedStrategy
    from harness.emulator import Emulation

# Matches whole lines only: a source can make the compiler print something similar.
_KILLED = re.compile(
    r"^\S+: fatal error: Killed signal terminated program \w+$|^nvcc error +: '\w+' died due to signal 9\b",
    re.MULTILINE,
)
LIBRARY, LOG, STRATEGY, UNCOVERED = "library.so", "log.txt", "lane", "uncovered"
_EMPTY = BuildRequest(name="empty", cpp_sources=("",), cuda_sources=("",), functions=())
FAST_FAILED = "the fast strategy failed"
_DETAIL = re.compile(r" \(|: ")  # separates a reason from its variable part


class Builder:
    """Safe across threads and processes; identical requests are built once."""

    def __init__(
        self,
        *,
        cache: Path,
        toolchain: Toolchain,
        wrap: Wrap,
        readable: Iterable[Path] = (),
        environment: Callable[[], dict[str, str]],
        timeout_s: float = 600.0,
        fast: bool = True,
        max_cache_bytes: int = DEFAULT_LIMIT_BYTES,
        emulate: Emulation | None = None,
        has_device: bool = True,
        count_kills: Callable[[], int | None] = count_oom_kills,
        on_count: Callable[[], None] = lambda: None,
    ) -> None:
        """`emulate` builds CUDA to run on the CPU, without nvcc. With `has_device`, a GPU of the toolchain's
        architecture loads the libraries. `count_kills` returns the OOM kills so far (None if unknown). Any thread may
        call `on_count` when `counts` change.
        """
        self._on_count = on_count
        self._has_device = has_device
        self._count_kills = count_kills
        self._cache = cache.resolve()
        self.toolchain = toolchain
        self._environment = environment
        tools = Path(ninja_program()).parent
        self._runner = Runner(
            wrap=wrap, readable=[*readable, tools], environment=self._compiler_environment, timeout_s=timeout_s
        )
        self._max_cache_bytes = max_cache_bytes
        self._gate = MemoryGate()
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._counted_keys = set[str]()
        self._working = set[tuple[str, ...]]()
        self._headers = PrebuiltCache(self._cache / "kits", toolchain, self._runner, self._gate, self._counted)
        self._is_fast = fast
        self._emulated: EmulatedStrategy | None = None
        if emulate is not None:
            from harness.builder.emulated import EmulatedStrategy

            self._emulated = EmulatedStrategy(emulate, self._headers, self._runner, self._gate)

    def stop(self) -> None:
        """End running builds and refuse later ones. May be called from any thread."""
        self._runner.stop()

    @property
    def counts(self) -> dict[str, int]:
        """Count extensions by status, compilations by strategy and reason, and activities (`harness.domain.build`)."""
        with self._counting:
            return dict(self._counts)

    def build(self, request: BuildRequest) -> BuildResult:
        """Raises BuildToolError if a tool is missing, HarnessError if the cache is not writable."""
        result = self._answer(request)
        with self._counting:
            is_new = result.key not in self._counted_keys
            self._counted_keys.add(result.key)
        if is_new:
            self._count(result.status)
        return result

    def make_headers(self) -> None:
        """Make the prebuilt parts of CUDA builds, once per machine. What fails fails in the first build, too."""
        if self.toolchain.compiler_version is None or not self.toolchain.can_build_cuda:
            return
        request, _ = self._select_target(_EMPTY)
        with suppress(HarnessError, OSError):
            self._cache.mkdir(parents=True, exist_ok=True)
            with self._work_folder() as work:
                write_plan(request, work)
                next(prepare_fast(request, work, self._headers))

    def leave_uncounted(self, keys: Iterable[str]) -> None:
        """Do not count these extensions, which another builder has counted."""
        with self._counting:
            self._counted_keys.update(keys)

    def _count(self, name: str, by: int = 1) -> None:
        with self._counting:
            self._counts[name] += by
        self._on_count()

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        self._count(name)
        try:
            yield
        finally:
            self._count(name, -1)

    def _answer(self, request: BuildRequest) -> BuildResult:
        began_s = time.monotonic()
        key = self.key(request)
        refusal = refuse_flags(request)
        if refusal is not None:
            return BuildResult(key=key, status="refused", extension=None, log=refusal, duration_s=0.0)
        if not (request.name.isidentifier() and request.name.isascii()):
            log = f"error: the extension name {request.name!r} is not a Python identifier"
            return BuildResult(key=key, status="failed", extension=None, log=log, duration_s=0.0)
        request, other_target = self._select_target(request)
        if self.toolchain.compiler_version is None:
            raise BuildToolError("no C++ compiler was found; install one (for example the package g++) or set CXX")
        if request.needs_cuda and self._emulated is None and not self.toolchain.can_build_cuda:
            lacks = "nvcc" if self.toolchain.nvcc_version is None else "a CUDA build of torch"
            raise BuildToolError(f"a CUDA extension needs nvcc and a CUDA build of torch; this machine lacks {lacks}")
        try:
            locks = self._cache / "locks"
            locks.mkdir(parents=True, exist_ok=True)
            with self._headers.locked(locks / key):
                result = self._look_up(key, began_s)
                if result is None:
                    self._headers.take_waited_s()
                    with self._counted(RUNNING):
                        result = self._compile(request, key, began_s)
                    waited_s = self._headers.take_waited_s()
                    result = replace(result, duration_s=result.duration_s - waited_s, waited_s=waited_s)
                return replace(result, other_target=other_target)
        except OSError as error:
            raise HarnessError(
                f"cannot build in the cache {self._cache}: {error}; free disk space, or choose another folder with "
                "--cache-dir"
            ) from error

    def _select_target(self, request: BuildRequest) -> tuple[BuildRequest, str]:
        """Compile for the device, if there is one, though the program requests others; without one, as requested."""
        if not request.needs_cuda or self._emulated is not None:
            return request, ""
        selected, unusable = select_target(request, self.toolchain.architecture)
        if unusable is None or not self._has_device:
            return selected, ""
        return use_device_target(request, self.toolchain.architecture), unusable

    def key(self, request: BuildRequest) -> str:
        request, _ = self._select_target(request)
        emulated = self._find_emulated(request)
        toolchain = self.toolchain.key_parts(nvcc=request.needs_cuda and emulated is None)
        parts = {"format": 5, "request": asdict(request), "toolchain": toolchain}
        if emulated is not None:
            parts["emulation"] = emulated.key_parts()
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _find_emulated(self, request: BuildRequest) -> EmulatedStrategy | None:
        """Host code without kernels needs the emulator only to check its memory accesses."""
        strategy = self._emulated
        return strategy if strategy is not None and (request.needs_cuda or strategy.is_checked) else None

    def _look_up(self, key: str, began_s: float) -> BuildResult | None:
        folder = find_entry(self._cache, key)
        if not folder.exists():
            return None
        os.utime(folder)
        library = folder / LIBRARY
        found = library.exists()
        strategy, _, reason = (folder / STRATEGY).read_text(encoding="utf-8").partition("\n")
        return BuildResult(
            key=key,
            status="cached" if found else "uncovered" if (folder / UNCOVERED).exists() else "failed",
            extension=str(library) if found else None,
            log=(folder / LOG).read_text(encoding="utf-8"),
            duration_s=time.monotonic() - began_s,
            strategy=strategy,
            reason=reason,
        )

    def _compile(self, request: BuildRequest, key: str, began_s: float) -> BuildResult:
        with self._work_folder() as work:
            kills_before = self._count_kills()
            done = self._run_strategies(request, work)
            self._count(f"strategy {done.strategy}")
            if done.reason:
                self._count(f"reason {_DETAIL.split(done.reason)[0]}")
            if done.returncode is None:
                log = f"{done.log}\nbuild stopped after {self._runner.timeout_s:g} s"
                return BuildResult(
                    key=key, status="timeout", extension=None, log=log, duration_s=time.monotonic() - began_s,
                    strategy=done.strategy, reason=done.reason,
                )  # fmt: skip
            may_have_killed = kills_before is None or self._count_kills() != kills_before
            if done.returncode != 0 and _KILLED.search(done.log) and may_have_killed:
                raise HarnessError(
                    f"the compiler of {request.name} was killed, most likely for lack of memory: "
                    "reduce --jobs and run the same command again"
                )
            if done.returncode != 0 and not done.is_uncovered:
                self._require_working_tools(request, work, done.log)
            library = self._keep(key, work.parent, done)
        return BuildResult(
            key=key,
            status="built" if library is not None else "uncovered" if done.is_uncovered else "failed",
            extension=None if library is None else str(library),
            log=done.log,
            duration_s=time.monotonic() - began_s,
            strategy=done.strategy,
            reason=done.reason,
        )

    @contextmanager
    def _work_folder(self) -> Iterator[Path]:
        """Other folders of a build lie beside it."""
        with tempfile.TemporaryDirectory(prefix="build-", dir=self._cache, ignore_cleanup_errors=True) as name:
            work = Path(name) / "work"
            work.mkdir()
            yield work

    def _require_working_tools(self, request: BuildRequest, work: Path, failed_log: str) -> None:
        """Compile an empty file: a failure is not the candidate's. Raises BuildToolError; OSError for a full disk."""
        target = write_default_flag(self.toolchain.architecture)
        for command in plan_empty_builds(request, work, target):
            if tuple(command) in self._working:
                continue
            returncode, log = self._runner.run(command, work)
            if returncode != 0 and os.strerror(errno.ENOSPC) in failed_log + log:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if returncode != 0:
                raise BuildToolError(
                    f"{command[0]} cannot be used, since it cannot build an empty file ({name_first_error(log)}): "
                    "repair it, or choose another compiler with CXX or another CUDA toolkit with CUDA_HOME"
                )
            self._working.add(tuple(command))

    def _run_strategies(self, request: BuildRequest, work: Path) -> Compiled:
        strategy = self._find_emulated(request)
        if strategy is not None:
            return strategy.build(request, work)
        write_plan(request, work)
        if not self._is_fast:
            return self._run_plain(request, work, "the fast strategy is disabled")
        reason, failed = "", list[str]()
        for fast in prepare_fast(request, work, self._headers):
            if isinstance(fast, str):
                reason = reason or fast
                continue
            with self._gate.hold(FAST_BUILD_BYTES):
                returncode, log = self._runner.run(["sh", SCRIPT], fast.folder, readable=fast.readable)
            # After a time-out too: the standard strategy would take longer.
            verdict = log if returncode in (0, None) else fast.find_verdict(returncode or 0, log)
            if verdict is not None:
                library = fast.folder / f"{request.name}.so"
                return Compiled(strategy="fast", returncode=returncode, log=verdict, library=library)
            reason, failed = f"{FAST_FAILED}: {name_first_error(log)}", [fast.name_failed(returncode or 0)]
        return self._run_plain(request, work, reason, *failed)

    def _run_plain(self, request: BuildRequest, work: Path, reason: str, *first: str) -> Compiled:
        targets = [first, ()] if first else [()]
        for names in targets:
            with self._gate.hold(PLAIN_BUILD_BYTES):
                returncode, log = self._runner.run([ninja_program(), "-v", "-j", "2", *names], work)
            if returncode != 0:
                break
        library = work / f"{request.name}.so"
        return Compiled(strategy="plain", returncode=returncode, log=log, library=library, reason=reason)

    def _compiler_environment(self) -> dict[str, str]:
        environment = self._environment()
        headers = self.toolchain.packaged_cuda_headers
        return {**environment, "CPLUS_INCLUDE_PATH": ":".join(headers)} if headers else environment

    def _keep(self, key: str, work: Path, done: Compiled) -> Path | None:
        finished = work / "finished"
        finished.mkdir()
        (finished / LOG).write_text(done.log, encoding="utf-8")
        (finished / STRATEGY).write_text(f"{done.strategy}\n{done.reason}", encoding="utf-8")
        if done.is_uncovered:
            (finished / UNCOVERED).touch()
        if done.returncode == 0:
            codes = [digest_code(path.read_bytes()) for path in list_kept(done.library.parent)]
            (finished / DEVICE_CODE).write_text("\n".join(codes), encoding="utf-8")
            shutil.move(done.library, finished / LIBRARY)
        folder = find_entry(self._cache, key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        finished.rename(folder)
        prune_cache(self._cache, self._max_cache_bytes)
        return folder / LIBRARY if done.returncode == 0 else None


REFUSED_PREFIXES = (
    "@", "-fplugin", "-specs", "--specs", "-wrapper", "-B", "-iplugindir", "-ccbin", "--compiler-bindir", "-o",
    "--output", "-odir", "--output-directory", "-include", "-imacros", "-iprefix", "-isysroot", "--sysroot",
    "-fdump", "-save-temps", "--save-temps", "--keep", "-keep", "-optf", "--options-file", "-dryrun", "--dryrun",
    "-T", "-R", "--script", "-plugin", "--plugin", "-rpath", "--rpath", "-Map", "--Map", "-run", "--run", "-ldir",
    "--dynamic-list", "--version-script", "-version-script", "--retain-symbols-file", "--just-symbols",
    "--dependency-file", "--remap-inputs", "--section-ordering-file", "--out-implib", "--output-def",
    "-fauto-profile", "-fopt-info", "-aux-info", "-dumpdir", "-dumpbase", "-fcallgraph-info", "-fstack-usage",
    "-fsanitize-blacklist", "-fsanitize-ignorelist", "-gsplit-dwarf", "-M", "--dependency",
    "--generate-dependencies", "--gen_", "--create_pch", "--use_pch", "--pch", "-pch", "--stub_file_name",
    "--module_id_file", "--input-drive", "--load", "-load", "--compile-as-tools", "--libdevice-directory",
    "-fmodule", "-fdeps", "-time", "--time", "-fprofile", "-ftest-coverage", "--coverage", "-x", "-E", "-S", "-c",
)  # fmt: skip
PASS_THROUGH = (
    "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xptxas", "--ptxas-options", "-Wl,",
    "-Wa,", "-Wp,", "-Xcudafe", "-Xcicc", "-Xfatbin", "-Xnvlink", "--nvlink-options", "-Xassembler",
    "-Xpreprocessor", "-Xarchive", "--archive-options",
)  # fmt: skip
# Exceptions from a refused prefix.
HARMLESS = ("-Bsymbolic", "-time=", "--time=", "-compress")
SHELL_CHARACTERS = set(";|&`$<>\n\r\0")


def refuse_flags(request: BuildRequest) -> str | None:
    """Return why flags could run programs or access files, by a deny list, or None."""
    for flag in (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags):
        # Before splitting: a line break would be one in the build file too.
        if SHELL_CHARACTERS & set(flag):
            return f"the flag {flag!r} contains shell metacharacters"
        for part in _parts(flag):
            if part.startswith(REFUSED_PREFIXES) and not part.startswith(HARMLESS):
                return f"the flag {flag!r} is refused: it could run a program, or read or write files"
    return None


def _parts(flag: str) -> list[str]:
    words = []
    for word in flag.replace('"', " ").replace("'", " ").split():
        for prefix in PASS_THROUGH:
            if word.startswith(prefix):
                words += [part for part in word[len(prefix) :].lstrip("=").split(",") if part]
                break
        else:
            words.append(word)
    return words
