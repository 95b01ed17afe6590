"""The fast lane for one request of `load_inline` with CUDA sources: decides whether it is fit, and writes its steps.

The device code is made by nvcc's own steps from the source behind the façade; the host code by the C++ compiler from
what nvcc's front end made of the source, against torch's own headers, precompiled. Whatever does not fit is None here,
and whatever fails to compile is built by the plain lane: docs/builds.md says why what succeeds is the same.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.builder.fast.binding import write_binding
from harness.builder.fast.final_errors import find_final_errors
from harness.builder.fast.prebuilt import (
    CUDA_HEADERS,
    IMPLICIT_HEADERS,
    REGIONS_PROGRAM,
    SOURCE,
    WORDS,
    Kit,
    compile_words,
    lowering,
    preprocess,
    shown_macros,
)
from harness.builder.fast.prebuilt_cache import KitShelf, strip_name
from harness.builder.fast.stub_headers import MORE_STANDARD_HEADERS, STANDARD_HEADERS, facade_text, find_features
from harness.builder.torch_ninja import read_plan
from harness.domain import BuildRequest
from harness.emulator.cpp_tokens import tokenize

# Headers that only add names for Python, modules and optimisers: a source that needs one of these fails to compile.
WIDER_HEADERS = frozenset({"torch/extension.h", "torch/torch.h", "torch/all.h"})
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"].*$', re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2|pybind11|Python)\b")
# Words whose meaning depends on which names are visible, not only on those that are used.
_ASKS_WHAT_IS_VISIBLE = frozenset({"requires", "concept", "__has_include", "void_t", "is_detected"})
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_OF_PYTHON = ("Py", "PYBIND11_", "THP")
# A place in a file, as the C++ compiler names it where a text is at fault.
_ERROR = re.compile(r"^\S+:\d+:\d+: (?:fatal )?error: ", re.MULTILINE)
_MISSING_LIBRARY = re.compile(r"^\S*\bld: cannot find -l", re.MULTILINE)  # both lanes link with the same flags
SCRIPT, FRONT_LOG = "fast.sh", "front.log"
MAIN_FAILED, FRONT_FAILED = 3, 4  # the script's exit codes where main.cpp, or the front end, did not compile


@dataclass(frozen=True, slots=True, kw_only=True)
class FastBuild:
    """A folder with a script that makes the library there, and what the script must be able to read.

    `main_as_ever`: main.cpp is the plain lane's own, and all that differs is that a header comes precompiled. `kit` is
    the folder of the CUDA kit where there are CUDA sources, `included` the headers that they include.
    """

    folder: Path
    readable: tuple[Path, ...]
    main_as_ever: bool
    kit: Path | None
    included: tuple[str, ...] = ()

    def find_verdict(self, returncode: int, log: str) -> str | None:
        """The log of a failure that the plain lane's would be as well; None where that lane has to be asked."""
        if returncode == FRONT_FAILED and self.kit is not None:
            return self._find_final_errors(self.kit)
        compiled_main = self.main_as_ever and returncode == MAIN_FAILED  # the same compiler, in the same text
        blames_us = any(str(folder) in log for folder in self.readable)  # a kit of ours, not the candidate's text
        is_sure = bool(_ERROR.search(log)) and "internal compiler error" not in log and not blames_us
        is_sure &= compiled_main
        return log if is_sure or _MISSING_LIBRARY.search(log) else None

    def _find_final_errors(self, kit: Path) -> str | None:
        log, own_text = (
            path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            for path in (self.folder / FRONT_LOG, self.folder / "body.host.ii")
        )
        words = json.loads((kit / WORDS).read_text(encoding="utf-8"))
        known = {word for header in ("", *self.included) for word in words.get(header, ())}
        return find_final_errors(log, str(self.folder / SOURCE), own_text, known)

    def name_failed(self, returncode: int) -> str:
        """The object file whose source did not compile, by the name that it has in the plain lane."""
        return "cuda.cuda.o" if self.kit and returncode != MAIN_FAILED else "main.o"


def prepare_fast(request: BuildRequest, work: Path, kits: KitShelf) -> FastBuild | str:
    """The fast lane of a request whose plain plan is in `work`, or why there is none."""
    if request.files:
        return "it is made of files, by load"
    if request.headers or request.no_implicit_headers:
        return "it brings its own headers" if request.headers else "it asks for no_implicit_headers"
    plan = read_plan(work)
    folder = work.parent / "fast"
    folder.mkdir()
    if not request.needs_cuda:
        return _prepare_host(request, work, folder, plan, kits)
    return _prepare_cuda(request, work, folder, plan, kits)


