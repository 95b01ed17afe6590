"""Prebuilt parts of the fast strategy: nvcc's steps, and torch's headers as text and macros.

Operators that a source does not name are left out of the text, see `write_operators`.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.builder.fast import line_markers
from harness.builder.fast.final_errors import list_words
from harness.builder.fast.line_markers import read_macros, split_regions
from harness.builder.fast.operators import MACRO, NARROW, write_narrow_lists
from harness.builder.fast.stub_headers import REAL_HEADERS, TorchNames, read_torch_names
from harness.hardware.host import count_cores

IMPLICIT_HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h")
# Headers that candidates add. Each takes effect only if included.
CUDA_HEADERS = (
    "ATen/cuda/CUDAContext.h", "ATen/cuda/Exceptions.h", "c10/cuda/CUDAException.h", "c10/cuda/CUDAFunctions.h",
    "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h",
)  # fmt: skip
# Headers of torch that must not be pulled in by the real ones that the stub headers include.
OVERLAID = (
    "c10/util/ArrayRef.h", "c10/util/Exception.h", "c10/util/irange.h", "c10/util/Deprecated.h",
    "torch/headeronly/core/ScalarType.h", "c10/core/ScalarType.h",
)  # fmt: skip
_NARROW = ("-I", NARROW, f"-D{MACRO}")
STEPS = ("host_preprocess", "lower", "device_preprocess", "device", "assemble", "embed", "host_compile")
SOURCE = "cuda.cu"
USABLE, UNUSABLE = "prebuilt.json", "unusable.txt"
ADDED, WORDS = "added.json", "words.json"
HOST_TEXT = "base.h"
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"__attribute__\(\((?:host|device|global|shared|constant|managed)\)\)")
# Files of the C and C++ libraries. CUDA headers pulled in by torch's count as included only where the stub headers show
# them, so that candidates can include them again.
_OF_SYSTEM = re.compile(r"^/usr/(include|lib\w*)/|/c\+\+/|/gcc/|/sysroot/")
REGIONS_PROGRAM = "regions.py"  # a copy, since the build sandbox does not show this package

Run = Callable[[Sequence[str], Path], tuple[int | None, str]]


class PrebuiltError(Exception):
    """Raised if headers cannot be prebuilt for this toolchain or these flags."""


def run_or_raise(run: Run, command: Sequence[str], folder: Path) -> str:
    """Return the output. Raises PrebuiltError for a command that fails."""
    returncode, log = run(command, folder)
    if returncode != 0:
        raise PrebuiltError(f"{shlex.join(command)[:300]}\nended with {returncode}:\n{log[-4000:]}")
    return log


@dataclass(frozen=True, slots=True, kw_only=True)
class PrebuiltHeaders:
    """`steps` are nvcc's commands by name (see `STEPS`). `folder` has the headers' text, `HOST_TEXT`."""

    folder: Path
    include: Path  # of torch
    steps: dict[str, list[str]]
    names: TorchNames
    known_headers: frozenset[str]  # torch headers contained in the text
    base_files: frozenset[str]
    host_macros: str
    device_macros: str
    feature_macros: dict[str, dict[str, str]]  # "host" and "device" -> feature -> macros of its CUDA headers
    hidden_macros: frozenset[str]  # of torch's headers, but not shown here

    def write(self) -> None:
        values = asdict(self) | {
            "folder": None, "include": str(self.include), "known_headers": sorted(self.known_headers),
            "base_files": sorted(self.base_files), "hidden_macros": sorted(self.hidden_macros),
        }  # fmt: skip
        (self.folder / USABLE).write_text(json.dumps(values))


def read_prebuilt(folder: Path) -> PrebuiltHeaders:
    values = json.loads((folder / USABLE).read_text())
    values["names"] = TorchNames(**values["names"])
    return PrebuiltHeaders(**values | {
        "folder": folder, "include": Path(values["include"]), "known_headers": frozenset(values["known_headers"]),
        "base_files": frozenset(values["base_files"]), "hidden_macros": frozenset(values["hidden_macros"]),
    })  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedHeader:
    """What a header of CUDA_HEADERS adds: files and their content in order, macros by file, and words."""

    texts: list[tuple[str, str]]
    macros: dict[str, dict[str, str]]
    words: list[str]


def read_added(folder: Path) -> AddedHeader:
    return AddedHeader(**json.loads((folder / ADDED).read_text()))


def read_steps(dry_run: str) -> dict[str, list[str]]:
    """Parse nvcc's dry run. Raises PrebuiltError for unknown steps."""
    variables = dict(re.findall(r"^#\$ (\w+)=(.*)$", dry_run, re.M))
    programs = {
        Path(folder) / name
        for folder in variables.get("PATH", "").split(":")
        for name in ("cudafe++", "ptxas", "fatbinary")
    }
    commands = []
    for line in dry_run.splitlines():
        text = line.removeprefix("#$ ")
        if re.match(r"\w+=", text) or text.startswith("rm "):
            continue
        words = shlex.split(text.replace("$CICC_PATH", variables.get("CICC_PATH", "")))
        words[0] = next((str(path) for path in programs if path.name == words[0] and path.exists()), words[0])
        commands.append([re.sub(r"(/\S*?/)?tmpxft_\w+-\d+_", "", word) for word in words])
    if len(commands) != len(STEPS) or not commands[3][0].endswith("cicc"):
        raise PrebuiltError(f"nvcc runs {len(commands)} steps for these flags, expected {len(STEPS)}")
    return dict(zip(STEPS, commands, strict=True))


