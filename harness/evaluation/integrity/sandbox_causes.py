"""Notes failures that the sandbox, or packages missing on this machine, may have caused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder

from harness.domain import CandidateFailure, Finding, Outcome, Problem, ProblemError
from harness.languages import LANGUAGES
from harness.syntax import parse_python

_CAUSES = (
    (
        re.compile(
            r"gaierror|name resolution|Network is unreachable|URLError|Max retries exceeded|ConnectionRefusedError"
            r"|ConnectionError|Could not resolve host|LocalEntryNotFoundError|OfflineModeIsEnabled|No route to host"
            r"|(?s:(?=.*\bsocket).*Operation not permitted)"  # of the system call, before any address is looked at
        ),
        "the sandbox has no network: a candidate cannot download anything",
    ),
    (
        re.compile(r"FileNotFoundError|No such file or directory|Permission denied|NotADirectoryError"),
        "the sandbox shows a candidate, and the build of its extensions, neither your files nor the working folder: "
        "put data and headers into the program, and write files into the temporary folder",
    ),
    (
        re.compile(r"ModuleNotFoundError|No module named"),
        "the sandbox shows installed packages, but no modules beside the candidate: put their code into the program",
    ),
    (
        re.compile(r"Read-only file system|No space left on device"),
        "in the sandbox only the temporary folder can be written, up to a limit",
    ),
)
_LAYERS = ("private root", "namespaces", "landlock")
_CHECKS = ("exception", "build")
MUCH_OUTPUT_BYTES = 1_000_000


def note_sandbox(findings: Iterable[Finding], isolation: str) -> Iterator[Finding]:
    if not any(layer in isolation for layer in _LAYERS):
        return
    texts = [f"{one.message}\n{one.evidence}" for one in findings if one.check in _CHECKS and one.severity == "fatal"]
    for pattern, message in _CAUSES:
        if any(map(pattern.search, texts)):
            yield Finding(check="sandbox", severity="note", message=message)


def note_output(printed_bytes: int) -> Iterator[Finding]:
    if printed_bytes > MUCH_OUTPUT_BYTES:
        size = f"{printed_bytes / 1e6:,.0f} MB"
        message = f"the candidate printed {size}, which takes time and counts as its own"
        yield Finding(check="output", severity="warning", message=message)


_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


@contextmanager
def explaining_missing_packages(problem: Problem, *, emulated: bool) -> Iterator[None]:
    """Raises ProblemError if the problem's file imports the package, too; not_run without a language's compiler."""
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
