"""Prebuilt parts of the fast strategy: nvcc's steps, and torch's headers lowered by the front end and precompiled.

They are verified on a sample, which the front end must lower identically with stub headers and with torch's.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.builder.fast import line_markers
from harness.builder.fast.final_errors import list_words
from harness.builder.fast.line_markers import read_macros, split_regions
from harness.builder.fast.stub_headers import (
    REAL_HEADERS,
    TorchNames,
    find_features,
    read_torch_names,
    write_stub_headers,
)

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
STEPS = ("host_preprocess", "lower", "device_preprocess", "device", "assemble", "embed", "host_compile")
SOURCE = "cuda.cu"
USABLE, UNUSABLE = "prebuilt.json", "unusable.txt"
WORDS = "words.json"  # header -> its words, "" for those of every source; read by `final_errors`
MACROS = "#define"  # its entry for all macros
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)
# Files of the C and C++ libraries. CUDA headers pulled in by torch's count as included only where the stub headers show
# them, so that candidates can include them again.
_OF_SYSTEM = re.compile(r"^/usr/(include|lib\w*)/|/c\+\+/|/gcc/|/sysroot/")
REGIONS_PROGRAM = "regions.py"  # a copy, since the build sandbox does not show this package

SAMPLE = r"""
template <typename T> __global__ void sample_kernel(const T* x, T* y, int64_t n, float scale) {
  __shared__ T tile[32];
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % 32] = i < n ? x[i] : T(0);
  __syncthreads();
  if (i < n) { y[i] = fmaxf(tile[threadIdx.x % 32], 0.0f) * scale; }
}
torch::Tensor sample(torch::Tensor x, const at::Tensor& other, double scale, std::vector<int64_t> shape) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2, "x must be a CUDA matrix, it has ", x.dim(), " dimensions");
  TORCH_CHECK(x.scalar_type() == torch::kFloat32);
  auto y = torch::empty_like(x);
  auto z = torch::zeros({x.size(0), x.size(1)}, x.options().dtype(torch::kFloat32));
  const auto n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sample", [&] {
    sample_kernel<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n, scale);
  });
  z.add_(y).mul_(2.0);
  return at::matmul(z, other.contiguous().t()) + y.sum(-1, true) * scale;
}
"""

Run = Callable[[Sequence[str], Path], tuple[int | None, str]]


class PrebuiltError(Exception):
    """Raised if headers cannot be prebuilt for this toolchain or these flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrebuiltHeaders:
    """`steps` are nvcc's commands by name (see `STEPS`)."""

    folder: Path
    steps: dict[str, list[str]]
    names: TorchNames
    known_headers: frozenset[str]  # torch headers contained in the precompiled one
    closures: dict[str, list[str]]  # header of CUDA_HEADERS -> files that it adds
    base_files: frozenset[str]
    host_macros: str
    device_macros: str
    feature_macros: dict[str, dict[str, str]]  # "host" and "device" -> feature -> macros of its CUDA headers
    more_macros: dict[str, dict[str, str]]  # file -> its macros, for files beyond the base
    hidden_macros: frozenset[str]  # of torch's headers, but not shown here

    def write(self) -> None:
        values = asdict(self) | {
            "folder": None, "known_headers": sorted(self.known_headers), "base_files": sorted(self.base_files),
            "hidden_macros": sorted(self.hidden_macros),
        }  # fmt: skip
        (self.folder / USABLE).write_text(json.dumps(values))


def read_prebuilt(folder: Path) -> PrebuiltHeaders:
    values = json.loads((folder / USABLE).read_text())
    values["names"] = TorchNames(**values["names"])
    return PrebuiltHeaders(**values | {
        "folder": folder, "known_headers": frozenset(values["known_headers"]),
        "base_files": frozenset(values["base_files"]), "hidden_macros": frozenset(values["hidden_macros"]),
    })  # fmt: skip


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
    return frozenset(name for name in re.findall(r'^# \d+ "([^"]*)"', preprocessed, re.M) if name.startswith("/"))


def name_header(path: str, include: Path) -> str:
    """Return the name relative to torch's folder; gcc may resolve links."""
    for folder in (include, include.resolve()):
        for root in (folder / "torch" / "csrc" / "api" / "include", folder):
            if path.startswith(f"{root}/"):
                return path[len(str(root)) + 1 :]
    return path


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


