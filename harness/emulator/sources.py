"""Converts a build request to C++ sources for the emulated GPU, and explains compiler errors."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from harness.domain import BuildRequest
from harness.emulator.headers import RUNTIME, list_headers
from harness.emulator.rewrite import rewrite_device_source, rewrite_host_source
from harness.hardware.gpus import GpuModel
from harness.syntax.cpp import (
    Token,
    find_arguments,
    find_directive_end,
    join,
    match_forward,
    split_at,
    step,
    tokenize,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    target: GpuModel
    checked: bool = False


def write_target(emulation: Emulation) -> str:
    target = emulation.target
    values = [
        f'"{target.name}"',
        *target.compute_capability,
        target.warp_size,
        target.max_threads_per_block,
        *target.max_block,
        *target.max_grid,
        target.multiprocessors,
        target.max_threads_per_multiprocessor,
        target.max_blocks_per_multiprocessor,
        target.static_shared_bytes_per_block,
        target.max_shared_bytes_per_block,
        target.shared_bytes_per_multiprocessor,
        target.registers_per_block,
        f"{target.total_memory_bytes}ull",
        target.l2_bytes,
        target.clock_khz,
    ]
    text = (RUNTIME / "emulator" / "target.h").read_text(encoding="utf-8").replace("#pragma once", "")
    return f"{text}\nconst harness_emulator::Target harness_emulator_target = {{{', '.join(map(str, values))}}};\n"


_IMPLICIT = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>"
_HEAD = "#include <emulator/small.h>\n#include <emulator/inside.h>\n"
# torch's flags for CUDA sources; candidates may undefine them.
_COMMON_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)  # fmt: skip
_WIDER = ("torch/extension.h", "torch/torch.h", "torch/all.h", "torch/python.h")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
# Headers of CUDA and CUDA libraries.
_CUDA_HEADER = re.compile(
    r"(cu|nv|cub/|thrust/|cooperative_groups|mma|math_constants|sm_\d|device_|vector_|library_types|cutlass|cute/|host_|"
    r"driver_|texture_|surface_|ATen/(native/)?cuda|c10/cuda|ATen/native/.*\.cuh|cuda/)|.*\.cuh$"
)
_MISSING_HEADER = re.compile(r"^(\S+?):(\d+):\d+: fatal error: (\S+): No such file or directory", re.MULTILINE)
# Quotes depend on the compiler's locale.
_NAME = "[\u2018'](?:((?:\\w+::)*\\w+)::)?(\\w+)(?:<.*?>)?[\u2019']"
_SPACE = "[\u2018']([^\u2018\u2019']+)[\u2019']"
_UNKNOWN_NAME = re.compile(
    rf"^(\S+?:\d+):\d+: error: .*?{_NAME}(?: in namespace {_SPACE})? "
    "(?:was not declared|has not been declared|does not name a (?:template )?type|"
    f"is not a member of {_SPACE})"
    rf"|^(\S+?:\d+):\d+: error: there are no arguments to {_NAME}",
    re.MULTILINE,
)
_FIRST_ERROR = re.compile(r"^(\S+?):(\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
_UNDECLARED = re.compile("[\u2018'](\\w+)[\u2019'] (?:was not declared in this scope|is not a member of [\u2018'])")
_LINE_MARKER = re.compile(r"^#line (\d+).*\n", re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if", re.MULTILINE)
_MISSING_MEMBER = re.compile(
    "^(\\S+?:\\d+):\\d+: error: [\u2018'](?:(?:const|volatile|struct|class|union) )*"
    "((?:cooperative_groups|cub|thrust|nvcuda|cuda|harness_emulator)::.*|cuda[A-Z]\\w+|curand\\w+)[\u2019'] "
    "has no member named [\u2018'](\\w+)[\u2019']",
    re.MULTILINE,
)
_MISSING_OVERLOAD = re.compile(
    "^(\\S+?:\\d+):\\d+: error: no matching function for call to [\u2018']"
    "((?:cooperative_groups|cub|thrust|nvcuda|cuda)::[^(\\n]*)::(\\w+)\\(",
    re.MULTILINE,
)
# Errors about free functions omit the namespace, which is in the candidate's call.
_MISSING_FORM = re.compile(
    "^(\\S+?:\\d+):\\d+: error: no matching function for call to [\u2018'](\\w+)(?:<.*?>)?\\(", re.MULTILINE
)
_CUDA_NAME = re.compile(
    r"__\w+|cuda[A-Z]\w*|cu[A-Z]\w*|cublas\w+|curand\w*|cusparse\w+|cusolver\w+|cufft\w+|cudnn\w+|"
    r"CU[A-Z]\w+|nv[A-Z]\w+|nvrtc\w+|nvtx\w+"
)
_CUDA_SPACE = re.compile(r"(cub|thrust|cooperative_groups|cg|wmma|nvcuda|cuda|at::cuda|at::native|c10::cuda)\b")
# Removed from CUDA: nvcc refuses them too.
_REMOVED = frozenset({"__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot"})

Rewriter = Callable[[str, str], str]  # file name, source


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One source to compile. With `text` None, torch's plan writes it."""

    path: str
    text: str | None
    is_device: bool
    flags: tuple[str, ...] = ()
    may_need_more: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`uncovered` is the log of unsupported constructs; if set, nothing is compiled."""

    units: tuple[Unit, ...] = ()
    cpp_sources: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    own_names: frozenset[str] = frozenset()
    uncovered: str = ""

    @property
    def texts(self) -> frozenset[str]:
        units = (unit.text for unit in self.units if unit.text is not None)
        return frozenset((*units, *self.cpp_sources, *(text for _, text in (*self.files, *self.headers))))

    @property
    def words(self) -> frozenset[str]:
        return frozenset(word for text in self.texts for word in re.findall(r"[A-Za-z_]\w*", text))


def prepare_sources(request: BuildRequest, emulation: Emulation) -> Prepared:
    flags = (*_COMMON_FLAGS, *read_cuda_flags(request.extra_cuda_cflags))
    own = frozenset(name for name, _ in (*request.files, *request.headers)) | list_headers()
    lambdas = any(re.fullmatch(r"--?(expt-)?extended-lambda", word) for word in _split(request.extra_cuda_cflags))
    problems: list[str] = []

    def device(name: str, text: str) -> str:
        rewritten, found = rewrite_device_source(
            text, checked=emulation.checked, own_headers=own, extended_lambdas=lambdas
        )
        problems.extend(f"{name}:{problem.line}: not covered: {problem.message}" for problem in found)
        problems.extend(_find_uncovered_headers(name, text, own))
        return rewritten

    headers = tuple((name, device(name, text)) for name, text in request.headers)
    if request.files:
        prepared = _prepare_files(request, device, flags, headers)
    else:
        prepared = _prepare_inline(request, device, flags, headers)
    if problems:
        return Prepared(uncovered="\n".join(sorted(problems)))
    return prepared


def _prepare_inline(
    request: BuildRequest, device: Rewriter, flags: tuple[str, ...], headers: tuple[tuple[str, str], ...]
) -> Prepared:
    cpp = tuple(map(rewrite_host_source, request.cpp_sources))
    units = [Unit(path="main.cpp", text=None, is_device=False)]
    own = _words(*request.cpp_sources, *request.cuda_sources)
    if request.cuda_sources:
        implicit = "" if request.no_implicit_headers else f"{_IMPLICIT}\n"
        text = device("cuda.cu", "\n".join(request.cuda_sources))
        units.append(_make_unit("cuda.cpp", f'{implicit}{_HEAD}#line 1 "cuda.cu"\n{text}', flags))
    return Prepared(units=tuple(units), cpp_sources=cpp, headers=headers, own_names=own)


def _prepare_files(
    request: BuildRequest, device: Rewriter, flags: tuple[str, ...], headers: tuple[tuple[str, str], ...]
) -> Prepared:
    units, files = [], []
    for name, text in request.files:
        is_device = name.endswith((".cu", ".cuh"))
        is_unit = name.endswith((".cu", ".cpp", ".cc", ".cxx", ".c"))
        rewritten = device(name, text) if is_device else rewrite_host_source(text)
        if is_device and is_unit:
            path, plain = f"sources/{name}.cpp", f'{_HEAD}#line 1 "{name}"\n{rewritten}'
        else:
            path, plain = f"sources/{name}", rewritten
        files.append((path.removeprefix("sources/"), plain))
        if is_unit:
            units.append(_make_unit(path, plain, flags if is_device else None))
    own = _words(*(text for _, text in (*request.files, *request.headers)))
    return Prepared(units=tuple(units), files=tuple(files), headers=headers, own_names=own)


def _make_unit(path: str, text: str, device_flags: tuple[str, ...] | None) -> Unit:
    """With `device_flags`, the source is for the device."""
    flags = device_flags or ()
    if device_flags is not None and _names_python(text):
        flags += ("-DHARNESS_NEEDS_PYTHON",)
    includes_wider = any(found[1] in _WIDER for found in _INCLUDE.finditer(text))
    return Unit(path=path, text=text, is_device=device_flags is not None, flags=flags, may_need_more=includes_wider)


def _names_python(text: str) -> bool:
    return any(word in ("pybind11", "py") or word.startswith(("PYBIND11_", "Py", "THP")) for word in _words(text))


def _split(flags: tuple[str, ...]) -> list[str]:
    return [word for flag in flags for word in shlex.split(flag)]


def read_cuda_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    words, kept = _split(flags), []
    for at, word in enumerate(words):
        if re.match(r"-[DUI].", word):
            kept.append(word)
        elif word in ("-D", "-U", "-I") and at + 1 < len(words):
            kept.append(word + words[at + 1])
        elif found := re.fullmatch(r"--?std=c\+\+(\d\d)", word):
            kept.append(f"-std=c++{max(int(found[1]), 17)}")
    return tuple(kept)


_CUDA_LIBRARY = re.compile(
    r"(?<!\S)-l ?:?(lib)?(cuda\w*|cu(blas|dnn|fft|rand|solver|sparse|pti)\w*|nv\w+|nccl|(c10|torch)_cuda\w*)"
    r"(\.so|\.a)?[.\d]*(?!\S)"
)


def drop_cuda_libraries(flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, (_CUDA_LIBRARY.sub("", flag).strip() for flag in flags)))


def _find_uncovered_headers(name: str, text: str, own: frozenset[str]) -> list[str]:
    problems = []
    for found in _INCLUDE.finditer(text):
        header = found[1]
        if header not in own and header.split("/")[-1] not in own and _CUDA_HEADER.match(header):
            line = text.count("\n", 0, found.start()) + 1
            problems.append(f"{name}:{line}: not covered: the header {header}")
    return problems


def explain_failure(log: str, prepared: Prepared) -> tuple[str, bool]:
    """Return the cleaned log of a failed compilation, and whether the emulator is the cause.

    The emulator is the cause if CUDA may have a name, member or overload that no runtime header declares.
    """
    log = _drop_warnings(log)
    reasons = []
    for found in _UNKNOWN_NAME.finditer(log):
        location, name = found[1] or found[6], found[3] or found[8]
        space = found[2] or found[4] or found[5] or ""
        if name in prepared.own_names and not _CUDA_NAME.fullmatch(name) and not space:
            continue
        looks_like_cuda = _CUDA_NAME.fullmatch(name) or _CUDA_SPACE.match(space)
        if looks_like_cuda and name not in list_declared_names() and name not in _REMOVED:
            reasons.append(f"{location}: not covered: {space + '::' if space else ''}{name}")
    for found in _MISSING_HEADER.finditer(log):
        if _CUDA_HEADER.match(found[3]):
            reasons.append(f"{found[1]}:{found[2]}: not covered: the header {found[3]}")
    for found in (*_MISSING_MEMBER.finditer(log), *_MISSING_OVERLOAD.finditer(log)):
        space = re.sub(r"harness_emulator::|<.*", "", found[2])
        reasons.append(f"{found[1]}: not covered: {space}::{found[3]}")
    for found in _MISSING_FORM.finditer(log):
        called = re.compile(rf"\b(thrust|cub)\s*::\s*{found[2]}\b")
        space = next((match[1] for unit in prepared.units if (match := called.search(unit.text or ""))), None)
        if space is not None:
            reasons.append(f"{found[1]}: not covered: this form of {space}::{found[2]}")
    if reasons:
        return "\n".join(dict.fromkeys(reasons)) + f"\n\n{log}", True
    return log, False


def begins_with_syntax_error(log: str) -> bool:
    first = _FIRST_ERROR.search(log)
    return first is not None and first[3].startswith("expected ")


def find_unknown_name(log: str, prepared: Prepared) -> str | None:
    """Return the name in the first error if its first use in the sources is there and no condition omits lines."""
    first = _FIRST_ERROR.search(log)
    undeclared = first and _UNDECLARED.match(first[3])
    if not first or not undeclared:
        return None
    texts = prepared.texts
    word = re.compile(rf"\b{undeclared[1]}\b")
    users = [text for text in texts if word.search(text)]
    if len(users) != 1 or any(map(_CONDITION.search, texts)):
        return None
    above = word.split(users[0])[0]
    if f'#line 1 "{first[1]}"\n' not in above:
        return None
    *_, marker = _LINE_MARKER.finditer(above)
    line = int(marker[1]) + above.count("\n", marker.end())
    return undeclared[1] if line == int(first[2]) else None


def _drop_warnings(log: str) -> str:
    kept, is_warning = [], False
    for line in log.splitlines(keepends=True):
        if not line.startswith((" ", "\t")):
            is_warning = ": warning: " in line
        if not is_warning:
            kept.append(line)
    return "".join(kept)


def _words(*texts: str) -> frozenset[str]:
    return frozenset(token.text for text in texts for token in tokenize(text) if token.kind == "word")


_PASTE = re.compile(r"\s*##\s*")
_DEEPEST = 8

Macros = dict[str, list[tuple[list[str], str]]]  # parameters and body of each definition


@cache
def list_declared_names() -> frozenset[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(RUNTIME.rglob("*")) if path.is_file()]
    return find_declared_names("\n".join(texts))


def find_declared_names(text: str) -> frozenset[str]:
    tokens = tokenize(text)
    macros = _read_macros(tokens)
    written_out = [part for call in _find_calls(tokens, macros) for part in _expand(*call, macros, _DEEPEST)]
    return frozenset(
        token.text for part in (tokens, *map(tokenize, written_out)) for token in part if token.kind == "word"
    )


def _read_macros(tokens: list[Token]) -> Macros:
    macros: Macros = {}
    for at, token in enumerate(tokens):
        name = step(tokens, at) if token.text == "define" and token.directive else None
        if name is None or tokens[name + 1].text != "(":
            continue
        closing = match_forward(tokens, name + 1)
        if closing is None:
            continue
        parameters = [part.text for part in tokens[name + 2 : closing] if part.kind == "word"]
        macros.setdefault(tokens[name].text, []).append(
            (parameters, join(tokens[closing + 1 : find_directive_end(tokens, closing)]))
        )
    return macros


def _find_calls(tokens: list[Token], macros: Macros) -> Iterator[tuple[str, list[str]]]:
    for at, token in enumerate(tokens):
        arguments = find_arguments(tokens, at) if token.text in macros else None
        if arguments is not None:
            parts = split_at(tokens, arguments[0] + 1, arguments[1], {",": 1})
            yield token.text, [join(part).strip() for part in parts]


def _expand(name: str, arguments: list[str], macros: Macros, deepest: int) -> Iterator[str]:
    for parameters, body in macros[name]:
        if len(parameters) != len(arguments) or deepest == 0:
            continue
        values = dict(zip(parameters, arguments, strict=True))
        words = tokenize(body)
        text = _PASTE.sub("", "".join(values.get(word.text, word.text) for word in words))
        yield text
        for call in _find_calls(tokenize(text), macros):
            yield from _expand(*call, macros, deepest - 1)
