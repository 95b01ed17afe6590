"""Calls a C++ candidate under AddressSanitizer, in a worker of its own: `--asan`. Sources keep their line numbers."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from harness.builder.fast.crash_stack import ADDRESS_REPORT
from harness.domain import BuildRequest, BuildResult, Candidate, CandidateFailure, Finding, HarnessError
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.model_workers import ModelWorkers
from harness.sandbox.forkserver import Profiler
from harness.syntax import parse_python

CHECK, FILE = "address_sanitizer", "candidate.py"
FLAG = "-fsanitize=address"
FLAGS = (FLAG, "-fno-omit-frame-pointer", "-g")
# Python and torch leak by intention, and free memory of their own allocators.
OPTIONS = "detect_leaks=0:alloc_dealloc_mismatch=0:detect_odr_violation=0:print_legend=0"
END_S = 5.0
_ERROR = re.compile(r"AddressSanitizer: (?P<kind>[\w-]+)")
_ACCESS = re.compile(r"^(?P<access>(?:READ|WRITE) of size \d+)", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (?P<function>.+?) (?P<place>\S+?:\d+)(?::\d+)?$", re.MULTILINE)
_REGION = re.compile(r"is located (?P<where>\d+ bytes .+? \d+-byte region)")


def call_under_sanitizer(workers: ModelWorkers, candidate: Candidate, reference: Reference, seed: int) -> Finding:
    """Make one call. The finding is fatal if the sanitizer reports an error, else a note."""
    libraries, forkserver = find_libraries(), workers.ahead.forkserver
    if not libraries:
        return _note("not checked: the C++ compiler has no libasan.so (Debian: package libgcc-12-dev)")
    if not forkserver.can_profile:
        return _note("not checked: it needs a private root (`harness doctor`)")
    preloaded = " ".join(map(str, libraries))
    command = ("env", f"LD_PRELOAD={preloaded}", f"ASAN_OPTIONS={OPTIONS}")
    sanitized = forkserver.profile_with(Profiler(command=command, readable=libraries))
    try:
        return _call(workers.start_from(sanitized), candidate, reference, seed)
    finally:
        sanitized.finish(END_S)


def _call(workers: ModelWorkers, candidate: Candidate, reference: Reference, seed: int) -> Finding:
    def build(request: BuildRequest) -> BuildResult:
        return workers.builds.builder.build(add_sanitizer(request, candidate.source))

    try:
        with workers.open_candidate(candidate, reference, build) as session:
            construct_with_state(session, reference)
            session.client.check_kernels()  # on copies of the inputs, whose bounds are known
            session.call(reference.make_inputs(seed), reference.device, look=False)
    except (CandidateFailure, HarnessError) as failure:
        report = ADDRESS_REPORT.search(str(failure))
        return read_report(report[0]) if report else _note(f"not checked: it failed before: {failure}"[:300])
    return _note("one call made no invalid access")


def find_libraries() -> tuple[Path, ...]:
    """Return libasan and the C++ library, whose exceptions it intercepts, of the C++ compiler; () without them."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return ()
    found = []
    for name in ("libasan.so", "libstdc++.so.6"):
        printed = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        path = Path(printed.stdout.strip())
        if not path.is_absolute() or not path.is_file():
            return ()
        found.append(path.resolve())
    return tuple(found)


def add_sanitizer(request: BuildRequest, source: str) -> BuildRequest:
    return replace(
        request,
        cpp_sources=tuple(number_lines(text, source) for text in request.cpp_sources),
        extra_cflags=(*request.extra_cflags, *FLAGS),
        extra_ldflags=(*request.extra_ldflags, FLAG),
    )


def number_lines(text: str, source: str) -> str:
    """Number the lines of a C++ source as in the candidate's `source`, where it is a string of several lines."""
    for node in ast.walk(parse_python(source)):
        if isinstance(node, ast.Constant) and node.value == text and _spans_lines(node, text):
            return f'#line {node.lineno} "{FILE}"\n{text}'
    return text


def _spans_lines(node: ast.Constant, text: str) -> bool:
    return text.count("\n") == (node.end_lineno or node.lineno) - node.lineno


def read_report(report: str) -> Finding:
    kind, access, frame, region = (pattern.search(report) for pattern in (_ERROR, _ACCESS, _FRAME, _REGION))
    parts = [kind["kind"] if kind else "an error"]
    parts += [access["access"]] if access else []
    trace = ""
    if frame:
        file, _, line = frame["place"].rpartition("/")[2].partition(":")
        parts.append(f"in {frame['function']}, {file}:{line}")
        trace = f'File "{file}", line {line}, in {frame["function"]}\n' if file == FILE else ""
    parts += [region["where"]] if region else []
    message = f"AddressSanitizer: {', '.join(parts)}"
    return Finding(check=CHECK, severity="fatal", message=message, evidence=f"{trace}{report}")


def _note(message: str) -> Finding:
    return Finding(check=CHECK, severity="note", message=f"AddressSanitizer: {message}")
