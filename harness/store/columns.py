"""Declares the columns of a row, from which database, files, tables and page derive theirs; compiles conditions."""

import ast
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from harness.domain import (
    Clock,
    Evaluation,
    Language,
    Outcome,
    SampleKey,
    TimingVerdict,
    UsageError,
    WithoutCustom,
    WorkloadName,
)
from harness.domain.errors import explain_unknown

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """`path` lists the attributes from an Evaluation to the value, also in stored JSON (`older_path` with older names).
    `since` is the schema that added the column. `unit` is "x" for ratios ("x by clock" with the sign of the row's
    clock) and "%" for shares. `meaning` explains it to users.
    """

    path: str
    older_path: str = ""
    since: int = 1
    unit: Literal["", "x", "x by clock", "%", "us"] = ""
    is_short: bool = False
    meaning: str = ""
    values: tuple[str, ...] = ()
    kind: type[str | int | float] = str
    is_optional: bool = False

    @property
    def is_number(self) -> bool:
        return self.kind is not str

    @property
    def is_whole(self) -> bool:
        return self.is_number or self.is_short or bool(self.values)

    @property
    def sql_type(self) -> str:
        name = {str: "TEXT", int: "INTEGER", float: "REAL"}[self.kind]
        return name if self.is_optional else f"{name} NOT NULL" + (" DEFAULT ''" if self.since > 1 else "")

    def read(self, evaluation: Evaluation) -> Value:
        value: Any = evaluation
        for name in self.path.split("."):
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
            if value is None:
                return None if self.is_optional else ""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value  # no lone surrogates


def _column(path: str, meaning: str, **more: Any) -> Any:
    return Column(path, meaning=meaning, **more)


