"""Build strategy of the emulated device: rewritten CUDA sources, compiled for the CPU.

It first compiles against a subset of torch's headers, which is faster, and after a non-final error against all of them.
"""

import re
import shlex
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.builder.fast.binding import bind_main
from harness.builder.fast.final_errors import list_words
from harness.builder.fast.operators import ALL_OPERATORS, narrow_operators, write_narrow_lists
from harness.builder.fast.prebuilt_cache import PrebuiltCache, strip_name
from harness.builder.runner import FAST_BUILD_BYTES, Compiled, MemoryGate, Runner
from harness.builder.torch_ninja import read_plan, write_plan
from harness.domain import BuildRequest, BuildToolError
from harness.emulator import (
    RUNTIME,
    Emulation,
    Prepared,
    Unit,
    begins_with_syntax_error,
    copy_runtime,
    digest_emulator,
    digest_runtime,
    drop_cuda_libraries,
    explain_failure,
    find_unknown_name,
    prepare_sources,
    write_target,
)

SCRIPT, WIDE_SCRIPT = "emulated.sh", "emulated-wide.sh"
# Aliasing, contraction, traps and fused multiply-add (of a CPU that has it) as on a GPU; line tables locate findings.
# Warnings stay enabled: device code turns one of them, -Wvla, into an error.
_DEVICE_FLAGS = (
    "-O2 -ftree-vectorize -fno-strict-aliasing -ffp-contract=fast -fno-math-errno -fno-trapping-math -fno-gnu-unique "
    "-fno-stack-protector -U_FORTIFY_SOURCE -g1 -gdwarf-4 -Wno-vla -march=native"
)
# Without the macro of the first flag, plain and checked builds can use one precompiled header.
_CHECK_FLAGS = (
    "-fsanitize=thread -U__SANITIZE_THREAD__ --param tsan-instrument-func-entry-exit=0 -fsanitize=alignment "
    "-DHARNESS_CHECKED"
)
# The search for unused names takes g++ a fifth of the time here; each source that uses the header repeats it anyway.
_PRECOMPILE_FLAGS = "-fno-eliminate-unused-debug-symbols -x c++-header"
_HOST_FLAGS = "-O1 -w -g1 -gdwarf-4"
_RUNTIME_OBJECT, _CHECKED_RUNTIME_OBJECT = "emulator.o", "emulator-checked.o"
_HOST_HEADER = "host.h"
_WORDS = "words.txt"  # of torch's headers and the runtime's, macros included
_MACROS = "macros.txt"  # that only all of torch's headers define
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    compiler: str
    flags: str
    is_checked: bool

    @property
    def device_header(self) -> str:
        return f"{self.compiler} {self.flags} {_DEVICE_FLAGS}"

    @property
    def device(self) -> str:
        return f"{self.device_header} {_CHECK_FLAGS}" if self.is_checked else self.device_header

    @property
    def host(self) -> str:
        return f"{self.compiler} {self.flags} {_HOST_FLAGS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    request: BuildRequest
    prepared: Prepared
    work: Path
    plan: dict[str, str]
    commands: Commands
    prebuilt: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """`readable` lists paths that the build must read; `units` maps an object file to its source."""

    readable: list[Path]
    units: dict[str, Unit]

    def may_need_more(self, work: Path) -> bool:
        """Return True if every failed source may compile with all of torch's headers."""
        failed = [unit for target, unit in self.units.items() if not (work / target).exists()]
        return bool(failed) and all(unit.may_need_more for unit in failed)


