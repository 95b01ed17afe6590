"""Where completions come from: the protocol, and the provider that replays stored ones. `openai_compatible`
holds the one that asks a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.domain import Completion, Language, Prompt, ProviderError, SampleKey, UsageError
from harness.store.runs import MANIFEST, locate_sample, read_completion, read_manifest_field


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One draw. `temperature` and `max_tokens` are left to the endpoint when None."""

    key: SampleKey
    prompt: Prompt
    model: str
    temperature: float | None = None
    max_tokens: int | None = None


class Provider(Protocol):
    """Draws completions; one instance serves a whole run, many requests at once."""

    def can_answer(self, key: SampleKey) -> bool:
        """Whether asking makes sense; False is a sample that is skipped, with a note."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """One completion, whole. Raises ProviderError."""

    async def close(self) -> None:
        """Ends all connections."""


class RecordedProvider:
    """Replays a recording: a run folder, or a hand-made one (the layout is in `harness.store.runs`).

    The prompt, the model and the temperature of a request are not looked at.
    """

    def __init__(self, recording: Path, language: Language) -> None:
        if not recording.is_dir():
            raise UsageError(f"no recording at {recording}: give a folder with --recording, such as generated/<run>")
        self.folder = recording / language if (recording / language).is_dir() else recording

    def can_answer(self, key: SampleKey) -> bool:
        return read_completion(locate_sample(self.folder, key)) is not None

    async def complete(self, request: CompletionRequest) -> Completion:
        folder = locate_sample(self.folder, request.key)
        completion = read_completion(folder)
        if completion is None:
            raise ProviderError(f"no recorded completion in {folder}: expected completion.md or completion.json there")
        return completion

    async def close(self) -> None:
        pass


def name_recorded_model(recording: Path, language: Language) -> str:
    """The model whose completions a recording holds, as its manifest says; else a name made of the folder's."""
    for folder in (recording / language, recording):
        if (folder / MANIFEST).is_file():
            return str(read_manifest_field(folder, "model", default=f"recorded-{recording.name}"))
    return f"recorded-{recording.resolve().name}"
