"""Recognises programs that import packages missing on this machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder

from harness.domain import Outcome, Problem, ProblemError
from harness.languages import LANGUAGES
from harness.sandbox.failure import CandidateFailure
from harness.syntax import parse_python

_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


@contextmanager
def explaining_missing_packages(problem: Problem, *, emulated: bool) -> Iterator[None]:
    """Raises ProblemError if the problem's file imports the package, too, and CandidateFailure (not_run) if its
    language's compiler is missing.
    """
    try:
        yield
    except CandidateFailure as failure:
        name = _find_missing(failure)
        if name is None:
            raise
        if name in _list_imported(problem.source):
            message = f"the problem's file imports {name}, which is not installed on this machine: install it"
            raise ProblemError(message) from failure
        why = _explain_missing_compiler(name, emulated)
        outcome = failure.outcome if why is None else Outcome.NOT_RUN
        message = f"it imports {name}, which is not installed on this machine: {why or failure.message}"
        raise CandidateFailure(outcome, message, failure.findings) from failure


def _find_missing(failure: CandidateFailure) -> str | None:
    """The worker's report counts only if the package is missing here, too."""
    found = _MISSING.search(failure.message)
    if found is None or failure.outcome not in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
        return None
    return None if PathFinder.find_spec(found[1]) else found[1]


def _explain_missing_compiler(name: str, emulated: bool) -> str | None:
    needing = sorted((rules for rules in LANGUAGES.values() if name in rules.modules), key=lambda one: len(one.modules))
    return needing[0].find_missing(emulated) if needing else None


def _list_imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(parse_python(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names