class ResultRow(NamedTuple):
    """One evaluation as a flat row, in the order of the CSV file (append new columns). `meaning` is also in
    docs/report.md.

    A NamedTuple without JSON decoding, because listings hold 100,000 rows.
    """

    id: int = _column("", "number of the evaluation, for `harness show ID`")  # given by the database
    run: str = _column("subject.run", "name of the run in generated/; `file` for programs given as files")
    problem: str = _column("subject.problem", "the problem's name")
    sample: int = _column("subject.sample", "number of the draw for this problem, model and prompt, from 0")
    turn: int = _column("subject.turn", "repair or optimisation step of the sample, from 0")
    suite: str = _column("subject.suite", "folder of the problem")
    model: str = _column("subject.model", "the model that wrote the program, or the name of the file")
    prompt: str = _column("subject.prompt", "name of the prompt template")
    language: Language = _column("subject.language", "what the kernels are written in")
    device: str = _column(
        "subject.device",
        "where the program ran: `cpu`, `cuda:0`, `emulated`, or `none` if no device was needed",
        is_short=True,
    )
    workload: WorkloadName = _column("subject.workload", "sizes: `full` is scored; `small` and `reduced` are for tests")
    outcome: str = _column("outcome", "the verdict on correctness", values=tuple(Outcome))
    speedup: float | None = _column(
        "speedup",
        "baseline time divided by the program's, only if correct and confirmed; 1 for a tie",
        unit="x by clock",
    )
    speedup_low: float | None = _column("timing.speedup_low", "lower end of the interval of the speedup", unit="x")
    speedup_high: float | None = _column("timing.speedup_high", "upper end of the interval of the speedup", unit="x")
    verdict: TimingVerdict | Literal["untimed"] | None = _column("verdict", "the verdict on speed")
    baseline: str = _column("subject.baseline", "what the program is timed against; the first of several")
    baseline_us: float | None = _column("timing.baseline_us", "the baseline's time of one call", unit="us")
    candidate_us: float | None = _column("timing.candidate_us", "the program's time of one call", unit="us")
    message: str = _column("message", "the main reason of the outcome")
    findings: str = _column("findings_summary", "severity and check of each finding")
    candidate: str = _column("subject.candidate_digest", "digest of the program; empty without one")
    duration_s: float = _column("duration_s", "how long the evaluation took")
    started_at: str = _column("started_at", "when the evaluation began, in UTC")
    confinement: str = _column("isolation", "isolation layers of the worker process")
    harness_version: str = _column("facts.harness", "version of harness")
    torch: str = _column("facts.torch", "version of PyTorch")
    hardware: str = _column("hardware", "the GPU or CPU")
    own_share: float | None = _column(
        "work.custom",
        "share of a call's time in the candidate's own compiled code; on a GPU the smallest of all timed cases",
        older_path="work.own",
        since=2,
        unit="%",
    )
    without_own: WithoutCustom | None = _column(
        "work.without_custom", "effect on the outputs of disabling that code", older_path="work.without_own", since=2
    )
    peak_fraction: float | None = _column(
        "roofline.peak_fraction",
        "share of the device's measured peak",
        older_path="plausibility.peak_fraction",
        since=2,
        unit="%",
    )
    certificate: str = _column("certificate", "digest of the valid certificate of the red team", since=2)
    noise_floor: float | None = _column(
        "timing.noise_floor", "largest deviation from 1 of a program's speedup over itself", since=2, unit="%"
    )
    worst_speedup: float | None = _column(
        "worst_case.timing.speedup", "speedup of the slowest case", since=3, unit="x by clock"
    )
    generalisation_gap: float | None = _column(
        "generalisation_gap.ratio", "mean speedup of the known cases divided by that of the secret ones", since=3
    )
    dtype: str = _column(
        "subject.dtype", "dtype chosen by `--dtype`; empty: as in the problem's file", since=4, is_short=True
    )
    rival_turn: int | None = _column("comparison.turn", "the previously best turn of a search", since=5)
    over_rival: float | None = _column("comparison.speedup", "speedup over the rival turn, in A/B pairs", since=5)
    over_rival_low: float | None = _column(
        "comparison.speedup_low", "lower end of the interval of `over_rival`", since=5
    )
    clock: Clock | None = _column("timing.clock", "which times the speedup compares", since=6)
    gap_closed: float | None = _column(
        "gap_closed", "share of the gap from baseline to roofline that is closed", since=7, unit="%"
    )
    achieved_gb_s: float | None = _column("achieved_gb_s", "bytes that the problem must move / time of a call", since=7)
    achieved_tflops: float | None = _column("achieved_tflops", "operations of the reference / time of a call", since=7)
    baselines: str = _column("measured_baselines", "the baselines with a time, separated by commas", since=8)
    fastest_baseline: str | None = _column("fastest.baseline", "the fastest of several baselines", since=8)
    over_fastest: float | None = _column("fastest.ranked_speedup", "speedup over `fastest_baseline`", since=8, unit="x")
    memory_bytes: int | None = _column(
        "timing.candidate_bytes", "device memory of a replayed call, beside its inputs", since=9
    )
    baseline_memory_bytes: int | None = _column(
        "timing.baseline_bytes", "the baseline's device memory of a call", since=9
    )
    energy_mj: float | None = _column(
        "timing.candidate_mj", "energy of a call in millijoule, with `--energy` on a GPU", since=9
    )
    baseline_energy_mj: float | None = _column("timing.baseline_mj", "the baseline's energy of a call", since=9)
    call_us: float | None = _column(
        "timing.candidate_call_us",
        "the program's whole call on a GPU, host work included, by the evaluator's clock",
        since=10,
        unit="us",
    )
    baseline_call_us: float | None = _column(
        "timing.baseline_call_us", "the baseline's whole call", since=10, unit="us"
    )
    call_speedup: float | None = _column(
        "call_speedup", "`baseline_call_us` / `call_us`; it does not affect the verdict", since=10, unit="x"
    )

    @property
    def key(self) -> SampleKey:
        return SampleKey(run=self.run, problem=self.problem, sample=self.sample, turn=self.turn)


