"""Parses kernel findings of the emulated device, and formats them like compiler diagnostics.

The untrusted worker reports them, so fields are validated; hiding one has no benefit, since outputs are compared.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.domain import CandidateFailure, Finding, Outcome
from harness.languages import LANGUAGES
from harness.sandbox.replies import read_as
from harness.syntax import try_parse

MAX_FINDINGS = 64
MAX_SHOWN = 12
MAX_CHARACTERS = 600
# A GPU gives arbitrary values for these; for all others it raises an error or may hang.
WRONG_VALUES = ("race", "uninit", "order")
# Findings that may not occur at other sizes.
SIZED = ("bounds", "align", "launch", "too_many", "too_much", "assert", "trap", "overflow")
IN_KERNEL = "in kernel"  # begins the evidence
_LOCATION = re.compile(r"\S+:\d+: ")  # of a described finding
DIVERGENT, RACE, UNWRITTEN = "barrier_divergence", "shared_race", "uninitialised_shared"
_BARRIER_CHECKS = (DIVERGENT, RACE, UNWRITTEN)  # causes first
_OTHER_LINE = re.compile(r"\bat [^\s:]+:(\d+) are not ordered\b")
_VARIABLE = re.compile(r"\b(?:on|reads) (?P<name>\w+|dynamic shared memory) \(byte \d+\)")
TIME_LIMIT, UNCOVERED = "time_limit", "uncovered"
INTERPRETER = "interpreter"  # an error in Python, which says nothing about a GPU if a compiler accepts the kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFinding:
    check: str
    decides: bool
    message: str
    file: str
    line: int
    kernel: str
    block: str
    thread: str
    value: str = ""

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def outcome(self) -> Outcome:
        if self.check in (TIME_LIMIT, UNCOVERED):
            return Outcome.TIMEOUT if self.check == TIME_LIMIT else Outcome.NOT_RUN
        return Outcome.WRONG_VALUE if any(word in self.check for word in WRONG_VALUES) else Outcome.RUNTIME_ERROR

    @property
    def depends_on_sizes(self) -> bool:
        return any(word in self.check for word in SIZED)

    def describe(self) -> str:
        location = f"{self.location}: " if self.location else ""
        return f"{location}{'error' if self.decides else 'warning'}: {self.message}"


def parse_kernel_findings(value: object) -> list[KernelFinding]:
    """Raises CandidateFailure for a malformed list."""
    if not isinstance(value, list) or len(value) > MAX_FINDINGS:
        raise CandidateFailure.of_protocol(f"kernel findings: expected a list of at most {MAX_FINDINGS}")
    return [_parse(one) for one in value]


def merge_kernel_findings(findings: Iterable[KernelFinding]) -> list[KernelFinding]:
    merged = list({(one.check, one.file, one.line): one for one in reversed(list(findings))}.values())[::-1]
    kept: list[KernelFinding] = []
    for one in sorted(merged, key=_rank_cause):
        if not any(_has_same_cause(one, other) for other in kept):
            kept.append(one)
    return [one for one in merged if one in kept]


def _rank_cause(one: KernelFinding) -> int:
    return _BARRIER_CHECKS.index(one.check) if one.check in _BARRIER_CHECKS else 0


def _has_same_cause(one: KernelFinding, other: KernelFinding) -> bool:
    """A missed barrier lets accesses race, each of which is reported; unwritten memory is uninitialised for others."""
    if not {one.check, other.check} <= {*_BARRIER_CHECKS} or (one.file, one.kernel) != (other.file, other.kernel):
        return False
    if other.check == DIVERGENT:
        return True
    return bool(_list_lines(one) & _list_lines(other)) or (
        one.check == UNWRITTEN and other.check == RACE and _find_variable(one) == _find_variable(other)
    )


def _list_lines(one: KernelFinding) -> set[int]:
    return {one.line, *map(int, _OTHER_LINE.findall(one.message))}


def _find_variable(one: KernelFinding) -> str:
    found = _VARIABLE.search(one.message)
    return found["name"] if found else ""


def put_causes_first(findings: Iterable[KernelFinding]) -> list[KernelFinding]:
    """Sort causes before consequences: a write beyond an end also races with another one."""
    return sorted(findings, key=lambda one: (not one.decides, one.outcome is Outcome.WRONG_VALUE))


def has_race_at_all_sizes(findings: Iterable[Finding]) -> bool:
    """Return True for a race in shared memory, unless a fault that does not occur at other sizes may cause it."""
    checks = {one.check for one in findings if one.evidence.startswith(IN_KERNEL)}
    return RACE in checks and not any(word in check for check in checks for word in SIZED)


def drop_repeated(findings: Iterable[Finding]) -> list[Finding]:
    """Keep one per check and line of a kernel, in order; prefer a fatal one to a warning."""
    kept: dict[object, Finding] = {}
    for number, one in enumerate(findings):
        location = _LOCATION.match(one.message) if one.evidence.startswith(IN_KERNEL) else None
        place = (one.check, _locate(one, location[0])) if location else number
        if place not in kept or (one.severity == "fatal" and kept[place].severity != "fatal"):
            kept[place] = one
    return list(kept.values())


def _locate(one: Finding, location: str) -> str:
    """Name the kernel instead of the line for a barrier that not all threads reach: they wait at different lines."""
    return one.evidence.partition(",")[0] if one.check == DIVERGENT else location


def excuse_compiled(findings: Iterable[KernelFinding], compiled: frozenset[str]) -> list[KernelFinding]:
    """In compiled kernels an interpreter's error is `uncovered`; otherwise the failure itself reports it."""
    kept = (one for one in findings if one.check != INTERPRETER or one.kernel in compiled)
    return [_excuse(one) if one.check == INTERPRETER else one for one in kept]


