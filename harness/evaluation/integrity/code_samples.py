"""Attributes the time of calls on a CPU by samples: the evaluator stops calls at random instants and reads from outside
where their threads execute. Files decide who owns the code, by their content.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from harness.analysis.intervals import bound_share
from harness.domain import Work
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.integrity.code_images import map_file
from harness.evaluation.results import Owner
from harness.sandbox.model_session import ModelSession
from harness.sandbox.worker_process import CodePlace, CodeTrace

LEAST_CALLS = 5
USUAL_CALLS, MORE_CALLS = 3, 12  # before the first sampled one, and after the last; if those take longer
LONGER = 1.5  # times: such calls are others than those before
SHORT_US = 5000.0
LEAST_SAMPLES = 5  # for a share
# Samples of machine code, not of Python, until so many seconds: for a share that is shown, and for one that decides.
SHOWN, DECIDING = ((0.5, 40), (2.0, 10)), ((2.0, 40), (8.0, 10), (20.0, LEAST_SAMPLES))
BETWEEN_PAIRS = (1.0, 0.5)  # sampled calls on average, of short and of long ones
DEVIATIONS = 1.64  # of the largest share that samples permit, with 95 % confidence
SURE_SAMPLES, MOST_S = 150, 12.0  # without candidate code, so that kernels of 2 % of the time are found
SEARCHED_BLOCKS = 3  # of code in files that the evaluator did not build; 1 to 2 s each

TORCH_FOLDER = str(Path(torch.__file__).resolve().parent)
_LANGUAGE = re.compile(r".*/((lib)?python[^/]*|lib(torch_python|c10|shm)\.so|lib-dynload/.*)")
# Threads wait in the first; work in the second belongs to the caller.
_WAITING = re.compile(r"lib(gomp|iomp5|omp)\b")
_RUNTIME = re.compile(r"(lib(c|m|mvec|stdc\+\+|gcc_s|pthread|ffi|dl)|ld-linux[\w-]*)(-[\d.]+)?\.so|\[")
_UNLIKELY = re.compile(r"cuda|nvidia|triton|cudnn|nccl")


class CodeSamples:
    """Sampled calls of one candidate. Between timed calls they are drawn independently of everything, so that a
    candidate that changes after a stop is timed as it is sampled.
    """

    def __init__(self, source: random.Random, built: Sequence[str], *, is_required: bool) -> None:
        """`built` are the evaluator's builds. With `is_required`, a program without custom code is refused."""
        self._source, self._is_required = source, is_required
        self._owners, self._counts = _Owners(built), Counter[Owner]()
        self._instants: list[Sequence[CodeTrace]] = []  # not counted yet
        self._maps_code = False  # of the candidate's own
        self._calls = 0
        self._windows_us: list[float] = []  # of usual calls
        self.is_supported = True
        self.is_changed = False  # calls take longer after the samples than before

    def note_call(self, window_us: float) -> None:
        self._windows_us.append(window_us)

    def draws_call(self) -> bool:
        """Draw whether another sampled call follows. BETWEEN_PAIRS has the mean number in a row."""
        if not (self.is_supported and self._windows_us):
            return False
        mean = BETWEEN_PAIRS[self._window_us > SHORT_US]
        return self._source.random() < mean / (1 + mean)

    def call(self, session: ModelSession) -> None:
        """Make a sampled call with the staged inputs."""
        sample = session.call_sampled(self._source.random() * self._window_us)
        self.is_supported = sample is not None
        if sample is not None:
            self._instants.append(sample.traces)
            self._maps_code |= sample.maps_custom_code
        self._calls += 1

    def make_calls(self, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
        """Make calls until the samples are enough. A candidate that was stopped knows it, and must go on as before."""
        session.prepare_call(reference.make_inputs(next(seeds)))

        def call() -> float:
            session.stage(reference.make_inputs(next(seeds)))
            return session.complete(session.call_timed(take=False)).evaluator_us

        for _ in range(USUAL_CALLS):
            self.note_call(call())
        began_s = time.monotonic()
        while self.is_supported and not self.is_enough(time.monotonic() - began_s):
            session.stage(reference.make_inputs(next(seeds)))
            self.call(session)
        after_us = [call() for _ in range(USUAL_CALLS)]
        while statistics.median(after_us) > LONGER * self._window_us and len(after_us) < MORE_CALLS:
            after_us.append(call())
        self.is_changed = statistics.median(after_us) > LONGER * self._window_us
        session.await_rest()
        session.disarm()

    @property
    def _window_us(self) -> float:
        return statistics.median(self._windows_us)

    @property
    def is_unused(self) -> bool:
        """Return whether candidate code surely does not run."""
        is_sure = self._count_code() >= SURE_SAMPLES or (self._calls >= LEAST_CALLS and not self._maps_code)
        return self.is_supported and self._has_none and is_sure

    @property
    def _has_none(self) -> bool:
        return not self._count_owners()["custom"]

    @property
    def is_open(self) -> bool:
        """Return whether more samples may show that a program without custom code is to be refused."""
        return self._is_required and self._has_none and not self.is_unused

    def is_enough(self, spent_s: float = 0.0) -> bool:
        if self.is_unused:
            return True
        wanted = DECIDING if self._is_required else SHOWN
        least = next((least for most_s, least in wanted if spent_s < most_s), 0)
        if self._calls < LEAST_CALLS or self._count_code() < least:
            return False
        return not (self.is_open and spent_s < MOST_S)

    def share(self, work: Work | None) -> Work | None:
        """Return the shares, None if unknown. `work` is the profile's: it divides the time in torch's files between
        torch and the libraries inside. Without it the custom share is the largest that the samples permit: of cases
        that are not profiled the smallest counts.
        """
        counts, code = self._count_owners(), self._count_code()
        if not self.is_supported or code < LEAST_SAMPLES:
            return None
        custom, torchs, library = (counts[owner] / code for owner in ("custom", "torch", "library"))
        if work is None:
            _, most = bound_share(custom, code, DEVIATIONS)
            rest = (1 - most) / (1 - custom) if custom < 1 else 0.0
            return Work(custom=most, torch=torchs * rest, library=library * rest, other=0.0)
        known = work.torch + work.library
        inside = torchs * work.library / known if known else 0.0
        return replace(work, custom=custom, torch=torchs - inside, library=library + inside, other=0.0)

    def _count_code(self) -> int:
        counts = self._count_owners()
        return counts["custom"] + counts["torch"] + counts["library"]

    def _count_owners(self) -> Counter[Owner]:
        """An instant in which one thread runs others' code is theirs, whatever the candidate's threads do."""
        for traces in self._instants:
            found = {self._owners.find(trace) for trace in traces}
            self._counts[next((one for one in ("torch", "library", "custom") if one in found), "other")] += 1
        self._instants.clear()
        return self._counts


class _Owners:
    def __init__(self, built: Sequence[str]) -> None:
        self._built = [Path(path).read_bytes() for path in built]
        self._known: dict[bytes, bool] = {}

    def find(self, trace: CodeTrace) -> Owner:
        owners = (self._name(place) for place in trace)
        return next((one for one in owners if one is not None), "other")

    def _name(self, place: CodePlace) -> Owner | None:
        owner = _name_file(place)
        return ("custom" if self._is_own(place) else "library") if owner == "custom" else owner

    def _is_own(self, place: CodePlace) -> bool:
        """Code in files of the candidate's own is another's if a library of this machine has it."""
        end = place.offset + len(place.code)
        if not place.code:
            return False
        if any(library[place.offset : end] == place.code for library in self._built):
            return True
        if place.code not in self._known and len(self._known) < SEARCHED_BLOCKS:
            self._known[place.code] = _is_of_machine(place.code)
        return not any(self._known.values())


def _name_file(place: CodePlace) -> Owner | None:
    """None: the caller's. Anonymous memory has code that libraries generate; other files may be the candidate's."""
    if not place.installed:
        return "custom" if place.path else "library"
    name = Path(place.path).name
    if _RUNTIME.match(name):
        return None
    if _LANGUAGE.fullmatch(place.path) or _WAITING.match(name):
        return "other"
    return "torch" if place.path.startswith(TORCH_FOLDER) else "library"


def _is_of_machine(code: bytes) -> bool:
    return any(_contains(path, code) for path in _list_libraries())


def _contains(path: Path, code: bytes) -> bool:
    with suppress(OSError, ValueError), map_file(path) as file:
        return file.find(code) >= 0
    return False


@cache
def _list_libraries() -> frozenset[Path]:
    folders = {Path(entry).resolve() for entry in sys.path}
    found = (path for folder in folders if folder.is_dir() for path in folder.rglob("*.so*"))
    return frozenset(path.resolve() for path in found if not _UNLIKELY.search(str(path)))