def _complete(column: Column, kind: Any) -> Column:
    parts = _flatten(kind)
    values = tuple(part for part in parts if isinstance(part, str))
    types = [one for one in (str, int, float) if one in parts] or [str]
    return replace(column, kind=types[0], is_optional=NoneType in parts, values=column.values or values)


def _flatten(kind: Any) -> list[Any]:
    parts = get_args(kind)
    return [one for part in parts for one in _flatten(part)] if parts else [kind]


COLUMNS = {name: _complete(ResultRow._field_defaults[name], kind) for name, kind in get_type_hints(ResultRow).items()}
SCHEMA_VERSION = max(column.since for column in COLUMNS.values())


def make_row(evaluation: Evaluation, number: int = 0) -> ResultRow:
    return ResultRow(number, *(column.read(evaluation) for name, column in COLUMNS.items() if name != "id"))  # type: ignore[arg-type]


Kind = Literal["text", "number"]
_KINDS: dict[str, Kind] = {name: "number" if one.is_number else "text" for name, one in COLUMNS.items()}
_Sql = tuple[str, tuple[str | float, ...]]

LONGEST_CONDITION = 2_000  # characters; SQLite supports about 1000 terms
DEEPEST_CONDITION = 20  # below the limit of SQLite's parser for nested parentheses
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="
}  # fmt: skip
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_KIND_NAMES: dict[Kind, str] = {"text": "string", "number": "number"}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_GRAMMAR = (
    "write comparisons (== != < <= > >=, in, is None) of columns with quoted strings and numbers, joined by and, or, "
    'not; like(model, "gpt*") matches a pattern'
)