def files_of(preprocessed: str) -> frozenset[str]:
    names = re.findall(r'^# \d+ "([^"]*)"', preprocessed, re.M)
    return frozenset(name for name in names if name.startswith(("/", NARROW)))


def name_header(path: str, include: Path) -> str:
    """Return the name relative to torch's folder; gcc may resolve links."""
    for folder in (include, include.resolve()):
        for root in (folder / "torch" / "csrc" / "api" / "include", folder):
            if path.startswith(f"{root}/"):
                return path[len(str(root)) + 1 :]
    return path.removeprefix(NARROW)


def preprocess(step: list[str], source: str, out: str, *extra: str, first: bool = True) -> list[str]:
    """Adapt nvcc's preprocessing step. `first` keeps the CUDA header that nvcc prepends."""
    words = [word for word in step if word != SOURCE]
    end = words.index("-o")
    words = words[:end]
    if not first:
        at = words.index("-include")
        del words[at : at + 2]
    at = words.index("-x") + 2
    return [*words[:at], *extra, *words[at:], source, "-o", out]


def write_operators(prebuilt: PrebuiltHeaders, words: Iterable[str]) -> str:
    """Return torch's declarations of the operators that a source may call: those of its words."""
    names = [f"ATen/ops/{word}{end}.h" for word in sorted(words) for end in ("_ops", "")]
    new = [name for name in names if name not in prebuilt.known_headers and (prebuilt.include / name).exists()]
    texts = [(prebuilt.include / name).read_text(encoding="utf-8") for name in new]
    return "".join(re.sub(r"^#.*$", "", text, flags=re.MULTILINE) for text in texts)


