"""Criteria for problems that can be scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`skipped` tells that it takes too much time or memory."""

    name: str
    passed: bool
    evidence: str
    skipped: bool = False


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

    @property
    def skipped(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.skipped)