def compile_condition(text: str) -> _Sql:
    """Return (SQL condition on the table `e`, parameters). Raises UsageError.

    The condition is parsed as Python, never executed. A comparison with a missing value is false; `speedup is None`
    selects it.
    """
    if len(text) > LONGEST_CONDITION:
        raise UsageError(f"--where is {len(text):,} characters long; at most {LONGEST_CONDITION:,} are read")
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in string literals
            tree = ast.parse(text.strip(), mode="eval").body
        if _measure_depth(tree) > DEEPEST_CONDITION:
            raise UsageError(f"--where is nested more than {DEEPEST_CONDITION} levels deep: write it flatter")
        return _Compiler(text.strip()).compile_truth(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise UsageError(f"--where {text!r} cannot be read ({reason}): {_GRAMMAR}") from error


def list_compared(text: str) -> list[tuple[str, str]]:
    """Return (column, text) of the equalities and memberships in a valid condition, negated ones included."""
    found = []
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(node, ast.Compare) and all(isinstance(op, _EQUALITIES) for op in node.ops):
            sides = [part for side in (node.left, *node.comparators) for part in getattr(side, "elts", [side])]
            names = [one.id for one in sides if isinstance(one, ast.Name) and _KINDS.get(one.id) == "text"]
            texts = [one.value for one in sides if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found += [(name, value) for name in names for value in texts]
    return found


class _Compiler:
    def __init__(self, text: str) -> None:
        self._text = text

    def compile_truth(self, node: ast.expr) -> _Sql:
        if isinstance(node, ast.BoolOp):
            return _join(" AND " if isinstance(node.op, ast.And) else " OR ", [*map(self.compile_truth, node.values)])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            text, values = self.compile_truth(node.operand)
            return f"NOT {text}", values
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            return _join(" AND ", [self._compare(left, op, right) for left, op, right in pairs])
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id != "like" or len(node.args) != 2 or node.keywords:
                raise self._refuse(node, 'cannot be called: the only function is like(column, "pattern*")')
            for argument in node.args:
                if self._find_kind(argument) != "text":
                    raise self._refuse(argument, "is not a string, as like() requires")
            column, pattern = map(self._compile_value, node.args)
            return f"coalesce({column[0]} GLOB {pattern[0]}, 0)", column[1] + pattern[1]
        raise self._refuse(node, "is not a condition")

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Sql:
        if isinstance(op, ast.In | ast.NotIn):
            return self._compile_membership(left, right, negated=isinstance(op, ast.NotIn))
        if _is_none(right) or _is_none(left):
            return self._compile_missing(left if _is_none(right) else right, op)
        if type(op) not in _COMPARISONS:
            raise self._refuse(right, "cannot follow `is`: only None can")
        first, second = self._compile_value(left), self._compile_value(right)
        self._check_kinds([left, right])
        return f"coalesce({first[0]} {_COMPARISONS[type(op)]} {second[0]}, 0)", first[1] + second[1]

    def _compile_missing(self, node: ast.expr, op: ast.cmpop) -> _Sql:
        text, values = self._compile_value(node)
        if isinstance(op, ast.Is | ast.Eq):
            return f"({text} IS NULL)", values
        if isinstance(op, ast.IsNot | ast.NotEq):
            return f"({text} IS NOT NULL)", values
        raise self._refuse(node, "cannot be ordered relative to None")

    def _compile_membership(self, left: ast.expr, right: ast.expr, *, negated: bool) -> _Sql:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
            raise self._refuse(right, 'is not a list: write outcome in ("correct", "timeout")')
        parts = [self._compile_value(node) for node in (left, *right.elts)]
        self._check_kinds([left, *right.elts])
        marks = ", ".join(text for text, _ in parts[1:])
        found = f"coalesce({parts[0][0]} IN ({marks}), 0)"
        return f"NOT {found}" if negated else found, tuple(value for _, values in parts for value in values)

    def _compile_value(self, node: ast.expr) -> _Sql:
        if isinstance(node, ast.Name):
            return self._compile_name(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return "?", (self._read_constant(node),)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and self._find_kind(node) == "number":
            text, values = self._compile_value(node.operand)
            return f"(-{text})", values
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            for side in (node.left, node.right):
                if self._find_kind(side) != "number":
                    raise self._refuse(side, "is no number, and only numbers can be calculated with")
            left, right = self._compile_value(node.left), self._compile_value(node.right)
            # 1.0 * x: a division of integers would be rounded.
            return f"(1.0 * {left[0]} {_ARITHMETIC[type(node.op)]} {right[0]})", left[1] + right[1]
        raise self._refuse(node, "is not supported")

    def _compile_name(self, node: ast.Name) -> _Sql:
        if node.id in _KINDS:
            return f"e.{node.id}", ()
        unknown = explain_unknown("column", node.id, _KINDS)
        raise UsageError(f'--where: {unknown}, or if it is a text, write "{node.id}"')

    def _read_constant(self, node: ast.Constant) -> str | float:
        value = node.value
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if isinstance(value, int) and abs(value) >= 2**63:
            raise self._refuse(node, "is too large a number")
        assert isinstance(value, int | float)
        return value

    def _check_kinds(self, nodes: Collection[ast.expr]) -> None:
        kinds = [self._find_kind(node) for node in nodes]
        if len(set(kinds)) > 1:
            parts = (f"{ast.unparse(node)} is a {_KIND_NAMES[kind]}" for node, kind in zip(nodes, kinds, strict=True))
            raise UsageError(f"--where compares a string with a number: {', '.join(parts)}")

    def _find_kind(self, node: ast.expr) -> Kind:
        if isinstance(node, ast.Name):
            self._compile_name(node)
            return _KINDS[node.id]
        return "text" if isinstance(node, ast.Constant) and isinstance(node.value, str) else "number"

    def _refuse(self, node: ast.expr, reason: str) -> UsageError:
        part = ast.get_source_segment(self._text, node) or ast.unparse(node)
        return UsageError(f"--where: {part!r} {reason}; {_GRAMMAR}. Columns: {', '.join(_KINDS)}")


def _join(word: str, parts: list[_Sql]) -> _Sql:
    return f"({word.join(text for text, _ in parts)})", tuple(value for _, values in parts for value in values)


def _measure_depth(node: ast.AST) -> int:
    return 1 + max(map(_measure_depth, ast.iter_child_nodes(node)), default=0)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
