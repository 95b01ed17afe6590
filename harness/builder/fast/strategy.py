"""Fast strategy for `load_inline` with CUDA sources.

nvcc's own steps compile the device code behind stub headers; the host code is lowered by nvcc's front end and compiled
against torch's precompiled headers. docs/builds.md explains why the results are equal.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.builder.fast.binding import bind_main
from harness.builder.fast.final_errors import find_final_errors, has_final_assembler_error
from harness.builder.fast.host_binding import write_host_main
from harness.builder.fast.prebuilt import (
    IMPLICIT_HEADERS,
    MACROS,
    REGIONS_PROGRAM,
    SOURCE,
    WORDS,
    PrebuiltHeaders,
    compile_words,
    lowering,
    preprocess,
    shown_macros,
)
from harness.builder.fast.prebuilt_cache import PrebuiltCache, read_wider_macros, strip_name
from harness.builder.fast.stub_headers import MORE_STANDARD_HEADERS, STANDARD_HEADERS, find_features, write_stub_headers
from harness.builder.torch_ninja import read_plan
from harness.domain import BuildRequest
from harness.syntax.cpp import tokenize

# Headers that only add names for Python, modules and optimisers; sources that need these fail to compile.
WIDER_HEADERS = frozenset({"torch/extension.h", "torch/torch.h", "torch/all.h"})
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"].*$', re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2|pybind11|Python)\b")
# Their meaning depends on which names are declared.
_DETECTION_WORDS = frozenset({"requires", "concept", "__has_include", "void_t", "is_detected"})
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_OF_PYTHON = ("Py", "PYBIND11_", "THP")
# Error location in the C++ compiler's format.
_ERROR = re.compile(r"^\S+:\d+:\d+: (?:fatal )?error: ", re.MULTILINE)
_MISSING_LIBRARY = re.compile(r"^\S*\bld: cannot find -l", re.MULTILINE)  # both strategies link with the same flags
SCRIPT, FRONT_LOG = "fast.sh", "front.log"
MAIN_FAILED, FRONT_FAILED, DEVICE_FAILED = 3, 4, 5  # exit codes of the script: main.cpp, the front end, or device code


@dataclass(frozen=True, slots=True, kw_only=True)
class FastBuild:
    """`has_standard_main` means that main.cpp is unchanged, apart from a precompiled header."""

    folder: Path
    readable: tuple[Path, ...]
    has_standard_main: bool
    prebuilt: Path | None
    included: tuple[str, ...] = ()

    def find_verdict(self, returncode: int, log: str) -> str | None:
        """Return the log if the standard strategy would fail equally, otherwise None."""
        if returncode == FRONT_FAILED and self.prebuilt is not None:
            return self._find_final_errors(self.prebuilt)
        if returncode == DEVICE_FAILED and self.prebuilt is not None:
            return (
                log
                if has_final_assembler_error(log, self._read("cuda.ptx"), self._read_words(self.prebuilt)[0])
                else None
            )
        compiled_main = self.has_standard_main and returncode == MAIN_FAILED  # same compiler, same source
        blames_us = any(str(folder) in log for folder in self.readable)  # in our prebuilt headers
        is_sure = bool(_ERROR.search(log)) and "internal compiler error" not in log and not blames_us
        is_sure &= compiled_main
        return log if is_sure or _MISSING_LIBRARY.search(log) else None

    def _find_final_errors(self, prebuilt: Path) -> str | None:
        known, macros = self._read_words(prebuilt)
        return find_final_errors(
            self._read(FRONT_LOG), str(self.folder / SOURCE), self._read("body.host.ii"), known, macros
        )

    def _read_words(self, prebuilt: Path) -> tuple[frozenset[str], frozenset[str]]:
        words = json.loads((prebuilt / WORDS).read_text(encoding="utf-8"))
        known = frozenset(word for header in ("", *self.included) for word in words.get(header, ()))
        return known, frozenset(words.get(MACROS, ()))

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def name_failed(self, returncode: int) -> str:
        """Return the failed object file's name in the standard strategy."""
        return "cuda.cuda.o" if self.prebuilt and returncode != MAIN_FAILED else "main.o"


