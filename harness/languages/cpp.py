"""C++ for the CPU, in extensions built by `load_inline` or `load`."""

from harness.domain import BuildRequest
from harness.languages.rules import LanguageRules


def _refuses(request: BuildRequest) -> str | None:
    if not request.has_cuda_sources:
        return None
    return (
        f"the extension {request.name!r} has CUDA sources, and the candidate is to be written in cpp; "
        "evaluate CUDA programs with --language cuda"
    )


RULES = LanguageRules(
    name="cpp",
    title="C++",
    task="""C++ functions of your own that are compiled with
`torch.utils.cpp_extension.load_inline(cpp_sources=...)`. All tensors live in host memory. There is no GPU and no CUDA
compiler. OpenMP and vector intrinsics may be used""",
    devices=("cpu",),
    detects=lambda source: True,
    is_distinctive=False,
    refuses=_refuses,
    parts=("C++ compiler",),
)
