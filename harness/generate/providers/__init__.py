"""The provider protocol, and the provider that replays stored completions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.domain import Completion, Language, Prompt, ProviderError, SampleKey, UsageError
from harness.store.runs import MANIFEST, locate_sample, read_completion, read_model


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    key: SampleKey
    prompt: Prompt
    model: str
    temperature: float | None = None
    max_tokens: int | None = None


class Provider(Protocol):
    def can_answer(self, key: SampleKey) -> bool:
        """If False the sample is skipped and reported."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """Raises ProviderError."""

    async def close(self) -> None: ...


class RecordedProvider:
    """Replays a recording or a run folder (layout: `harness.store.runs`); ignores prompt, model and temperature."""

    def __init__(self, recording: Path, language: Language) -> None:
        if not recording.is_dir():
            raise UsageError(f"no recording at {recording}: pass a folder with --recording, such as generated/<run>")
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
    for folder in (recording / language, recording):
        if (folder / MANIFEST).is_file():
            return read_model(folder, f"recorded-{recording.name}")
    return f"recorded-{recording.resolve().name}"
