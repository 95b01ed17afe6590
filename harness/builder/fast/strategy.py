"""Fast strategy for `load_inline` with CUDA: stub headers for device code, torch's for host code (docs/builds.md)."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.builder.fast.binding import bind_main
from harness.builder.fast.final_errors import find_final_errors, has_final_assembler_error
from harness.builder.fast.host_binding import OPERATORS_OF_HEADER, write_host_main
from harness.builder.fast.operators import narrow_operators
from harness.builder.fast.prebuilt import (
    CUDA_HEADERS,
    HOST_TEXT,
    IMPLICIT_HEADERS,
    REGIONS_PROGRAM,
    SOURCE,
    AddedHeader,
    PrebuiltHeaders,
    compile_words,
    lowering,
    preprocess,
    shown_macros,
    write_operators,
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

Words = tuple[Collection[str], frozenset[str]]  # words and macros of headers


@dataclass(frozen=True, slots=True, kw_only=True)
class FastBuild:
    """`has_standard_main` means that main.cpp is unchanged, apart from a precompiled header."""

    folder: Path
    readable: tuple[Path, ...]
    has_standard_main: bool
    find_words: Callable[[], Words | None] | None = None  # of a CUDA source

    def find_verdict(self, returncode: int, log: str) -> str | None:
        """Return the log if the standard strategy would fail equally, otherwise None."""
        if self.find_words is not None and returncode in (FRONT_FAILED, DEVICE_FAILED):
            return self._find_final_errors(returncode, log, self.find_words())
        compiled_main = self.has_standard_main and returncode == MAIN_FAILED  # same compiler, same source
        blames_us = any(str(folder) in log for folder in self.readable)  # in our prebuilt headers
        is_sure = bool(_ERROR.search(log)) and "internal compiler error" not in log and not blames_us
        is_sure &= compiled_main
        return log if is_sure or _MISSING_LIBRARY.search(log) else None

    def _find_final_errors(self, returncode: int, log: str, words: Words | None) -> str | None:
        if words is None:
            return None
        if returncode == DEVICE_FAILED:
            return log if has_final_assembler_error(log, self._read("cuda.ptx"), words[0]) else None
        path = str(self.folder / SOURCE)
        return find_final_errors(self._read(FRONT_LOG), path, self._read("body.host.ii"), *words)

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def name_failed(self, returncode: int) -> str:
        """Return the failed object file's name in the standard strategy."""
        return "cuda.cuda.o" if self.find_words and returncode != MAIN_FAILED else "main.o"


def prepare_fast(request: BuildRequest, work: Path, prebuilt_cache: PrebuiltCache) -> Iterator[FastBuild | str]:
    """Yield ways to build, prepared when those before failed, then why there is no other. `work` has the plain one."""
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
    if not isinstance(precompiled, str):
        return _link_main(request, folder, plan, (precompiled, headers), binding)
    narrow = narrow_operators(headers, words | OPERATORS_OF_HEADER)
    return _link_main(request, folder, plan | {"cxx": f"{plan['cxx']} {narrow}"}, (headers,), binding)


def _link_main(
    request: BuildRequest, folder: Path, plan: dict[str, str], headers: tuple[Path, ...], binding: Path | None = None
) -> FastBuild:
    """`binding` replaces torch's own main.cpp."""
    objects = "main.o" if binding is None else f"main.o {shlex.quote(str(binding))}"
    link = f"{plan['cxx']} {objects} {plan['ldflags']} -o {request.name}.so"
    (folder / SCRIPT).write_text(f"set -e\n{_compile_main(plan, *headers)} || exit {MAIN_FAILED}\n{link}\n")
    readable = headers if binding is None else (*headers, binding.parent)
    return FastBuild(folder=folder, readable=readable, has_standard_main=binding is None)


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
    source = Source.read(request, prebuilt)
    added = source.refuse() or _find_added(source, prebuilt_cache)
    if isinstance(added, str):
        return added
    main = _prepare_main(request, work, folder, plan, prebuilt_cache)
    headers = prebuilt_cache.find_precompiled_cuda(prebuilt)
    link = f"{plan['cxx']} {' '.join(main.objects)} cuda.cuda.o {plan['ldflags']} -o {request.name}.so"
    source.write(folder, added)
    write_script(source, folder, headers, main_command=main.command, link_command=link)

    def find_words() -> Words | None:
        found = prebuilt_cache.find_words(prebuilt)
        if isinstance(found, str):
            return None
        macros = (lines for header in added for lines in header.macros.values())
        return found[0].union(*(header.words for header in added)), found[1].union(*macros)

    return FastBuild(
        folder=folder,
        readable=(prebuilt.folder, headers, *main.readable),
        has_standard_main=main.is_standard,
        find_words=find_words,
    )


def _find_added(source: "Source", prebuilt_cache: PrebuiltCache) -> list[AddedHeader] | str:
    added = list[AddedHeader]()
    for header in source.list_added():
        found = prebuilt_cache.find_added_header(source.prebuilt, header)
        if isinstance(found, str):
            return found
        added.append(found)
    return added


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


def read_code(source: str) -> tuple[str, frozenset[str]]:
    tokens = tokenize(source.replace("\\\n", ""))
    code = "".join(" " if token.kind == "comment" else token.text for token in tokens)
    return code, frozenset(token.text for token in tokens if token.kind == "word")