def prepare_fast(request: BuildRequest, work: Path, prebuilt_cache: PrebuiltCache) -> Iterator[FastBuild | str]:
    """Yield ways to build a request whose standard plan is in `work`, each prepared after those before it failed, and
    finally the reason why there is no other.
    """
    if request.files:
        yield "it is built from files, by load"
    elif request.headers or request.no_implicit_headers:
        yield "it brings its own headers" if request.headers else "it asks for no_implicit_headers"
    else:
        folder = work.parent / "fast"
        folder.mkdir()
        if request.needs_cuda:
            yield _prepare_cuda(request, work, folder, read_plan(work), prebuilt_cache)
        else:
            yield from _prepare_host(request, work, folder, read_plan(work), prebuilt_cache)


def _prepare_host(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], prebuilt_cache: PrebuiltCache
) -> Iterator[FastBuild | str]:
    host = _prepare_bound_host(request, work, folder, plan, prebuilt_cache)
    if host is not None:
        yield host
    header = _find_precompiled(plan, prebuilt_cache)
    if isinstance(header, str):
        yield header
        return
    shutil.copy(work / "main.cpp", folder)
    yield _link_main(request, folder, plan, (header,))


def _prepare_bound_host(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], prebuilt_cache: PrebuiltCache
) -> FastBuild | None:
    """Return None if the source may differ in meaning or cannot be bound."""
    text = write_host_main(request, (work / "main.cpp").read_text(encoding="utf-8"))
    words = read_code("\n".join(request.cpp_sources))[1]
    if text is None or _refuse_words(words):
        return None
    headers = prebuilt_cache.find_host_headers(
        plan["cxx"], _own_flags_removed(request, plan), beside=lambda: _find_binding(request, plan, prebuilt_cache)
    )
    binding = _find_binding(request, plan, prebuilt_cache)
    if isinstance(headers, str) or isinstance(binding, str) or words & read_wider_macros(headers):
        return None
    precompiled = prebuilt_cache.find_precompiled_host(plan["cxx"], strip_name(plan["cflags"]))
    (folder / "main.cpp").write_text(text, encoding="utf-8")
    searched = (headers,) if isinstance(precompiled, str) else (precompiled, headers)
    return _link_main(request, folder, plan, searched, binding)


def _link_main(
    request: BuildRequest, folder: Path, plan: dict[str, str], headers: tuple[Path, ...], binding: Path | None = None
) -> FastBuild:
    """`binding` replaces torch's own main.cpp."""
    objects = "main.o" if binding is None else f"main.o {shlex.quote(str(binding))}"
    link = f"{plan['cxx']} {objects} {plan['ldflags']} -o {request.name}.so"
    (folder / SCRIPT).write_text(f"set -e\n{_compile_main(plan, *headers)} || exit {MAIN_FAILED}\n{link}\n")
    readable = headers if binding is None else (*headers, binding.parent)
    return FastBuild(folder=folder, readable=readable, has_standard_main=binding is None, prebuilt=None)


def _compile_main(plan: dict[str, str], *headers: Path) -> str:
    search = "".join(f"-I{shlex.quote(str(header))} " for header in headers)
    return f"{plan['cxx']} {search}{plan['cflags']} -c main.cpp -o main.o {plan['post_cflags']}"


def _prepare_cuda(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], prebuilt_cache: PrebuiltCache
) -> FastBuild | str:
    if not request.cuda_sources:
        return "it has no CUDA source"
    if plan.get("cuda_dlink_post_cflags"):
        return "its device code is linked separately"
    if reason := refuse_source(join_sources(request)):
        return reason
    flags = f"{strip_name(plan['cuda_cflags'])} {plan['cuda_post_cflags']}".strip()
    prebuilt = prebuilt_cache.find_cuda_headers(
        plan["nvcc"], flags, beside=lambda: _find_binding(request, plan, prebuilt_cache)
    )
    if isinstance(prebuilt, str):
        return prebuilt
    main = _prepare_main(request, work, folder, plan, prebuilt_cache)
    link = f"{plan['cxx']} {' '.join(main.objects)} cuda.cuda.o {plan['ldflags']} -o {request.name}.so"
    reason = write_fast_steps(prebuilt, request, folder, main_command=main.command, link_command=link)
    if reason is not None:
        return reason
    included = tuple(list_includes(read_code(join_sources(request))[0]))
    readable = (prebuilt.folder, *main.readable)
    return FastBuild(
        folder=folder,
        readable=readable,
        has_standard_main=main.is_standard,
        prebuilt=prebuilt.folder,
        included=included,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Main:
    command: str
    objects: tuple[str, ...]
    readable: tuple[Path, ...]
    is_standard: bool


def _prepare_main(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], prebuilt_cache: PrebuiltCache
) -> _Main:
    bound = bind_main(request, lambda: _find_binding(request, plan, prebuilt_cache))
    if bound is None:
        shutil.copy(work / "main.cpp", folder)
        found = _find_precompiled(plan, prebuilt_cache)
        headers = (found,) if isinstance(found, Path) else ()
        return _Main(command=_compile_main(plan, *headers), objects=("main.o",), readable=headers, is_standard=True)
    text, linked = bound
    (folder / "main.cpp").write_text(text)
    return _Main(
        command=_compile_main(plan),
        objects=("main.o", *(shlex.quote(str(path)) for path in linked)),
        readable=tuple(path.parent for path in linked),
        is_standard=False,
    )