def _prepare_host(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], kits: KitShelf
) -> FastBuild | str:
    header = kits.find_precompiled(plan["cxx"], strip_name(plan["cflags"]))
    if isinstance(header, str):
        return header
    shutil.copy(work / "main.cpp", folder)
    link = f"{plan['cxx']} main.o {plan['ldflags']} -o {request.name}.so"
    (folder / SCRIPT).write_text(f"set -e\n{_compile_main(plan, header)} || exit {MAIN_FAILED}\n{link}\n")
    return FastBuild(folder=folder, readable=(header,), main_as_ever=True, kit=None)


def _compile_main(plan: dict[str, str], header: Path | None) -> str:
    """The plain lane's command for main.cpp; `header` is the folder of a precompiled torch/extension.h."""
    search = "" if header is None else f"-I{shlex.quote(str(header))} "
    return f"{plan['cxx']} {search}{plan['cflags']} -c main.cpp -o main.o {plan['post_cflags']}"


def _prepare_cuda(
    request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], kits: KitShelf
) -> FastBuild | str:
    if not request.cuda_sources:
        return "it has no CUDA source"
    if plan.get("cuda_dlink_post_cflags"):
        return "its device code is linked separately"
    flags = f"{strip_name(plan['cuda_cflags'])} {plan['cuda_post_cflags']}".strip()
    kit = kits.find_cuda_kit(plan["nvcc"], flags, beside=lambda: _find_binding(request, plan, kits))
    if isinstance(kit, str):
        return kit
    main = _prepare_main(request, work, folder, plan, kits)
    link = f"{plan['cxx']} {' '.join(main.objects)} cuda.cuda.o {plan['ldflags']} -o {request.name}.so"
    reason = write_fast_steps(kit, request, folder, main_command=main.command, link_command=link)
    if reason is not None:
        return reason
    included = tuple(list_includes(read_code(join_sources(request))[0]))
    readable = (kit.folder, *main.readable)
    return FastBuild(folder=folder, readable=readable, main_as_ever=main.as_ever, kit=kit.folder, included=included)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Main:
    command: str
    objects: tuple[str, ...]
    readable: tuple[Path, ...]
    as_ever: bool


def _prepare_main(request: BuildRequest, work: Path, folder: Path, plan: dict[str, str], kits: KitShelf) -> _Main:
    """How the binding file is compiled: without torch's headers where it holds plain prototypes."""
    text = write_binding(request)
    binding = _find_binding(request, plan, kits) if text else ""
    if not text or isinstance(binding, str):
        shutil.copy(work / "main.cpp", folder)
        found = kits.find_precompiled(plan["cxx"], strip_name(plan["cflags"]))
        header = found if isinstance(found, Path) else None
        readable = () if header is None else (header,)
        return _Main(command=_compile_main(plan, header), objects=("main.o",), readable=readable, as_ever=True)
    (folder / "main.cpp").write_text(text)
    objects = ("main.o", shlex.quote(str(binding)))
    return _Main(command=_compile_main(plan, None), objects=objects, readable=(binding.parent,), as_ever=False)


def _find_binding(request: BuildRequest, plan: dict[str, str], kits: KitShelf) -> Path | str:
    added = " ".join(flag.strip() for flag in request.extra_cflags)
    return kits.find_binding(plan["cxx"], strip_name(plan["cflags"].removesuffix(added)))


def join_sources(request: BuildRequest) -> str:
    """The one CUDA source that torch's load_inline makes of all."""
    return "\n".join((*(f"#include <{header}>" for header in IMPLICIT_HEADERS), *request.cuda_sources))


def list_includes(code: str) -> list[str]:
    return [found[1] for found in _INCLUDE.finditer(code)]


def write_fast_steps(
    kit: Kit, request: BuildRequest, folder: Path, *, main_command: str, link_command: str
) -> str | None:
    """Fills `folder` with the fast lane's files and its script, and returns why not where the source does not fit.

    `main_command` makes main.o, `link_command` the library from main.o and cuda.cuda.o.
    """
    source = join_sources(request)
    code, words = read_code(source)
    included = list_includes(code)
    if any(token.kind == "string" and _INCLUDE.search(token.text) for token in tokenize(source)):
        return "a string of it holds an #include"
    reason = _why_unfit(kit, words, included) or _why_condition_is_unfit(kit, code, included)
    if reason is not None:
        return reason
    _write_sources(kit, folder, source, words, included)
    (folder / SCRIPT).write_text(_script(kit, folder, request.name, main_command, link_command))
    return None


def read_code(source: str) -> tuple[str, frozenset[str]]:
    """The source without its comments, and its words: those in comments and strings are none of them."""
    tokens = tokenize(source.replace("\\\n", ""))
    code = "".join(" " if token.kind == "comment" else token.text for token in tokens)
    return code, frozenset(token.text for token in tokens if token.kind == "word")


def _why_unfit(kit: Kit, words: frozenset[str], included: Sequence[str]) -> str | None:
    if asked := words & _ASKS_WHAT_IS_VISIBLE:
        return f"it uses {min(asked)}"
    if named := [word for word in words if word == "pybind11" or word.startswith(_OF_PYTHON)]:
        return f"it uses {min(named)}"
    for header in included:
        known = header in kit.known_headers or header in kit.closures or header in WIDER_HEADERS
        if _TORCH_HEADER.match(header) and not known:
            return f"it includes {header}"
    return None


