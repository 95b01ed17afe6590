"""Reads a candidate that a user gives as a file."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.domain import UsageError
from harness.domain.files import read_python
from harness.evaluation.integrity.static_checks import find_syntax_error
from harness.generate.extraction.extractor import find_code

STDIN = Path("-")
_BEGINNINGS_OF_ANSWERS = ("```", "~~~", "<think")


def read_candidate(file: Path) -> str:
    """`-`: standard input. Raises UsageError, also for a model's answer instead of a program."""
    try:
        source = sys.stdin.buffer.read().decode("utf-8-sig") if file == STDIN else read_python(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the candidate {file}: {error}") from error
    if find_syntax_error(source) is not None and _is_answer(source):
        raise UsageError(
            f"{name_candidate(file)} is no Python program, but looks like a model's answer: take the program out of it "
            f"first, with `harness extract {file} > candidate.py`"
        )
    return source


def name_candidate(file: Path) -> str:
    """Also the name of its model in results."""
    return "stdin" if file == STDIN else file.name


def _is_answer(text: str) -> bool:
    """Of a text that is no program. A program with a syntax error may hold a shorter one, at its beginning."""
    if text.lstrip().startswith(_BEGINNINGS_OF_ANSWERS):
        return True
    found = find_code(text)
    return found is not None and not text.lstrip().startswith(found.source.lstrip().partition("\n")[0])
