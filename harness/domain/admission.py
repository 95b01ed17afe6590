"""Criteria for problems that can be scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    passed: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """`case` is "" without cases."""

    problem: str
    workload: str
    checks: tuple[Check, ...]
    case: str = ""

    @property
    def admitted(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)