def _why_condition_is_unfit(kit: Kit, source: str, included: Sequence[str]) -> str | None:
    """A macro of the headers that are not read here would make an #if go another way without a word."""
    if not WIDER_HEADERS.intersection(included):
        return None
    asked = {word for found in _CONDITION.finditer(source) for word in re.findall(r"[A-Za-z_]\w*", found[1])}
    own = set(_DEFINITION.findall(source)) | set(_DEFINITION.findall(kit.host_macros)) | {"defined", "true", "false"}
    unknown = sorted(word for word in asked - own if not word.startswith("__"))
    return f"its conditions ask for {unknown[0]}" if unknown else None


def _write_sources(kit: Kit, folder: Path, source: str, words: frozenset[str], included: Sequence[str]) -> None:
    """The façade, the macros of both passes, the source without torch's includes, torch's headers beyond the kit's."""
    features = [*find_features(words)]
    features += [f"std:{name}" for name in included if re.fullmatch(r"[a-z_]+", name) and name not in STANDARD_HEADERS]
    if any("/" in header and not _TORCH_HEADER.match(header) for header in included):
        features += [f"std:{name}" for name in MORE_STANDARD_HEADERS]  # a library of templates, such as CUB
    text = facade_text(kit.names, tuple(dict.fromkeys(features)), words, cuda=True)
    (folder / "facade.h").write_text(shown_macros(kit.host_macros) + text)
    extra = [header for header in included if header in kit.closures and header not in kit.known_headers]
    more_files = list(dict.fromkeys(path for header in extra for path in kit.closures[header]))
    more = "".join(f"{line}\n" for path in more_files for line in kit.more_macros[path].values())
    for side, macros in (("host", kit.host_macros), ("device", kit.device_macros)):
        shown = "".join(lines for name, lines in kit.feature_macros[side].items() if name in features)
        (folder / f"{side}.macros").write_text(macros + shown + more)
    (folder / SOURCE).write_text(_INCLUDE.sub(_blank_torch, source), encoding="utf-8")
    wanted = set(more_files)
    delta = [text for name, text in json.loads((kit.folder / "more.json").read_text()) if name in wanted]
    (folder / "delta").write_text("".join(delta))
    (folder / "dropped.json").write_text(json.dumps(sorted(kit.base_files | set(more_files) | {"facade.h"})))


def _blank_torch(include: re.Match[str]) -> str:
    header = include[1]
    return "" if _TORCH_HEADER.match(header) or header in IMPLICIT_HEADERS or header in CUDA_HEADERS else include[0]


def _script(kit: Kit, folder: Path, name: str, main_command: str, link_command: str) -> str:
    """Both passes at once; then the host code, which needs the device's image and the front end's stubs."""
    overlay = ("-I", str(kit.folder / "overlay"))
    path = str(folder / SOURCE)

    def front(step: str, macros: str, out: str) -> list[str]:
        words = kit.steps[step]
        return [
            shlex.join(preprocess(words, "facade.h", f"facade.{out}", *overlay)),
            shlex.join(preprocess(words, path, f"body.{out}", "-imacros", macros, first=False)),
            f"cat facade.{out} body.{out} > {out}",
        ]

    lower = [
        path if word == str(kit.folder / SOURCE) else word
        for word in lowering(kit.steps["lower"], "host.ii", "lowered.cpp")
    ]
    device = [path if word == str(kit.folder / SOURCE) else word for word in _device(kit.steps["device"])]
    keep = [
        sys.executable,
        "-I",
        "-S",
        str(kit.folder / REGIONS_PROGRAM),
        "lowered.cpp",
        "dropped.json",
        "delta",
        path,
        "own.cpp",
    ]
    host = [*compile_words(kit.steps["host_compile"]), "-Winvalid-pch", "-include", str(kit.folder / "base.h")]
    device_steps = [
        *front("device_preprocess", "device.macros", "device.ii"),
        shlex.join(device), shlex.join(kit.steps["assemble"]), shlex.join(kit.steps["embed"]),
    ]  # fmt: skip
    host_steps = [*front("host_preprocess", "host.macros", "host.ii"), shlex.join(lower), shlex.join(keep)]
    return "\n".join([
        "set -e",
        "{ " + " && ".join(device_steps) + "; } > device.log 2>&1 & device=$!",
        "{ " + main_command + "; } > main.log 2>&1 & main=$!",
        "{ " + " && ".join(host_steps) + f"; }} > {FRONT_LOG} 2>&1 || {{ cat {FRONT_LOG}; exit {FRONT_FAILED}; }}",
        "wait $device || { cat device.log; exit 1; }",
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