class PrebuiltMaker:
    """`run` executes a command in a folder and must be thread-safe."""

    def __init__(self, folder: Path, steps: dict[str, list[str]], include: Path, run: Run) -> None:
        self._folder = folder
        self._steps = steps
        self._include = include
        self._run = run

    def make(self) -> None:
        shutil.copy(line_markers.__file__, self._folder / REGIONS_PROGRAM)
        for header in OVERLAID:
            (self._folder / "overlay" / header).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / "overlay" / header).write_text("")
        with ThreadPoolExecutor(max(2, count_cores())) as pool:
            self._make_parts(pool)
        self._remove_intermediate()

    def _make_parts(self, pool: Executor) -> None:
        write_narrow_lists(self._folder, self._include)
        host = pool.submit(self._dump, "host", IMPLICIT_HEADERS, _NARROW)
        device = pool.submit(self._dump, "device", IMPLICIT_HEADERS, _NARROW, "device_preprocess")
        runtime = pool.submit(self._dump, "runtime", ())
        features = {name: pool.submit(self._dump, name, headers) for name, (_, headers) in REAL_HEADERS.items()}
        base = host.result()
        files = files_of(base)
        texts = pool.submit(self._write_texts, base, files)
        hidden = frozenset(filter(self._is_of_toolkit, files)) - files_of(runtime.result())
        shown = {name: hidden & files_of(future.result()) for name, future in features.items()}
        sides = {"host": base, "device": device.result()}
        PrebuiltHeaders(
            folder=self._folder,
            include=self._include,
            steps=self._steps,
            names=read_torch_names(self._include, read_macros(base)),
            known_headers=frozenset(name_header(path, self._include) for path in files),
            base_files=files,
            host_macros=_write_macros(base, files - hidden),
            device_macros=_write_macros(sides["device"], files_of(sides["device"]) - hidden),
            feature_macros={
                side: {name: _write_macros(text, some) for name, some in shown.items()} for side, text in sides.items()
            },
            hidden_macros=frozenset(read_macros(base, {path for path in hidden if Path(path).name != "cuda.h"})),
        ).write()
        text = "".join(text for _, text in texts.result())
        (self._folder / HOST_TEXT).write_text(text, encoding="utf-8", errors="surrogateescape")

    def make_added(self, base: PrebuiltHeaders, header: str) -> None:
        """Write what `header` adds to the base."""
        write_narrow_lists(self._folder, self._include)
        dump = self._dump("added", (*IMPLICIT_HEADERS, header), _NARROW)
        files = files_of(dump) - base.base_files
        own = {path for path in files if not self._is_of_toolkit(path)}
        added = AddedHeader(
            texts=self._write_texts(dump, files),
            macros={path: read_macros(dump, {path}) if path in own else {} for path in sorted(files)},
            words=list_words("".join(text for name, text in split_regions(dump) if name in files)),
        )
        (self._folder / ADDED).write_text(json.dumps(asdict(added)))
        self._remove_intermediate()

    def make_words(self) -> None:
        """Write all words and macros that a source may take from the headers of every source."""
        dump = self._dump("wide", ("torch/extension.h", *IMPLICIT_HEADERS))
        words = {"words": list_words(dump), "macros": sorted(set(_DEFINED.findall(dump)))}
        (self._folder / WORDS).write_text(json.dumps(words))
        self._remove_intermediate()

    def _write_texts(self, dump: str, files: frozenset[str]) -> list[tuple[str, str]]:
        """Return the text of `files` for the C++ compiler: torch's without CUDA's attributes, the others as by nvcc."""
        regions = list(split_regions(re.sub(r"^#(?:define|undef) .*\n", "", dump, flags=re.M)))
        others = "".join(text for name, text in regions if not self._is_of_torch(name))
        (self._folder / "others.ii").write_text(others, encoding="utf-8", errors="surrogateescape")
        self._do(lowering(self._steps["lower"], "others.ii", "others.cpp"))
        lowered = [part for part in list(split_regions(self._read("others.cpp")))[1:] if part[0] in files]
        of_torch = [(name, text) for name, text in regions if self._is_of_torch(name) and name in files]
        return [*lowered, *((name, _ATTRIBUTE.sub("", text)) for name, text in of_torch)]

    def _is_of_torch(self, path: str) -> bool:
        return path.startswith((f"{self._include}/", f"{self._include.resolve()}/", NARROW))

    def _is_of_toolkit(self, path: str) -> bool:
        return not self._is_of_torch(path) and not _OF_SYSTEM.search(path)

    def _dump(
        self, name: str, headers: Sequence[str], options: Sequence[str] = (), step: str = "host_preprocess"
    ) -> str:
        source, out = f"dump-{name}.cu", f"dump-{name}.ii"
        (self._folder / source).write_text("".join(f"#include <{header}>\n" for header in headers))
        self._do(preprocess(self._steps[step], source, out, *options, "-dD"))
        return self._read(out)

    def _read(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8", errors="surrogateescape")

    def _do(self, command: list[str]) -> None:
        run_or_raise(self._run, command, self._folder)

    def _remove_intermediate(self) -> None:
        for pattern in ("*.ii", "*.cpp", "dump-*.cu"):
            for path in self._folder.glob(pattern):
                path.unlink()


def precompile(base: PrebuiltHeaders, folder: Path, run: Run) -> None:
    shutil.copy(base.folder / HOST_TEXT, folder)
    words = compile_words(base.steps["host_compile"])
    words[words.index("-x") + 1] = "c++-header"
    run_or_raise(run, [*(word for word in words if word != "-c"), HOST_TEXT, "-o", f"{HOST_TEXT}.gch"], folder)


def _write_macros(dump: str, files: frozenset[str]) -> str:
    return "".join(f"{line}\n" for line in read_macros(dump, files).values())


def lowering(step: list[str], source: str, out: str) -> list[str]:
    words = [word for word in step if word != "--gen_module_id_file"][:-1]
    words[words.index("--gen_c_file_name") + 1] = out
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    return [*words, source]


def compile_words(step: list[str]) -> list[str]:
    """Return the command up to the source. The front end would have removed the attributes that it warns of."""
    return [*step[: step.index("-o") - 1], "-Wno-attributes"]


def shown_macros(macros: str) -> str:
    """Return torch's macros without include guards."""
    shown = re.compile(r"#define (TORCH_|C10_|STD_TORCH|AT_|THO_|_?HIDDEN_N)\w*(\([^)]*\))? \S")
    return "".join(f"{line}\n" for line in macros.splitlines() if shown.match(line))
