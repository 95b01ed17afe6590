"""What today's extractor makes of stored completions, and where that differs from the candidate stored beside them.

Asks no model and writes nothing; `harness extract --stored --write` stores what is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from harness.domain import Candidate, Sample
from harness.generate.extraction.extractor import extract_candidate

ExtractionKind = Literal["found", "lost", "other", "rule"]
NOT_EXTRACTED = ("file", "imported")  # rules of candidates that did not come out of a completion


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionChange:
    """A sample whose completion gives something else today. `found`: a program where there was none; `lost`: none where
    there was one; `other`: another program; `rule`: the same program, found by another rule."""

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
        """What changed, in a few words."""
        before, now = self.sample.candidate, self.now
        rules = f"{before.rule if before else 'nothing'} -> {now.rule if now else 'nothing'}"
        if before is None or now is None or self.kind == "rule":
            return rules
        changed = [line for line in self.diff() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        added = sum(line.startswith("+") for line in changed)
        return f"{rules}: {added} lines added, {len(changed) - added} removed"

    def diff(self) -> list[str]:
        """The two programs as a unified diff, without line ends."""
        before, now = ([] if one is None else one.source.splitlines() for one in (self.sample.candidate, self.now))
        return list(unified_diff(before, now, "stored", "extracted now", lineterm=""))


def reextract(samples: Iterable[Sample]) -> Iterator[ExtractionChange]:
    """The samples whose stored completion gives another candidate now, or gives it by another rule. A candidate that
    was not extracted, such as an imported one, is left alone."""
    for sample in samples:
        if sample.completion is None or (sample.candidate and sample.candidate.rule in NOT_EXTRACTED):
            continue
        now = extract_candidate(sample.completion, sample.language)
        if now != sample.candidate:
            yield ExtractionChange(sample=sample, now=now)