class EmulatedStrategy:
    def __init__(self, emulation: Emulation, prebuilt_cache: PrebuiltCache, runner: Runner, gate: MemoryGate) -> None:
        self._emulation = emulation
        self._prebuilt_cache = prebuilt_cache
        self._runner = runner
        self._gate = gate

    @property
    def is_checked(self) -> bool:
        return self._emulation.checked

    def key_parts(self) -> dict[str, Any]:
        return {"emulation": asdict(self._emulation), "emulator": digest_emulator()}

    def build(self, request: BuildRequest, work: Path) -> Compiled:
        """Raises BuildToolError if the emulator's headers do not compile."""
        done = Compiled(strategy="emulated", returncode=1, log="", library=work / f"{request.name}.so")
        prepared = prepare_sources(request, self._emulation)
        if prepared.uncovered:
            return replace(done, log=prepared.uncovered, is_uncovered=True)
        write_plan(_as_host_request(request, prepared), work)
        plan = read_plan(work)
        added = " ".join(flag.strip() for flag in request.extra_cflags)
        flags = read_prebuilt_flags(plan["cflags"], added)
        commands = Commands(compiler=plan["cxx"], flags=flags, is_checked=self._emulation.checked)
        prebuilt = self._find_prebuilt(request, plan, commands)
        steps = self._write_steps(
            _Job(request=request, prepared=prepared, work=work, plan=plan, commands=commands, prebuilt=prebuilt)
        )
        returncode, log = self._run(SCRIPT, work, steps)
        if returncode not in (0, None) and steps.may_need_more(work) and not self._is_final(log, prepared, commands):
            returncode, log = self._run(WIDE_SCRIPT, work, steps)
        if returncode in (0, None):
            return replace(done, returncode=returncode, log=log)
        log, is_uncovered = explain_failure(log, prepared)
        return replace(done, returncode=returncode, log=log, is_uncovered=is_uncovered)

    def _run(self, script: str, work: Path, steps: _Steps) -> tuple[int | None, str]:
        with self._gate.hold(FAST_BUILD_BYTES):
            return self._runner.run(["sh", script], work, readable=steps.readable)

    def _is_final(self, log: str, prepared: Prepared, commands: Commands) -> bool:
        """Return True if the first error is about a name unknown to torch's headers, or syntax without more macros."""
        is_syntax = begins_with_syntax_error(log)
        unknown = None if is_syntax else find_unknown_name(log, prepared)
        if not is_syntax and unknown is None:
            return False
        parts = [commands.device_header, digest_runtime(), _WORDS, _MACROS]
        names = self._prebuilt_cache.find("emulator-names", parts, lambda work: self._list_names(work, commands))
        if isinstance(names, str):
            return False
        if is_syntax:
            return prepared.words.isdisjoint((names / _MACROS).read_text().split())
        return unknown not in (names / _WORDS).read_text().split()

    def _find_prebuilt(self, request: BuildRequest, plan: dict[str, str], commands: Commands) -> Path:
        prebuilt = self._prebuilt_cache.find(
            "emulator",
            [commands.device_header, digest_runtime(), _PRECOMPILE_FLAGS],
            lambda work: self._make_prebuilt(work, commands),
            beside=lambda: self._bind(request, plan, commands),
        )
        if isinstance(prebuilt, str):
            raise BuildToolError(f"the emulator's headers do not compile with {commands.compiler}:\n{prebuilt}")
        return prebuilt

    def _make_prebuilt(self, work: Path, commands: Commands) -> None:
        copy_runtime(work / "include")
        write_narrow_lists(work, all_operators=True)
        emulator = work / "include" / "emulator"
        device = f"{commands.device_header} -I{work}/include"
        compile_runtime = f"{device.replace('-g1 -gdwarf-4', '-g0')} -c {emulator}/emulator.cpp"
        narrow = narrow_operators(work, ())
        steps = [
            f"{device} {narrow} {_PRECOMPILE_FLAGS} {emulator}/device.h -o {emulator}/device.h.gch",
            f"{compile_runtime} -o {work}/{_RUNTIME_OBJECT}",
            f"{compile_runtime} -DHARNESS_CHECKED -o {work}/{_CHECKED_RUNTIME_OBJECT}",
        ]
        (work / "prebuilt.sh").write_text(_script(steps, ""))
        self._prebuilt_cache.compile(["sh", "prebuilt.sh"], work)

    def _list_names(self, work: Path, commands: Commands) -> None:
        copy_runtime(work / "include")
        begin = f"echo '#include <torch/extension.h>' | {commands.device_header}"
        preprocess = "-Iinclude -E -include include/emulator/device.h -x c++ -"
        steps = [f"{begin} -Iinclude/slim {preprocess} -dM -o slim.ii", f"{begin} {preprocess} -dD -o all.ii"]
        (work / "names.sh").write_text(_script(steps, ""))
        self._prebuilt_cache.compile(["sh", "names.sh"], work)
        everything, slim = (
            (work / name).read_text(encoding="utf-8", errors="surrogateescape") for name in ("all.ii", "slim.ii")
        )
        (work / _WORDS).write_text("\n".join(list_words(everything)))
        (work / _MACROS).write_text("\n".join(sorted({*_DEFINED.findall(everything)} - {*_DEFINED.findall(slim)})))
        for name in ("all.ii", "slim.ii"):
            (work / name).unlink()

    def _find_host_header(self, commands: Commands, prebuilt: Path) -> Path:
        parts = [commands.host, digest_runtime()]
        found = self._prebuilt_cache.find_later(
            "emulator-host", parts, lambda work: self._make_host_header(work, commands)
        )
        return prebuilt / "include" / "emulator" / _HOST_HEADER if isinstance(found, str) else found / _HOST_HEADER

    def _make_host_header(self, work: Path, commands: Commands) -> None:
        shutil.copy(RUNTIME / "emulator" / _HOST_HEADER, work)
        step = f"{commands.host} -x c++-header {_HOST_HEADER} -o {_HOST_HEADER}.gch"
        self._prebuilt_cache.compile(["sh", "-c", step], work)

    def _write_steps(self, job: _Job) -> _Steps:
        readable = [job.prebuilt]
        (job.work / "target.cpp").write_text(write_target(self._emulation))
        objects, steps = (
            [f"{job.prebuilt}/{_CHECKED_RUNTIME_OBJECT if self._emulation.checked else _RUNTIME_OBJECT}", "target.o"],
            [f"{job.commands.compiler} -fPIC -c target.cpp -o target.o"],
        )
        wide_steps: list[str] = []
        units: dict[str, Unit] = {}
        binding = self._bind(job.request, job.plan, job.commands)
        host_header: Path | None = None  # requested once: repeated requests are counted
        for unit in job.prepared.units:
            target = f"{unit.path.replace('/', '_')}.o"
            objects.append(target)
            if binding and unit.path == "main.cpp":
                text, bound = binding
                (job.work / unit.path).write_text(text)
                steps.append(f"{job.plan['cxx']} {_keep_newest_standard(job.plan['cflags'])} -c main.cpp -o {target}")
                units[target] = replace(unit, may_need_more=False)
                objects += map(str, bound)
                readable += [path.parent for path in bound]
                continue
            if unit.text is not None:
                (job.work / unit.path).parent.mkdir(parents=True, exist_ok=True)
                (job.work / unit.path).write_text(unit.text, encoding="utf-8")
            if not unit.is_device and host_header is None:
                host_header = self._find_host_header(job.commands, job.prebuilt)
                readable.append(host_header.parent)
            slim, wide = _compile_steps(job, unit, target, host_header)
            steps.append(slim)
            wide_steps.append(f"[ -e {shlex.quote(target)} ] || {wide}")
            units[target] = unit
        name = f"{job.request.name}.so"
        link = f"{job.plan['cxx']} {' '.join(objects)} {job.plan['ldflags']} -ldl -lpthread -o {name}"
        (job.work / SCRIPT).write_text(_script(steps, link))
        (job.work / WIDE_SCRIPT).write_text(_script(wide_steps, link))
        return _Steps(readable=readable, units=units)

    def _bind(
        self, request: BuildRequest, plan: dict[str, str], commands: Commands
    ) -> tuple[str, tuple[Path, ...]] | None:
        return bind_main(request, lambda: self._prebuilt_cache.find_binding(plan["cxx"], commands.flags))


