"""The runtime's folder, and its headers that declare nothing themselves: written from a table, not kept as files."""

import shutil
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.syntax import cpp

PACKAGE = Path(__file__).resolve().parent
RUNTIME = PACKAGE / "runtime"

_ALGORITHMS = (
    "adjacent_difference binary_search copy count device_free device_malloc distance equal extrema fill find for_each "
    "gather generate inner_product logical memory merge partition reduce remove replace reverse scan scatter sequence "
    "set_operations sort swap system/cuda/execution_policy system/cuda/vector tabulate transform transform_reduce "
    "transform_scan unique"
)
_STANDARD = (
    "algorithm array atomic bit cassert cfloat chrono climits cmath complex concepts cstddef cstdint cstring "
    "functional initializer_list iterator limits numeric optional ranges ratio span tuple type_traits utility variant"
)
_SMALL = "atomic emulator/host_api.h emulator/intrinsics.h emulator/atomics.h emulator/warp.h emulator/small.h"
# Included headers, and a pattern and names of the headers that only include them.
_FORWARDED = (
    ("thrust/algorithms_of_harness.h", "thrust/{}.h", _ALGORITHMS),
    ("thrust/device_vector.h", "thrust/{}.h", "host_vector"),
    (
        "thrust/iterator/harness_iterators.h",
        "thrust/iterator/{}.h",
        "discard_iterator iterator_traits permutation_iterator reverse_iterator zip_iterator",
    ),
    (
        "cub/iterators.h",
        "cub/iterator/{}_input_iterator.cuh",
        "arg_index constant counting transform",
    ),
    ("{} cuda/harness_std.h", "cuda/std/{}", _STANDARD),
    ("functional cuda/harness_std.h", "cuda/std/{}", "expected"),
    ("ATen/cuda/CUDAContext.h", "ATen/cuda/{}.h", "CUDABlas"),
    ("ATen/cuda/Atomic.cuh ATen/cuda/CUDAContext.h", "ATen/cuda/{}.cuh", "CUDAApplyUtils"),
    ("ATen/cuda/Atomic.cuh ATen/cuda/detail/KernelUtils.h", "ATen/native/cuda/{}.cuh", "KernelUtils"),
    ("cooperative_groups.h", "cooperative_groups/{}.h", "memcpy_async"),
    ("cublas_v2.h", "{}.h", "cublas"),
    ("nvToolsExt.h", "nvtx3/{}.h", "nvToolsExt"),
    # Asynchronous copies to shared memory: done at once, so that waiting for them is nothing.
    ("cuda_pipeline_primitives.h", "{}.h", "cuda_pipeline"),
    # In every CUDA source already; for host sources that ask for it.
    (
        "emulator/host_api.h",
        "{}.h",
        "builtin_types crt/host_defines cuda cuda_device_runtime_api cuda_profiler_api cuda_runtime cuda_runtime_api "
        "device_functions device_launch_parameters driver_functions driver_types host_defines vector_functions "
        "vector_types",
    ),
    (_SMALL, "{}", "cuda_bf16.h cuda_bf16.hpp cuda_fp16.h cuda_fp16.hpp"),
    # Their names are in every CUDA source already.
    ("", "crt/{}_functions.h", "device math"),
    ("", "{}", "device_atomic_functions.h math_functions.h math_functions.hpp"),
    ("", "sm_{}_functions.h", "20_atomic 30_atomic 32_atomic 35_atomic 60_atomic"),
    ("", "sm_{}_intrinsics.h", "20 30 32 35 61"),
    # Often included for nothing. What they declare is not covered, and named where it is used.
    (
        "",
        "{}.h",
        "channel_descriptor cudaTypedefs cuda_awbarrier cuda_awbarrier_primitives cuda_fp4 cuda_fp8 cuda_surface_types "
        "cuda_texture_types cufft curand curand_philox4x32_x cusolverDn cusparse nvrtc surface_types texture_types",
    ),
    ("", "c10/cuda/{}.h", "CUDAMiscFunctions"),
    (
        "ATen/cuda/CUDAContext.h",
        "ATen/{}",
        "cuda/CUDADevice.h cuda/CUDAGeneratorImpl.h cuda/CUDAGraphsUtils.cuh cuda/CUDAUtils.h "
        "cuda/CachingHostAllocator.h cuda/NumericLimits.cuh cuda/PinnedMemoryAllocator.h cuda/ThrustAllocator.h "
        "cuda/detail/IndexUtils.cuh cuda/detail/TensorInfo.cuh cudnn/Descriptors.h cudnn/Handle.h "
        "native/cuda/LaunchUtils.h native/cuda/Loops.cuh native/cuda/MemoryAccess.cuh native/cuda/MiscUtils.h "
        "native/cuda/PersistentSoftmax.cuh native/cuda/Reduce.cuh native/cuda/block_reduce.cuh",
    ),
    (
        "c10/cuda/CUDAException.h",
        "c10/cuda/{}.h",
        "CUDAAlgorithm CUDAAllocatorConfig CUDADeviceAssertion driver_api",
    ),
    ("library_types.h", "{}.h", "cublasLt cudnn"),
)


def copy_runtime(target: Path) -> None:
    """Copy the runtime with all headers to a folder that does not exist yet."""
    shutil.copytree(RUNTIME, target)
    for name, included in _list_forwarding():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["#pragma once", *(f"#include <{one}>" for one in included), ""]))


def _list_forwarding() -> Iterator[tuple[str, list[str]]]:
    for included, pattern, names in _FORWARDED:
        for name in names.split():
            yield pattern.format(name), included.format(name).split()


@cache
def list_headers() -> frozenset[str]:
    files = (path for path in RUNTIME.rglob("*") if path.is_file() and path.suffix != ".cpp")
    return frozenset((*(str(path.relative_to(RUNTIME)) for path in files), *(name for name, _ in _list_forwarding())))


@cache
def digest_runtime() -> str:
    return _digest(RUNTIME) + sha256(Path(__file__).read_bytes()).hexdigest()


@cache
def digest_emulator() -> str:
    return _digest(PACKAGE) + sha256(Path(cpp.__file__).read_bytes()).hexdigest()


def _digest(folder: Path) -> str:
    digest = sha256()
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
