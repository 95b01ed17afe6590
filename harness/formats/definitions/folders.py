"""Collects the definitions, workloads and solutions of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.formats.definitions.definition import Definition, Workload, read_definition, read_workload
from harness.formats.definitions.problem_file import choose_evenly, write_problem
from harness.formats.definitions.solutions import name_twice, read_solution
from harness.formats.definitions.tensor_files import locate_tensors
from harness.formats.imported import Imported, ImportedProblem, ImportedSolution, UnsupportedError

Lines = Iterable[tuple[str, Mapping[str, Any]]]  # (file and line, object)


@dataclass
class DefinitionReader:
    """Collects what can be imported, and the reasons why the rest is left out."""

    origin: str
    suite: str
    root: Path
    problems: list[ImportedProblem] = field(default_factory=list)
    solutions: list[ImportedSolution] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    files: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def add_problem(self, record: Mapping[str, Any], path: Path, lines: Lines, reference: str = "") -> None:
        with self._noting():
            definition = read_definition(record, str(path), reference)
            workloads = list(self._read_workloads(definition, lines, path))
            chosen = choose_evenly(workloads)
            code = write_problem(definition, chosen, self.origin)
            if len(chosen) < len(workloads):
                self.notes.append(f"{definition.name}: {len(chosen)} of {len(workloads)} workloads, evenly chosen")
            kept = [{"definition": definition.name, "workload": one.record} for one in chosen]
            self.problems.append(
                ImportedProblem(
                    suite=self.suite,
                    name=definition.name,
                    code=code,
                    workloads="".join(f"{json.dumps(one)}\n" for one in kept),
                )
            )
            self.definitions[definition.name] = definition
            self.files.setdefault("definitions", []).append((definition.name, str(path)))

    def _read_workloads(self, definition: Definition, lines: Lines, path: Path) -> Iterator[Workload]:
        seen: set[str] = set()
        for where, record in lines:
            try:
                workload = read_workload(record, definition, where)
                if workload.uuid in seen:
                    raise UnsupportedError(f"{where}: another workload has the uuid {workload.uuid}")
                located = locate_tensors(workload, definition, (self.root, path.parent), where)
            except UnsupportedError as error:
                self.notes.append(str(error))
                continue
            seen.add(workload.uuid)
            yield located

    def add_solution(self, record: Mapping[str, Any], path: Path, binding: str) -> None:
        with self._noting():
            self.solutions.append(read_solution(record, self.definitions, self.suite, binding, str(path)))
            self.files.setdefault("solutions", []).append((self.solutions[-1].name, str(path)))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except UnsupportedError as error:
            self.notes.append(str(error))

    def finish(self) -> Imported:
        """Raises UsageError for two of one name."""
        for names in self.files.values():
            name_twice(names)
        return Imported(problems=tuple(self.problems), solutions=tuple(self.solutions), notes=tuple(self.notes))
