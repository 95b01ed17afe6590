"""Selects the GPU target of a CUDA extension: of those that the program requests, the one that its device loads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.domain import BuildRequest, UsageError

FIRST_CAPABILITY = 10
FIRST_WITH_FEATURES = 90  # devices whose instructions need a target such as sm_90a: wgmma, setmaxnreg, tcgen05
_ARCHITECTURE = re.compile(r"(\d+)\.(\d)([af]?)")
_CODE = re.compile(r"(sm|compute)_(\d+)([af]?)")
_OPTION = re.compile(r"--?(gencode|generate-code|arch|gpu-architecture|code|gpu-code)(?:=(.+))?")
_GENERATED = re.compile(r"arch=([\w.]+),code=\[?([\w,]+)\]?")
_OF_THE_DEVICE = frozenset({"native", "all", "all-major"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Code:
    """`is_binary` is a cubin, preferred to PTX. `features` is "a" for this capability and "f" for its family."""

    is_binary: bool
    capability: int
    features: str
    virtual: str

    @property
    def name(self) -> str:
        return f"{'sm' if self.is_binary else 'compute'}_{self.capability}{self.features}"

    def runs_on(self, device: int) -> bool:
        if self.features == "a":
            return self.capability == device
        same_family = self.capability // 10 == device // 10
        return self.capability <= device and (same_family or not (self.is_binary or self.features))

    def write_flag(self, device: int) -> str:
        """Make a cubin even of PTX, as the driver would."""
        runs_on_device = not self.is_binary and self.runs_on(device)
        capability = device if runs_on_device else self.capability
        return f"-gencode=arch={self.virtual},code=sm_{capability}{self.features}"


def name_architecture(capability: tuple[int, int]) -> str:
    major, minor = capability
    return f"{major}.{minor}{'a' if major * 10 + minor >= FIRST_WITH_FEATURES else ''}"


def require_architecture(architecture: str) -> str:
    """Raises UsageError."""
    if not _ARCHITECTURE.fullmatch(architecture):
        raise UsageError(f"--arch {architecture!r} is no CUDA architecture: give one such as 8.0, 9.0 or 9.0a")
    return architecture


def write_default_flag(architecture: str) -> str:
    major, minor, features = _split(architecture)
    return f"-gencode=arch=compute_{major}{minor}{features},code=sm_{major}{minor}{features}"


def select_target(request: BuildRequest, architecture: str) -> tuple[BuildRequest, str | None]:
    """Replace the targets in the request's flags by one. If no device of `architecture` loads any of them, also
    return a sentence that says so. Targets that nvcc does not know stay, so that it reports them.
    """
    words = [word for flag in request.extra_cuda_cflags for word in flag.split()]
    rest, asked = _split_flags(words)
    codes = _read_codes(asked)
    if not codes:
        others = tuple(rest) if asked and codes is not None else request.extra_cuda_cflags
        return _with_flags(request, write_default_flag(architecture), others), None
    major, minor, _ = _split(architecture)
    device = int(major + minor)
    loaded = [code for code in codes if code.runs_on(device)]
    best = max(loaded or codes)
    is_older = not loaded and not best.features and best.capability < device  # perhaps too old for this nvcc
    flag = write_default_flag(architecture) if is_older else best.write_flag(device)
    return _with_flags(request, flag, tuple(rest)), None if loaded else _explain(codes, f"{major}.{minor}")


def _explain(codes: list[_Code], device: str) -> str:
    names = ", ".join(dict.fromkeys(code.name for code in codes))
    return (
        f"the program requests {names}, which this GPU of compute capability {device} cannot run: add {device} to "
        "TORCH_CUDA_ARCH_LIST or to -gencode in extra_cuda_cflags, or set neither"
    )


def use_device_target(request: BuildRequest, architecture: str) -> BuildRequest:
    """Replace the targets in the request's flags, which no device of `architecture` loads."""
    rest, _ = _split_flags([word for flag in request.extra_cuda_cflags for word in flag.split()])
    return _with_flags(request, write_default_flag(architecture), tuple(rest))


def _with_flags(request: BuildRequest, target: str, others: tuple[str, ...]) -> BuildRequest:
    return replace(request, extra_cuda_cflags=(target, *others))


def _split(architecture: str) -> tuple[str, str, str]:
    found = _ARCHITECTURE.fullmatch(architecture)
    if found is None:
        raise ValueError(f"not a CUDA architecture: {architecture!r}")
    return found[1], found[2], found[3]


def _split_flags(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return other words, and (option, value) of those that select targets."""
    rest, asked = list[str](), list[tuple[str, str]]()
    following = iter(words)
    for word in following:
        found = _OPTION.fullmatch(_unquote(word))
        if found is None:
            rest.append(word)
            continue
        asked.append((found[1], found[2] or _unquote(next(following, ""))))
    return rest, asked


def _unquote(word: str) -> str:
    return re.sub(r"[\"'\\]", "", word)


def _read_codes(asked: list[tuple[str, str]]) -> list[_Code] | None:
    """Return [] if the device's own target is requested, and None for targets that nvcc does not know."""
    pairs = list(_list_pairs(asked))
    if any(code in _OF_THE_DEVICE for _, code in pairs):
        return []
    codes = [_read_code(virtual, code) for virtual, code in pairs]
    return None if None in codes else [code for code in codes if code is not None]


def _list_pairs(asked: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield (virtual architecture, code) by nvcc's rules."""
    architectures = [value for option, value in asked if option in ("arch", "gpu-architecture")]
    codes = [code for option, value in asked if option in ("code", "gpu-code") for code in value.split(",")]
    for option, value in asked:
        if option in ("gencode", "generate-code"):
            found = _GENERATED.fullmatch(value)
            yield from ((found[1], code) for code in found[2].split(",")) if found else [("", value)]
    for architecture in architectures[-1:]:
        virtual = architecture.replace("sm_", "compute_")
        yield from ((virtual, code) for code in codes or dict.fromkeys((architecture, virtual)))
    if not architectures:
        yield from ((code.replace("sm_", "compute_"), code) for code in codes)


def _read_code(virtual: str, code: str) -> _Code | None:
    found, of_virtual = _CODE.fullmatch(code), _CODE.fullmatch(virtual)
    if not (found and of_virtual) or of_virtual[1] != "compute" or int(found[2]) < FIRST_CAPABILITY:
        return None
    return _Code(is_binary=found[1] == "sm", capability=int(found[2]), features=found[3], virtual=virtual)