def _find_precompiled(plan: dict[str, str], prebuilt_cache: PrebuiltCache) -> Path | str:
    return prebuilt_cache.find_precompiled(plan["cxx"], strip_name(plan["cflags"]))


def _find_binding(request: BuildRequest, plan: dict[str, str], prebuilt_cache: PrebuiltCache) -> Path | str:
    return prebuilt_cache.find_binding(plan["cxx"], _own_flags_removed(request, plan))


def _own_flags_removed(request: BuildRequest, plan: dict[str, str]) -> str:
    added = " ".join(flag.strip() for flag in request.extra_cflags)
    return strip_name(plan["cflags"].removesuffix(added))


def join_sources(request: BuildRequest) -> str:
    """Return the single CUDA source, as made by torch's load_inline."""
    return "\n".join((*(f"#include <{header}>" for header in IMPLICIT_HEADERS), *request.cuda_sources))


def list_includes(code: str) -> list[str]:
    return [found[1] for found in _INCLUDE.finditer(code)]


def write_fast_steps(
    prebuilt: PrebuiltHeaders, request: BuildRequest, folder: Path, *, main_command: str, link_command: str
) -> str | None:
    source = join_sources(request)
    code, words = read_code(source)
    included = list_includes(code)
    reason = _check_includes(prebuilt, included) or _check_conditions(prebuilt, code, included)
    if reason is not None:
        return reason
    _write_sources(prebuilt, folder, source, words, included)
    (folder / SCRIPT).write_text(_script(prebuilt, folder, request.name, main_command, link_command))
    return None


def read_code(source: str) -> tuple[str, frozenset[str]]:
    tokens = tokenize(source.replace("\\\n", ""))
    code = "".join(" " if token.kind == "comment" else token.text for token in tokens)
    return code, frozenset(token.text for token in tokens if token.kind == "word")


def refuse_source(source: str) -> str | None:
    """Return a reason that needs no prebuilt headers, which may take a minute to make."""
    if any(token.kind == "string" and _INCLUDE.search(token.text) for token in tokenize(source)):
        return "a string contains an #include"
    return _refuse_words(read_code(source)[1])


def _check_includes(prebuilt: PrebuiltHeaders, included: Sequence[str]) -> str | None:
    for header in included:
        known = header in prebuilt.known_headers or header in prebuilt.closures or header in WIDER_HEADERS
        if _TORCH_HEADER.match(header) and not known:
            return f"it includes {header}"
    return None


def _refuse_words(words: frozenset[str]) -> str | None:
    if asked := words & _DETECTION_WORDS:
        return f"it uses {min(asked)}"
    if named := [word for word in words if word == "pybind11" or word.startswith(_OF_PYTHON)]:
        return f"it uses {min(named)}"
    return None


def _check_conditions(prebuilt: PrebuiltHeaders, source: str, included: Sequence[str]) -> str | None:
    """Macros of omitted headers would silently change an #if."""
    asked = {word for found in _CONDITION.finditer(source) for word in re.findall(r"[A-Za-z_]\w*", found[1])}
    asked -= {*_DEFINITION.findall(source)}
    unknown = asked & prebuilt.hidden_macros
    if WIDER_HEADERS.intersection(included):
        shown = {*_DEFINITION.findall(prebuilt.host_macros)} | {"defined", "true", "false"}
        unknown |= {word for word in asked - shown if not word.startswith("__")}
    return f"its #if conditions test {min(unknown)}" if unknown else None


