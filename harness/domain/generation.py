"""Prompts, completions, and the candidates extracted from them."""

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Self

from harness.domain.files import BYTE_ORDER_MARK
from harness.domain.problem import Precision

Language = Literal["cute", "tilelang", "helion", "triton", "cuda", "torch", "cpp"]
# Checks that explain an answer without a whole program: ended by the token limit or a content filter, or for no stated
# reason; no content at all, or besides reasoning; a program in reasoning only.
TRUNCATED, FILTERED, NO_FINISH_REASON = "truncated", "filtered", "no_finish_reason"
EMPTY_ANSWER, ONLY_REASONING, IN_REASONING = "empty_answer", "only_reasoning", "in_reasoning"
INCOMPLETE_ANSWER = (TRUNCATED, FILTERED, NO_FINISH_REASON, EMPTY_ANSWER, ONLY_REASONING, IN_REASONING)
REFUSAL = "refusal"  # finish_reason of an answer that is the model's refusal and nothing else, and of some endpoints
TokenLimitName = Literal["auto", "max_tokens", "max_completion_tokens"]  # field of a request; auto: learnt
FILE_RUN, NO_PROMPT = "file", "-"  # identity of a candidate given as a file
FROM_FILE = ", from a file"  # in the prompt's name: a model that was given a program is ranked apart
_SAMPLE_KEY = re.compile(r"([^/\s]+)/([^/\s]+)/(\d{1,9})(?:/turn-(\d{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleKey:
    """The n-th draw for (problem, model, prompt) in one run; `turn` counts repair steps."""

    run: str
    problem: str
    sample: int
    turn: int = 0

    def __str__(self) -> str:
        turn = f"/turn-{self.turn}" if self.turn else ""
        return f"{self.run}/{self.problem}/{self.sample}{turn}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `run/problem/sample`, with `/turn-N` for a later turn; None for any other text."""
        found = _SAMPLE_KEY.fullmatch(text)
        if found is None:
            return None
        return cls(run=found[1], problem=found[2], sample=int(found[3]), turn=int(found[4] or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    name: str
    problem: str
    language: Language
    text: str
    earlier: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.earlier, Message(role="user", text=self.text))

    @property
    def digest(self) -> str:
        whole = "".join(f"{one.role}\0{one.text}\0" for one in self.earlier) + self.text
        return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts reported by the endpoint; None if missing."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """`text` holds content and tool calls, or None. `finish_reason` "": none given; None: only the text is stored."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float | None = None
    model: str = ""
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A rejected program of a completion, by inclusive lines from 1."""

    rule: str
    first_line: int
    last_line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Lines are 1-based, inclusive, without fences; `joined` are those of other blocks. `more_alternatives` counts
    rejected programs beyond the listed ones."""

    rule: str
    first_line: int
    last_line: int
    reason: str
    joined: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    more_alternatives: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """`not_run` is the reason why an imported program cannot be evaluated."""

    source: str
    language: Language
    rule: str
    extraction: Extraction | None = field(default=None, compare=False)
    not_run: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source.removeprefix(BYTE_ORDER_MARK))

    @property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]

    @property
    def has_extensions(self) -> bool:
        """Programs that hide extensions are built later, in their evaluation."""
        return "cpp_extension" in self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFile:
    name: str
    path: str
    digest: str
    requires_kernel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """Everything needed to repeat or resume a `generate` invocation. `turns` is the maximum of a sample."""

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
    turns: int = 1
    strategy: str = ""
    dtype: Precision | Literal[""] = ""

    def find_file(self, problem: str) -> ReferenceFile | None:
        return next((file for file in self.files if file.name == problem), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """`candidate` is None if no code was found. `parent` is the turn whose program this one continues."""

    key: SampleKey
    model: str
    prompt: str
    suite: str
    language: Language
    completion: Completion | None
    candidate: Candidate | None
    max_tokens: int | None = None
    parent: int | None = None
