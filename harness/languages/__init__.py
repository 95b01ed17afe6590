"""The languages that kernels are written in, one file each."""

from harness.domain import Language
from harness.languages.cpp import CPP
from harness.languages.cuda import CUDA
from harness.languages.rules import LanguageRules

LANGUAGES: dict[Language, LanguageRules] = {rules.name: rules for rules in (CUDA, CPP)}  # cpp detects any program

__all__ = ["LANGUAGES", "LanguageRules", "detect_language"]


def detect_language(source: str) -> Language:
    """The first language that the program is written in."""
    return next(rules.name for rules in LANGUAGES.values() if rules.detects(source))