def choose_outcome(findings: Sequence[KernelFinding]) -> Outcome:
    outcomes = {one.outcome for one in findings}
    order = (Outcome.NOT_RUN, Outcome.TIMEOUT, Outcome.RUNTIME_ERROR, Outcome.WRONG_VALUE)
    return next(outcome for outcome in order if outcome in outcomes)


def report_kernel_findings(
    findings: Sequence[KernelFinding], severity: Literal["warning", "fatal"], when: str = ""
) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            check=one.check,
            severity=severity if one.decides else "warning",
            message=" ".join(filter(None, (one.describe()[:MAX_CHARACTERS], when and f"({when})"))),
            evidence=_describe_thread(one),
        )
        for one in findings[:MAX_SHOWN]
    )


def _excuse(one: KernelFinding) -> KernelFinding:
    message = f"not covered by the emulated device, though the kernel compiles: {one.message}"
    return replace(one, check=UNCOVERED, decides=True, message=message[:MAX_CHARACTERS])


def _describe_thread(one: KernelFinding) -> str:
    parts = ((IN_KERNEL, one.kernel), ("block", one.block), ("thread", one.thread), ("value", one.value))
    return ", ".join(f"{name} {text}" for name, text in parts if text)


def _parse(value: object) -> KernelFinding:
    given = read_as(dict[str, str | int | float | tuple[int, int, int] | None], value, "kernel finding")
    line = given.get("line", 0)
    if type(line) is not int:
        raise CandidateFailure.of_protocol("kernel finding: expected an integer line")

    def show(name: str) -> str:
        part = given.get(name)
        return "" if part is None else str(part)[:MAX_CHARACTERS]

    names = ("check", "message", "file", "kernel", "block", "thread", "value")
    return KernelFinding(
        decides=given.get("severity", "error") == "error", line=line, **{name: show(name) for name in names}
    )


OTHER_COMPILERS = ("cupy", "numba", "pycuda", "cuda", "warp")
MODULES = frozenset(OTHER_COMPILERS).union(*(rules.modules for rules in LANGUAGES.values()))
ATTRIBUTES = frozenset(("CUDAGraph", "make_graphed_callables", "_compile_kernel"))


def find_uncovered(source: str, covered: frozenset[str] = frozenset()) -> str | None:
    """Return the first unsupported construct, such as `line 3: import cupy`. The language provides `covered`."""
    tree = try_parse(source)
    found = [
        (node.lineno, name)
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.stmt | ast.expr)
        for name in _name(node, MODULES - covered)
    ]
    return "line {}: {}".format(*min(found)) if found else None


def excuse_unsupported(source: str, failure: CandidateFailure, covered: frozenset[str] = frozenset()) -> None:
    """Raises CandidateFailure (not_run) if the source uses such a construct; the worker's messages are untrusted."""
    construct = find_uncovered(source, covered)
    if construct is not None and failure.outcome in (Outcome.LOAD_ERROR, Outcome.RUNTIME_ERROR):
        message = f"{construct} is not covered by the emulated device: {failure.message}"
        raise CandidateFailure(Outcome.NOT_RUN, message, failure.findings) from failure


def _name(node: ast.AST, modules: frozenset[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [f"import {alias.name}" for alias in node.names if alias.name.split(".")[0] in modules]
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in modules:
        return [f"import {node.module}"]
    if isinstance(node, ast.Attribute) and (node.attr in ATTRIBUTES or ast.unparse(node) == "torch.cuda.graph"):
        return [ast.unparse(node)]
    return []
