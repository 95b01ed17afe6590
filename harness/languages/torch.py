"""Plain PyTorch, eager or through `torch.compile`: no custom kernel is written."""

from harness.domain import BuildRequest
from harness.languages.rules import LanguageRules
from harness.languages.triton import KEYS

INDUCTOR = (
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.codecache",
    *KEYS,
    "torch._inductor.codecache:torch_key",
)


def _refuses(request: BuildRequest) -> str | None:
    return (
        f"the candidate builds the extension {request.name!r}, and is to be written in plain PyTorch; "
        "evaluate programs with extensions with --language cuda or cpp"
    )


RULES = LanguageRules(
    name="torch",
    title="PyTorch",
    task="""plain PyTorch: better algorithms, fewer passes over memory, faster operators, and
`torch.compile`""",
    devices=("cuda", "cpu"),
    detects=lambda source: False,  # a program without a kernel may be a failed one of any language
    refuses=_refuses,
    writes_kernels=False,
    word="torch.compile",
    preloads=INDUCTOR,
)
