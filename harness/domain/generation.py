"""What a model was asked, what it answered, and the code found in the answer. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

Language = Literal["cuda", "cpp"]
LANGUAGES: tuple[Language, ...] = ("cuda", "cpp")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleKey:
    """Where a sample belongs: the n-th draw for (problem, model, prompt) in one run; `turn` counts repair steps."""

    run: str
    problem: str
    sample: int
    turn: int = 0

    def __str__(self) -> str:
        turn = f"/turn-{self.turn}" if self.turn else ""
        return f"{self.run}/{self.problem}/{self.sample}{turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact text sent to a model, and the template folder it was rendered from."""

    name: str
    problem: str
    language: Language
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the endpoint reported them; None where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One raw answer, kept whole. `text` is None when the endpoint sent no content (it may still hold reasoning)."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float | None = None
    model: str = ""
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A program found in a completion (or given as a file). `rule` names the extraction rule that found it."""

    source: str
    language: Language
    rule: str

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """One `generate` invocation: everything needed to issue it again and to resume it."""

    run: str
    suite: str
    model: str
    provider: str
    prompt: str
    language: Language
    samples: int
    temperature: float | None
    problems: tuple[str, ...]
    created_at: str
    harness_version: str
    base_url: str | None = None
    gpu: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One stored draw: its key, what came back, and the candidate found in it (None: no code was found)."""

    key: SampleKey
    model: str
    prompt: str
    suite: str
    language: Language
    completion: Completion | None
    candidate: Candidate | None
