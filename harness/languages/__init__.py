"""The languages that kernels are written in, one file each."""

from harness.domain import Finding, Language
from harness.languages.cpp import CPP
from harness.languages.cuda import CUDA
from harness.languages.cute import CUTE
from harness.languages.helion import HELION
from harness.languages.rules import LanguageRules
from harness.languages.tilelang import TILELANG
from harness.languages.torch import TORCH
from harness.languages.triton import TRITON

# In the order of detection: a Helion program may also hold Triton kernels, a Triton program may also build extensions,
# and cpp detects any program.
LANGUAGES: dict[Language, LanguageRules] = {
    rules.name: rules for rules in (CUTE, TILELANG, HELION, TRITON, CUDA, TORCH, CPP)
}

__all__ = ["LANGUAGES", "LanguageRules", "detect_language", "note_other_language"]


def detect_language(source: str) -> Language:
    return next(rules.name for rules in LANGUAGES.values() if rules.detects(source))


def note_other_language(source: str, language: Language) -> tuple[Finding, ...]:
    found = detect_language(source)
    if found in (language, TORCH.name, CPP.name):
        return ()
    message = f"the program is evaluated as {language}, and looks like {found}: --language {found}"
    return (Finding(check="language", severity="note", message=message),)
