"""Contents of another format's folder, as problem files and candidates of this harness."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.domain import UsageError
from harness.domain.files import raising, replacing

FormatName = Literal["kernelbench-verified", "kernelbench", "flashinfer-bench", "sol-execbench", "gpu-mode"]


class UnsupportedError(Exception):
    """The reason why one problem, workload or solution is left out."""


class NotPythonError(UnsupportedError):
    """A source does not parse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProblem:
    """`name` is as in the source. `workloads` are kept beside the problem file, one JSON object a line."""

    suite: str
    name: str
    code: str
    workloads: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSolution:
    """With a reason `not_run`, it is stored and never evaluated."""

    suite: str
    problem: str
    name: str
    author: str
    code: str
    not_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """`notes` name what was left out or changed, and why."""

    problems: tuple[ImportedProblem, ...]
    solutions: tuple[ImportedSolution, ...] = ()
    notes: tuple[str, ...] = ()


def read_text(path: Path) -> str:
    with raising(UsageError, f"read {path} as UTF-8 text", also=(UnicodeDecodeError,)):
        return path.read_bytes().decode("utf-8-sig")


def read_json_object(path: Path) -> dict[str, Any]:
    """Raises UsageError unless the file holds a JSON object."""
    return parse_object(read_text(path), path, 1)


def read_json_lines(path: Path, malformed: list[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, object). `malformed` takes lines that hold none; without it, raises UsageError."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", parse_object(line, path, number)
        except UsageError as error:
            if malformed is None:
                raise
            malformed.append(str(error))


def parse_object(text: str, path: Path, first_line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise UsageError(f"{path}, line {line}: not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}, line {first_line}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path}, line {first_line}: holds a {type(record).__name__}, expected a JSON object")
    return record


def take(record: Mapping[str, Any], key: str, kind: type, where: str, *, default: Any = None) -> Any:
    """Return `record[key]`; a missing or null value is `default`. Raises UsageError for another type."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or value == "":
        names = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}
        raise UsageError(f"{where}: expected {names[kind]} as {key!r}, found {json.dumps(value)[:100]}")
    return value


def write_bytes(path: Path, content: bytes) -> None:
    """Write atomically. Raises UsageError."""
    with raising(UsageError, f"write {path}"), replacing(path) as partial:
        partial.write_bytes(content)