def read_prebuilt_flags(cflags: str, added: str) -> str:
    flags = strip_name(cflags.removesuffix(added))
    flags = re.sub(r"-isystem \S*/include(?= |$)(?<=work/include)|-I\S*work/include", "", flags)
    return " ".join(flags.split())


def _script(steps: list[str], link: str) -> str:
    lines = ["fail=0", *(f"({step}) > log.{i} 2>&1 & step{i}=$!" for i, step in enumerate(steps))]
    lines += [f"wait $step{i} || fail=1; cat log.{i}" for i in range(len(steps))]
    return "\n".join([*lines, "[ $fail = 0 ] || exit 1", link, ""])


def _compile_steps(job: _Job, unit: Unit, target: str, host_header: Path | None) -> tuple[str, str]:
    """Return steps with a subset of torch's headers, and with all of them."""
    include, own, more = f"{job.prebuilt}/include", f"-I{job.prebuilt}/include", ""
    if unit.is_device:
        flags = f"-DTORCH_EXTENSION_NAME={job.request.name} {' '.join(map(shlex.quote, unit.flags))}"
        narrow = narrow_operators(job.prebuilt, job.prepared.words)
        base = f"{job.commands.device} {flags} -include {include}/emulator/device.h {narrow}"
        more = f"-include {ALL_OPERATORS}"
    else:
        checks = f" {_CHECK_FLAGS}" if job.commands.is_checked else ""
        base = f"{job.plan['cxx']} {job.plan['cflags']} {_HOST_FLAGS}{checks} -include {host_header}"
    base = _keep_newest_standard(base)
    tail = f"-Iinclude -Isources -x c++ -c {shlex.quote(unit.path)} -o {shlex.quote(target)}"
    return f"{base} -I{include}/slim {own} {tail}", f"{base} {own} {more} {tail}"


def _keep_newest_standard(flags: str) -> str:
    """torch's headers need the newest standard."""
    versions = re.findall(r"-std=(?:c|gnu)\+\+(\d\d)(?=\s|$)", flags)
    if not versions:
        return flags
    newest = max(versions)
    without = re.sub(r"\s*-std=(?:c|gnu)\+\+\d\d(?=\s|$)", "", flags)
    return f"{without} -std=c++{newest}"


def _as_host_request(request: BuildRequest, prepared: Prepared) -> BuildRequest:
    return replace(
        request,
        cpp_sources=prepared.cpp_sources,
        cuda_sources=(),
        files=prepared.files,
        headers=prepared.headers,
        extra_cuda_cflags=(),
        extra_ldflags=drop_cuda_libraries(request.extra_ldflags),
        with_cuda=False,
    )