class PrebuiltMaker:
    """`run` executes a command in a folder and must be thread-safe."""

    def __init__(self, folder: Path, steps: dict[str, list[str]], include: Path, run: Run) -> None:
        self._folder = folder
        self._steps = steps
        self._include = include
        self._run = run

    def make(self) -> PrebuiltHeaders:
        """Lowering and precompiling dominate; everything else runs in parallel."""
        shutil.copy(line_markers.__file__, self._folder / REGIONS_PROGRAM)
        for header in OVERLAID:
            (self._folder / "overlay" / header).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / "overlay" / header).write_text("")
        with ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0)))) as pool:
            lowered = pool.submit(self._lower_headers)
            prebuilt = self._read_headers(pool)
            parts = list(split_regions(lowered.result()))[1:]
            precompiled = pool.submit(self._precompile, prebuilt, parts)
            sample = pool.submit(self._try_sample, prebuilt, parts)
            prebuilt.write()
            for future in (precompiled, sample):
                future.result()
        for pattern in ("*.ii", "*.cpp", "dump-*.cu", "stubs.h"):
            for path in self._folder.glob(pattern):
                path.unlink()
        return prebuilt

    def _read_headers(self, pool: Executor) -> PrebuiltHeaders:
        features = {name: pool.submit(self._dump, name, headers) for name, (_, headers) in REAL_HEADERS.items()}
        runtime = pool.submit(self._dump, "runtime", ())
        host = pool.submit(self._dump, "host", IMPLICIT_HEADERS)
        device = pool.submit(self._dump, "device", IMPLICIT_HEADERS, "device_preprocess")
        wide = pool.submit(self._dump, "wide", ("torch/extension.h", *IMPLICIT_HEADERS))
        added = {
            header: pool.submit(self._dump, f"header-{number}", (*IMPLICIT_HEADERS, header))
            for number, header in enumerate(CUDA_HEADERS)
        }
        base = host.result()
        base_files = files_of(base)
        dumps = {header: future.result() for header, future in added.items()}
        closures = {header: sorted(files_of(dump) - base_files) for header, dump in dumps.items()}
        hidden = frozenset(filter(self._is_of_toolkit, base_files)) - files_of(runtime.result())
        shown = {name: hidden & files_of(future.result()) for name, future in features.items()}
        more: dict[str, dict[str, str]] = {}
        for header, dump in dumps.items():
            files = [path for path in closures[header] if not self._is_of_toolkit(path)]
            more |= {path: {} for path in closures[header]} | {path: read_macros(dump, {path}) for path in files}
        words = {header: list_words(_keep_files(dumps[header], frozenset(closures[header]))) for header in CUDA_HEADERS}
        macros = {name for text in (wide.result(), *dumps.values()) for name in _DEFINED.findall(text)}
        (self._folder / WORDS).write_text(json.dumps({"": list_words(wide.result()), MACROS: sorted(macros)} | words))
        sides = {"host": base, "device": device.result()}
        return PrebuiltHeaders(
            folder=self._folder,
            steps=self._steps,
            names=read_torch_names(self._include, read_macros(base)),
            known_headers=frozenset(name_header(path, self._include) for path in base_files),
            closures=closures,
            base_files=base_files,
            host_macros=_write_macros(sides["host"], base_files - hidden),
            device_macros=_write_macros(sides["device"], files_of(sides["device"]) - hidden),
            feature_macros={
                side: {name: _write_macros(text, files) for name, files in shown.items()}
                for side, text in sides.items()
            },
            more_macros=more,
            hidden_macros=frozenset(read_macros(base, {path for path in hidden if Path(path).name != "cuda.h"})),
        )

    def _is_of_toolkit(self, path: str) -> bool:
        of_torch = any(path.startswith(f"{folder}/") for folder in (self._include, self._include.resolve()))
        return not of_torch and not _OF_SYSTEM.search(path)

    def _dump(self, name: str, headers: Sequence[str], step: str = "host_preprocess") -> str:
        source, out = f"dump-{name}.cu", f"dump-{name}.ii"
        (self._folder / source).write_text("".join(f"#include <{header}>\n" for header in headers))
        self._do(preprocess(self._steps[step], source, out, "-dD"))
        return self._read(out)

    def _lower_headers(self) -> str:
        text = "".join(f"#include <{header}>\n" for header in (*IMPLICIT_HEADERS, *CUDA_HEADERS))
        (self._folder / "all.cu").write_text(text + SAMPLE)
        self._do(preprocess(self._steps["host_preprocess"], "all.cu", "all.ii"))
        self._do(lowering(self._steps["lower"], "all.ii", "all.cpp"))
        return self._read("all.cpp")

    def _precompile(self, prebuilt: PrebuiltHeaders, parts: Sequence[tuple[str, str]]) -> None:
        base = [text for name, text in parts if name in prebuilt.base_files]
        (self._folder / "base.h").write_text("".join(base), encoding="utf-8", errors="surrogateescape")
        more = [(name, text) for name, text in parts if name in prebuilt.more_macros]
        (self._folder / "more.json").write_text(json.dumps(more))
        words = compile_words(self._steps["host_compile"])
        words[words.index("-x") + 1] = "c++-header"
        self._do([*(word for word in words if word != "-c"), "base.h", "-o", "base.h.gch"])
        (self._folder / "base.h").write_text("#error the precompiled header was not used\n")

    def _try_sample(self, prebuilt: PrebuiltHeaders, parts: Sequence[tuple[str, str]]) -> None:
        expected = "".join(text for name, text in parts if name == "all.cu")
        found = self._lower_sample(prebuilt).replace("sample.cu", "all.cu")
        if not expected or _drop_locations(found) != _drop_locations(expected):
            raise PrebuiltError(f"the stub headers differ from torch's: expected\n{expected}\nfound\n{found}")

    def _lower_sample(self, prebuilt: PrebuiltHeaders) -> str:
        words = frozenset(re.findall(r"\w+", SAMPLE))
        shown = write_stub_headers(prebuilt.names, find_features(words), words, cuda=True)
        (self._folder / "stubs.h").write_text(shown_macros(prebuilt.host_macros) + shown)
        blank = "\n" * (len(IMPLICIT_HEADERS) + len(CUDA_HEADERS))
        (self._folder / "sample.cu").write_text(blank + SAMPLE)
        (self._folder / "macros.h").write_text(prebuilt.host_macros)
        step = self._steps["host_preprocess"]
        self._do(preprocess(step, "stubs.h", "stubs.ii", "-I", "overlay"))
        self._do(preprocess(step, "sample.cu", "body.ii", "-imacros", "macros.h", first=False))
        (self._folder / "sample.ii").write_text("".join(self._read(name) for name in ("stubs.ii", "body.ii")))
        self._do(lowering(self._steps["lower"], "sample.ii", "sample.cpp"))
        return _keep_files(self._read("sample.cpp"), frozenset({"sample.cu"}))

    def _read(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8", errors="surrogateescape")

    def _do(self, command: list[str]) -> None:
        returncode, log = self._run(command, self._folder)
        if returncode != 0:
            raise PrebuiltError(f"{shlex.join(command)[:300]}\nended with {returncode}:\n{log[-4000:]}")


def _keep_files(text: str, files: frozenset[str]) -> str:
    return "".join(part for name, part in split_regions(text) if name in files)


def _write_macros(dump: str, files: frozenset[str]) -> str:
    return "".join(f"{line}\n" for line in read_macros(dump, files).values())


def _drop_locations(lowered: str) -> str:
    """Drop line markers and white space, which depend on where macros were defined."""
    return re.sub(r"\s+", "", re.sub(r"^# \d+.*$", "", lowered, flags=re.M))


def lowering(step: list[str], source: str, out: str) -> list[str]:
    words = [word for word in step if word != "--gen_module_id_file"][:-1]
    words[words.index("--gen_c_file_name") + 1] = out
    at = words.index("--module_id_file_name")
    del words[at : at + 2]
    return [*words, source]


def compile_words(step: list[str]) -> list[str]:
    words = step[: step.index("-o")]
    return words[:-1]


def shown_macros(macros: str) -> str:
    """Return torch's macros without include guards."""
    shown = re.compile(r"#define (TORCH_|C10_|STD_TORCH|AT_|THO_|_?HIDDEN_N)\w*(\([^)]*\))? \S")
    return "".join(f"{line}\n" for line in macros.splitlines() if shown.match(line))
