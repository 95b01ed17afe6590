"""The languages that kernels are written in, one file each, with its rules, and the devices for them."""

import re
from importlib import import_module
from typing import get_args

from harness.domain import Finding, Language, UsageError
from harness.hardware.host import list_gpus
from harness.languages.rules import LanguageRules

# In the order of detection: a Helion program may also hold Triton kernels, a Triton program may also build extensions,
# and cpp detects any program.
LANGUAGES: dict[Language, LanguageRules] = {
    name: import_module(f"harness.languages.{name}").RULES for name in get_args(Language)
}
# Where none is chosen.
GPU_LANGUAGE: Language = "cuda"
CPU_LANGUAGE: Language = "cpp"
PLAIN_LANGUAGE: Language = "torch"


def detect_language(source: str) -> Language:
    return next(rules.name for rules in LANGUAGES.values() if rules.detects(source))


def note_other_language(source: str, language: Language) -> tuple[Finding, ...]:
    found = detect_language(source)
    if found == language or not LANGUAGES[found].is_distinctive:
        return ()
    message = f"the program is evaluated as {language}, and looks like {found}: --language {found}"
    return (Finding(check="language", severity="note", message=message),)


def list_compiled_in_worker(source: str) -> tuple[Language, ...]:
    """List the languages of Python functions that the program names, after those that they translate to; and torch's
    compiler beside kernels that the program writes, which must be told from its own.
    """
    has_kernels = detect_language(source) != CPU_LANGUAGE
    named = [rules for rules in _find_compilers(source) if rules.modules or has_kernels]
    return tuple(dict.fromkeys(one.name for rules in named for one in reversed(rules.chain)))


def compiles_in_worker(source: str) -> bool:
    """Return whether the program names a compiler that runs in its worker, such as Triton's or torch.compile."""
    return bool(_find_compilers(source))


def _find_compilers(source: str) -> list[LanguageRules]:
    return [rules for rules in LANGUAGES.values() if rules.word and rules.word in source]


def find_devices(wanted: str, language: Language) -> tuple[str, ...]:
    """`auto`: the CPU for cpp, all GPUs or else `emulated` for cuda. Empty if unsuitable. Raises UsageError."""
    kinds = LANGUAGES[language].devices
    if wanted == "auto":
        wanted = next(kind for kind in kinds if kind != "cuda" or list_gpus())
    kind, _, indices = wanted.partition(":")
    if not re.fullmatch(r"cpu|emulated|cuda(:\d+(,\d+)*)?", wanted):
        raise UsageError(f"unknown device {wanted!r}; expected auto, cpu, emulated, cuda, cuda:N or cuda:N,M")
    count = len(list_gpus()) if kind == "cuda" else 0
    if kind == "cuda" and not count:
        raise UsageError(
            f"{wanted} was requested with --device, but no NVIDIA GPU was found on this machine: leave the option "
            "out, or see what `harness doctor` reports"
        )
    if kind not in kinds:
        return ()
    if kind != "cuda":
        return (wanted,)
    chosen = sorted({int(index) for index in indices.split(",")}) if indices else list(range(count))
    if not chosen or chosen[-1] >= count:
        raise UsageError(f"{wanted} was requested, but this machine has {count} usable GPUs")
    return tuple(f"cuda:{index}" for index in chosen)
