"""SOL-ExecBench's folders, with objects of flashinfer-bench: <name>/definition.json, workload.jsonl, solution*.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.formats.definitions.folders import DefinitionReader
from harness.formats.imported import Imported, read_json_lines, read_json_object, read_text


def find(source: Path) -> Path | None:
    return source if any(_list_problems(source)) else None


def _list_problems(root: Path) -> Iterator[Path]:
    found = (path.parent for path in sorted(root.rglob("definition.json")))
    return (folder for folder in found if (folder / "workload.jsonl").is_file())


def read(root: Path, suite: str) -> Imported:
    """Raises UsageError for malformed files."""
    reader = DefinitionReader("SOL-ExecBench", suite, root)
    folders = list(_list_problems(root))
    for folder in folders:
        path, source = folder / "definition.json", folder / "reference.py"
        reference = read_text(source) if source.is_file() else ""
        reader.add_problem(read_json_object(path), path, read_json_lines(folder / "workload.jsonl"), reference)
    for folder in folders:
        for path in sorted(folder.glob("solution*.json")):
            reader.add_solution(_fill_contents(read_json_object(path), folder), path, "torch")
    return reader.finish()


def _fill_contents(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Sources without content are files beside the solution."""
    sources = record.get("sources")
    for one in sources if isinstance(sources, list) else ():
        if isinstance(one, dict) and not one.get("content") and (folder / str(one.get("path"))).is_file():
            one["content"] = read_text(folder / str(one["path"]))
    return record
