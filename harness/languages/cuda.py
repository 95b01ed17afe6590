"""CUDA kernels in extensions built by `load_inline` or `load`."""

from harness.domain import EMULATED
from harness.languages.rules import LanguageRules

MARKS = ("__global__", "cuda_sources")


def _detects(source: str) -> bool:
    return any(mark in source for mark in MARKS)


RULES = LanguageRules(
    name="cuda",
    title="CUDA",
    task="""CUDA kernels of your own that are compiled with
`torch.utils.cpp_extension.load_inline`""",
    devices=("cuda", EMULATED),
    detects=_detects,
    parts=("C++ compiler",),
    gpu_parts=("nvcc", "torch with CUDA"),
)
