"""What a model was asked, what it answered, and the code found in the answer. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

Language = Literal["cuda", "cpp"]
LANGUAGES: tuple[Language, ...] = ("cuda", "cpp")
FILE_RUN, NO_PROMPT = "file", "-"  # of a candidate that was given as a file: no model wrote it in a run


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
    """One raw answer, kept whole. `text` is the content, with any tool calls after it as `<tool_call>` elements; None
    when the endpoint sent neither (it may still hold reasoning)."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float | None = None
    model: str = ""
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A program of a completion that was not taken, its lines in the text (from 1, both included), and why."""

    rule: str
    first_line: int
    last_line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """How a candidate was chosen: its own rule and lines, why it was taken, the lines of other blocks that were joined
    with it, and the programs that were not taken. `more_alternatives` are counted, not listed."""

    rule: str
    first_line: int
    last_line: int
    reason: str
    joined: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    more_alternatives: int = 0

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Extraction:
        """The inverse of `dataclasses.asdict`. Raises KeyError or TypeError for what is none."""
        joined = tuple((first, last) for first, last in record["joined"])
        alternatives = tuple(Alternative(**one) for one in record["alternatives"])
        return cls(**record | {"joined": joined, "alternatives": alternatives})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A program found in a completion (or given as a file). `rule` names the extraction rule that found it, and
    `extraction` says why; two that differ only in that are the same."""

    source: str
    language: Language
    rule: str
    extraction: Extraction | None = field(default=None, compare=False)

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFile:
    """A problem of a run that is no suite's: `path` is where it was read, its text is kept with the run."""

    name: str
    path: str
    digest: str
    requires_kernel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """One `generate` invocation: everything needed to issue it again and to resume it. `files` are those of `problems`
    that were given as files."""

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
    files: tuple[ReferenceFile, ...] = ()

    def find_file(self, problem: str) -> ReferenceFile | None:
        return next((file for file in self.files if file.name == problem), None)


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
    max_tokens: int | None = None
