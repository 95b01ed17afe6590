"""Reads a candidate from a user or an agent, which may be a model's answer."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.domain import IN_REASONING, Candidate, Completion, Finding, Language, UsageError
from harness.domain.files import decode_python, raising
from harness.evaluation.integrity.static_checks import find_syntax_error

STDIN = Path("-")
_EXTRACT_STDIN = "COMMAND | harness extract - | harness evaluate --candidate -"
_BEGINNINGS_OF_ANSWERS = ("```", "~~~", "<think")


def read_candidate(file: Path) -> str:
    """`-` is standard input. Raises UsageError, also for a model's answer instead of a program."""
    with raising(UsageError, f"read the candidate {file}", also=(ValueError,)):
        source = decode_python(sys.stdin.buffer.read() if file == STDIN else file.read_bytes())
    if not source.strip():
        raise UsageError(f"{name_candidate(file)} is empty: it holds no program")
    if find_syntax_error(source) is not None and _is_answer(source):
        raise UsageError(
            f"{name_candidate(file)} is no Python program, but looks like a model's answer: take the program out of it "
            f"first, with `{_EXTRACT_STDIN if file == STDIN else f'harness extract {file} > candidate.py'}`"
        )
    return source


def read_submission(text: str, language: Language) -> tuple[Candidate | None, tuple[Finding, ...]]:
    """Return (the program, or the one in an answer; notes)."""
    if find_syntax_error(text) is not None and _is_answer(text):
        return extract_program(text, language)
    return Candidate(source=text, language=language, rule="file"), ()


def extract_program(answer: str, language: Language) -> tuple[Candidate | None, tuple[Finding, ...]]:
    from harness.generate.extraction.extractor import extract_candidate
    from harness.generate.extraction.notes import explain_reasoning

    candidate = extract_candidate(Completion(text=answer), language)
    reason = "" if candidate else explain_reasoning(answer)
    return candidate, (Finding(check=IN_REASONING, severity="note", message=reason),) if reason else ()


def name_candidate(file: Path) -> str:
    return "stdin" if file == STDIN else file.name


def _is_answer(text: str) -> bool:
    """The text does not parse. A program with a syntax error may begin with a shorter valid one."""
    if text.lstrip().startswith(_BEGINNINGS_OF_ANSWERS):
        return True
    from harness.generate.extraction.extractor import find_code  # programs need none of it

    found = find_code(text)
    return found is not None and not text.lstrip().startswith(found.source.lstrip().partition("\n")[0])
