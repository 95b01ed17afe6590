"""GPU models: limits and dense peak rates of SXM variants, by NVIDIA's datasheets. They affect no time or score."""

from dataclasses import dataclass

from harness.domain import UsageError
from harness.domain.errors import explain_unknown

DEFAULT_TARGET = "A100"  # of the emulated device


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """Rates are None if not listed; GB are powers of ten."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    total_memory_bytes: int
    l2_bytes: int
    max_shared_bytes_per_block: int
    shared_bytes_per_multiprocessor: int
    max_threads_per_multiprocessor: int
    max_blocks_per_multiprocessor: int
    clock_khz: int
    bandwidth_gb_s: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    bf16_tflops: float | None = None
    static_shared_bytes_per_block: int = 48 * 1024
    warp_size: int = 32
    max_threads_per_block: int = 1024
    registers_per_block: int = 65536
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)

    @property
    def architecture(self) -> str:
        """Has the form of TORCH_CUDA_ARCH_LIST."""
        major, minor = self.compute_capability
        return f"{major}.{minor}"


# Compute capability: shared memory in KiB per multiprocessor and per block; threads and blocks per multiprocessor.
_CAPABILITIES = {
    (7, 0): (96, 96, 2048, 32),
    (7, 5): (64, 64, 1024, 16),
    (8, 0): (164, 163, 2048, 32),
    (8, 6): (100, 99, 1536, 16),
    (8, 9): (100, 99, 1536, 24),
    (9, 0): (228, 227, 2048, 32),
    (10, 0): (228, 227, 2048, 32),
}
_Rates = tuple[float | None, float | None, float | None, float | None]
_NOT_LISTED: _Rates = (None, None, None, None)
# name, compute capability, multiprocessors, memory in GB, L2 cache in MiB, clock in MHz,
# rates: bandwidth in GB/s, TFLOPS of float32, TF32 and bfloat16
_ROWS: tuple[tuple[str, tuple[int, int], int, int, int, int, _Rates], ...] = (
    ("V100", (7, 0), 80, 32, 6, 1530, _NOT_LISTED),
    ("T4", (7, 5), 40, 16, 4, 1590, _NOT_LISTED),
    ("A10", (8, 6), 72, 24, 6, 1695, _NOT_LISTED),
    ("A100", (8, 0), 108, 80, 40, 1410, (2039, 19.5, 156, 312)),
    ("L4", (8, 9), 58, 24, 48, 2040, (300, 30.3, 60, 121)),
    ("L40S", (8, 9), 142, 48, 96, 2520, (864, 91.6, 183, 362)),
    ("RTX 3090", (8, 6), 82, 24, 6, 1695, _NOT_LISTED),
    ("RTX 4090", (8, 9), 128, 24, 72, 2520, (1008, 82.6, 82.6, 165)),
    ("H100", (9, 0), 132, 80, 50, 1980, (3350, 67, 495, 989)),
    ("H200", (9, 0), 132, 141, 50, 1980, (4800, 67, 495, 989)),
    ("B200", (10, 0), 148, 180, 126, 1965, (8000, 75, 1100, 2250)),
)
GPU_MODELS: tuple[GpuModel, ...] = tuple(
    GpuModel(
        name=name,
        compute_capability=capability,
        multiprocessors=multiprocessors,
        total_memory_bytes=memory_gb * 10**9,
        l2_bytes=l2_mib * 2**20,
        shared_bytes_per_multiprocessor=_CAPABILITIES[capability][0] * 1024,
        max_shared_bytes_per_block=_CAPABILITIES[capability][1] * 1024,
        max_threads_per_multiprocessor=_CAPABILITIES[capability][2],
        max_blocks_per_multiprocessor=_CAPABILITIES[capability][3],
        clock_khz=clock_mhz * 1000,
        bandwidth_gb_s=rates[0],
        fp32_tflops=rates[1],
        tf32_tflops=rates[2],
        bf16_tflops=rates[3],
    )
    for name, capability, multiprocessors, memory_gb, l2_mib, clock_mhz, rates in _ROWS
)


def find_gpu_model(name: str) -> GpuModel:
    """Ignore case, spaces and punctuation. Raises UsageError with the nearest name."""
    known = {_normalise(model.name): model for model in GPU_MODELS}
    if _normalise(name) in known:
        return known[_normalise(name)]
    raise UsageError(explain_unknown("GPU", name, [model.name for model in GPU_MODELS]))


def match_gpu_model(device_name: str) -> GpuModel | None:
    """`device_name` is the driver's ("NVIDIA H100 80GB HBM3")."""
    matches = [model for model in GPU_MODELS if _normalise(model.name) in _normalise(device_name)]
    return max(matches, key=lambda model: len(model.name), default=None)


def _normalise(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
