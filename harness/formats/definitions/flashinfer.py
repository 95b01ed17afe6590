"""flashinfer-bench's folder, a "trace set".

definitions/<op>/<name>.json    workloads/<op>/<name>.jsonl    solutions/.../<name>.json    blob/.../<any>.safetensors
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.formats.definitions.folders import DefinitionReader
from harness.formats.imported import Imported, read_json_lines, read_json_object


def find(source: Path) -> Path | None:
    roots = (source, *(path for path in sorted(source.glob("*")) if path.is_dir()))
    return next((root for root in roots if any((root / "definitions").rglob("*.json"))), None)


def read(root: Path, suite: str) -> Imported:
    """Raises UsageError for malformed files."""
    lines: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for path in sorted((root / "workloads").rglob("*.jsonl")):
        for where, record in read_json_lines(path):
            lines.setdefault(str(record.get("definition", path.stem)), []).append((where, record))
    reader = DefinitionReader("flashinfer-bench", suite, root)
    for path in sorted((root / "definitions").rglob("*.json")):
        record = read_json_object(path)
        reader.add_problem(record, path, lines.get(str(record.get("name")), ()))
    for path in sorted((root / "solutions").rglob("*.json")):
        reader.add_solution(read_json_object(path), path, "tvm-ffi")
    return reader.finish()
