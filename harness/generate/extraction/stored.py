"""Compares the current extractor's results with stored candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from harness.domain import Candidate, Sample
from harness.generate.extraction.extractor import extract_candidate

ExtractionKind = Literal["found", "lost", "other", "rule"]
NOT_EXTRACTED = ("file", "imported")  # rules of candidates without a completion


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionChange:
    """`found` and `lost` mean that a program appeared or disappeared, `other` that it changed, `rule` that only the
    rule did.
    """

    sample: Sample
    now: Candidate | None

    @property
    def kind(self) -> ExtractionKind:
        before = self.sample.candidate
        if before is None or self.now is None:
            return "found" if before is None else "lost"
        return "rule" if before.source == self.now.source else "other"

    @property
    def reason(self) -> str:
        before, now = self.sample.candidate, self.now
        rules = f"{before.rule if before else 'nothing'} -> {now.rule if now else 'nothing'}"
        if before is None or now is None or self.kind == "rule":
            return rules
        changed = [line for line in self.diff() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        added = sum(line.startswith("+") for line in changed)
        return f"{rules}: {added} lines added, {len(changed) - added} removed"

    def diff(self) -> list[str]:
        before, now = ([] if one is None else one.source.splitlines() for one in (self.sample.candidate, self.now))
        return list(unified_diff(before, now, "stored", "extracted now", lineterm=""))


def reextract(samples: Iterable[Sample]) -> Iterator[ExtractionChange]:
    for sample in samples:
        if sample.completion is None or (sample.candidate and sample.candidate.rule in NOT_EXTRACTED):
            continue
        now = extract_candidate(sample.completion, sample.language)
        if now != sample.candidate:
            yield ExtractionChange(sample=sample, now=now)