def refuse_source(source: str) -> str | None:
    """Return a reason that needs no prebuilt headers, which may take a minute to make."""
    if any(token.kind == "string" and _INCLUDE.search(token.text) for token in tokenize(source)):
        return "a string contains an #include"
    return _refuse_words(read_code(source)[1])


def _refuse_words(words: frozenset[str]) -> str | None:
    if asked := words & _DETECTION_WORDS:
        return f"it uses {min(asked)}"
    if named := [word for word in words if word == "pybind11" or word.startswith(_OF_PYTHON)]:
        return f"it uses {min(named)}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A CUDA source, and what it needs of torch's headers."""

    prebuilt: PrebuiltHeaders
    text: str
    code: str
    words: frozenset[str]
    included: tuple[str, ...]

    @classmethod
    def read(cls, request: BuildRequest, prebuilt: PrebuiltHeaders) -> Self:
        text = join_sources(request)
        code, words = read_code(text)
        return cls(prebuilt=prebuilt, text=text, code=code, words=words, included=tuple(list_includes(code)))

    def list_added(self) -> list[str]:
        return [one for one in CUDA_HEADERS if one in self.included and one not in self.prebuilt.known_headers]

    def refuse(self) -> str | None:
        """Return a reason why the prebuilt headers do not suffice."""
        for header in self.included:
            known = header in self.prebuilt.known_headers or header in CUDA_HEADERS or header in WIDER_HEADERS
            if _TORCH_HEADER.match(header) and not known and not self._is_operator(header):
                return f"it includes {header}"
        # Macros of omitted headers would silently change an #if.
        asked = {word for found in _CONDITION.finditer(self.code) for word in re.findall(r"[A-Za-z_]\w*", found[1])}
        asked -= {*_DEFINITION.findall(self.code)}
        unknown = asked & self.prebuilt.hidden_macros
        if WIDER_HEADERS.intersection(self.included):
            shown = {*_DEFINITION.findall(self.prebuilt.host_macros)} | {"defined", "true", "false"}
            unknown |= {word for word in asked - shown if not word.startswith("__")}
        return f"its #if conditions test {min(unknown)}" if unknown else None

    def _is_operator(self, header: str) -> bool:
        return header.startswith("ATen/ops/") and (self.prebuilt.include / header).exists()

    def write(self, folder: Path, added: Sequence[AddedHeader]) -> None:
        features = self._find_features()
        text = write_stub_headers(self.prebuilt.names, features, self.words)
        (folder / "stubs.h").write_text(shown_macros(self.prebuilt.host_macros) + text)
        own = {path: lines for header in added for path, lines in header.macros.items()}
        more = "".join(f"{line}\n" for lines in own.values() for line in lines.values())
        for side, macros in (("host", self.prebuilt.host_macros), ("device", self.prebuilt.device_macros)):
            shown = "".join(lines for name, lines in self.prebuilt.feature_macros[side].items() if name in features)
            (folder / f"{side}.macros").write_text(macros + shown + more)
        (folder / SOURCE).write_text(_INCLUDE.sub(_blank_torch, self.text), encoding="utf-8")
        (folder / "operators.h").write_text(write_operators(self.prebuilt, self.words))
        (folder / "added.ii").write_text("".join(_join_texts(added)))
        (folder / "dropped.json").write_text(json.dumps(sorted({*self.prebuilt.base_files, *own, "stubs.h"})))

    def _find_features(self) -> tuple[str, ...]:
        features = [*find_features(self.words)]
        features += [
            f"std:{name}" for name in self.included if re.fullmatch(r"[a-z_]+", name) and name not in STANDARD_HEADERS
        ]
        if any("/" in header and not _TORCH_HEADER.match(header) for header in self.included):
            features += [f"std:{name}" for name in MORE_STANDARD_HEADERS]  # template library such as CUB
        return tuple(dict.fromkeys(features))


def _join_texts(added: Sequence[AddedHeader]) -> Iterator[str]:
    """Yield each file's text once."""
    seen = set[str]()
    for header in added:
        yield from (text for name, text in header.texts if name not in seen)
        seen |= {name for name, _ in header.texts}


def _blank_torch(include: re.Match[str]) -> str:
    """CUDA's macros stay: they guard parts that the stub headers include against a second inclusion."""
    return "" if _TORCH_HEADER.match(include[1]) else include[0]


def write_script(source: Source, folder: Path, headers: Path, *, main_command: str, link_command: str) -> None:
    """Run both passes in parallel, then the host code, which needs their output. `headers` has torch's as text."""
    prebuilt = source.prebuilt
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
    host = [*compile_words(prebuilt.steps["host_compile"]), "-Winvalid-pch", "-include", str(headers / HOST_TEXT)]
    device_steps = [
        *front("device_preprocess", "device.macros", "device.ii"),
        shlex.join(device), shlex.join(prebuilt.steps["assemble"]),
        shlex.join([*prebuilt.steps["embed"], "--create=cuda.fatbin"]),
    ]  # fmt: skip
    operators = preprocess(
        prebuilt.steps["host_preprocess"], "operators.h", "operators.ii", "-imacros", "host.macros", first=False
    )
    host_steps = [
        *front("host_preprocess", "host.macros", "host.ii"), shlex.join(lower),
        shlex.join(operators), "cat added.ii operators.ii > delta", shlex.join(keep),
    ]  # fmt: skip
    lines = [
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
    ]
    (folder / SCRIPT).write_text("\n".join(lines))


def _device(step: list[str]) -> list[str]:
    words = list(step)
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    words[words.index("cuda.cpp1.ii")] = "device.ii"
    return words