def _write_sources(
    prebuilt: PrebuiltHeaders, folder: Path, source: str, words: frozenset[str], included: Sequence[str]
) -> None:
    features = [*find_features(words)]
    features += [f"std:{name}" for name in included if re.fullmatch(r"[a-z_]+", name) and name not in STANDARD_HEADERS]
    if any("/" in header and not _TORCH_HEADER.match(header) for header in included):
        features += [f"std:{name}" for name in MORE_STANDARD_HEADERS]  # template library such as CUB
    text = write_stub_headers(prebuilt.names, tuple(dict.fromkeys(features)), words, cuda=True)
    (folder / "stubs.h").write_text(shown_macros(prebuilt.host_macros) + text)
    extra = [header for header in included if header in prebuilt.closures and header not in prebuilt.known_headers]
    more_files = list(dict.fromkeys(path for header in extra for path in prebuilt.closures[header]))
    more = "".join(f"{line}\n" for path in more_files for line in prebuilt.more_macros[path].values())
    for side, macros in (("host", prebuilt.host_macros), ("device", prebuilt.device_macros)):
        shown = "".join(lines for name, lines in prebuilt.feature_macros[side].items() if name in features)
        (folder / f"{side}.macros").write_text(macros + shown + more)
    (folder / SOURCE).write_text(_INCLUDE.sub(_blank_torch, source), encoding="utf-8")
    wanted = set(more_files)
    delta = [text for name, text in json.loads((prebuilt.folder / "more.json").read_text()) if name in wanted]
    (folder / "delta").write_text("".join(delta))
    (folder / "dropped.json").write_text(json.dumps(sorted(prebuilt.base_files | set(more_files) | {"stubs.h"})))


def _blank_torch(include: re.Match[str]) -> str:
    """CUDA's macros stay: they guard parts that the stub headers include against a second inclusion."""
    return "" if _TORCH_HEADER.match(include[1]) else include[0]


def _script(prebuilt: PrebuiltHeaders, folder: Path, name: str, main_command: str, link_command: str) -> str:
    """Run both passes in parallel, then the host code, which needs their output."""
    overlay = ("-I", str(prebuilt.folder / "overlay"))
    path = str(folder / SOURCE)

    def front(step: str, macros: str, out: str) -> list[str]:
        words = prebuilt.steps[step]
        return [
            shlex.join(preprocess(words, "stubs.h", f"stubs.{out}", *overlay)),
            shlex.join(preprocess(words, path, f"body.{out}", "-imacros", macros, first=False)),
            f"cat stubs.{out} body.{out} > {out}",
        ]

    lower = [
        path if word == str(prebuilt.folder / SOURCE) else word
        for word in lowering(prebuilt.steps["lower"], "host.ii", "lowered.cpp")
    ]
    device = [path if word == str(prebuilt.folder / SOURCE) else word for word in _device(prebuilt.steps["device"])]
    keep = [
        sys.executable,
        "-I",
        "-S",
        str(prebuilt.folder / REGIONS_PROGRAM),
        "lowered.cpp",
        "dropped.json",
        "delta",
        path,
        "own.cpp",
    ]
    host = [
        *compile_words(prebuilt.steps["host_compile"]),
        "-Winvalid-pch",
        "-include",
        str(prebuilt.folder / "base.h"),
    ]
    device_steps = [
        *front("device_preprocess", "device.macros", "device.ii"),
        shlex.join(device), shlex.join(prebuilt.steps["assemble"]), shlex.join(prebuilt.steps["embed"]),
    ]  # fmt: skip
    host_steps = [*front("host_preprocess", "host.macros", "host.ii"), shlex.join(lower), shlex.join(keep)]
    return "\n".join([
        "set -e",
        "{ " + " && ".join(device_steps) + "; } > device.log 2>&1 & device=$!",
        "{ " + main_command + "; } > main.log 2>&1 & main=$!",
        "{ " + " && ".join(host_steps) + f"; }} > {FRONT_LOG} 2>&1 || {{ cat {FRONT_LOG}; exit {FRONT_FAILED}; }}",
        f"wait $device || {{ cat device.log; exit {DEVICE_FAILED}; }}",
        shlex.join([*host, "own.cpp", "-o", "cuda.cuda.o"]),
        "nm -u cuda.cuda.o > undefined",
        "if grep __wrapper__device_stub_ undefined; then echo 'the device pass has not made this kernel'; exit 1; fi",
        f"wait $main || {{ cat main.log; exit {MAIN_FAILED}; }}",
        link_command,
        f"cat {FRONT_LOG} device.log main.log",
        "",
    ])  # fmt: skip


def _device(step: list[str]) -> list[str]:
    words = list(step)
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    words[words.index("cuda.cpp1.ii")] = "device.ii"
    return words
