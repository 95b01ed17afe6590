"""Attributes the time of calls on a CPU by samples: the evaluator stops calls at random instants and reads from outside
where their threads execute. Files decide who owns the code, by their content.
"""

from __future__ import annotations

import mmap
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

from harness.domain import Work
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.results import Owner
from harness.sandbox.model_session import ModelSession
from harness.sandbox.worker_process import CodePlace, CodeTrace

WANTED = ((2.0, 40), (8.0, 10))  # samples of machine code, not of Python, until so many seconds
LEAST_CALLS = 5
USUAL_CALLS = 3  # before the first sampled one
SHORT_US = 5000.0
BETWEEN_PAIRS = (4.0, 1.0)  # sampled calls on average, of short and of long ones
LEAST_SAMPLES, SURE_SAMPLES = 5, 30  # for a share, and to say that candidate code never runs
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

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._instants: list[list[CodeTrace]] = []
        self._windows_us: list[float] = []  # of usual calls
        self.is_supported = True

    def __len__(self) -> int:
        return len(self._instants)

    def note_call(self, window_us: float) -> None:
        self._windows_us.append(window_us)

    def draws_call(self) -> bool:
        """Draw whether another sampled call follows. The mean number in a row is that of BETWEEN_PAIRS."""
        if not (self.is_supported and self._windows_us):
            return False
        mean = BETWEEN_PAIRS[self._window_us > SHORT_US]
        return self._source.random() < mean / (1 + mean)

    def call(self, session: ModelSession) -> None:
        """Make a sampled call with the staged inputs."""
        traces = session.call_sampled(self._source.random() * self._window_us)
        self.is_supported = traces is not None
        self._instants += [] if traces is None else [traces]

    def make_calls(self, session: ModelSession, reference: Reference, seeds: Iterator[int]) -> None:
        """Make calls until the samples are enough."""
        session.prepare_call(reference.make_inputs(next(seeds)))
        for _ in range(USUAL_CALLS):
            session.stage(reference.make_inputs(next(seeds)))
            self.note_call(session.complete(session.call_timed(take=False)).evaluator_us)
        began_s = time.monotonic()
        while self.is_supported and not self.is_enough(time.monotonic() - began_s):
            session.stage(reference.make_inputs(next(seeds)))
            self.call(session)
        session.await_rest()
        session.disarm()

    @property
    def _window_us(self) -> float:
        return statistics.median(self._windows_us)

    def is_enough(self, spent_s: float = 0.0) -> bool:
        code = sum(any(_name_file(trace[0]) != "other" for trace in traces) for traces in self._instants)
        least = next((least for most_s, least in WANTED if spent_s < most_s), 0)
        return len(self) >= LEAST_CALLS and code >= least

    def share(self, work: Work, built: Sequence[str]) -> tuple[Work | None, bool]:
        """Return the shares, None if unknown, and whether candidate code surely does not run. `work` is the profile's:
        it divides the time in torch's files between torch and the libraries inside. `built` are the evaluator's builds.
        """
        counts = self._count_owners(built)
        code = counts["custom"] + counts["torch"] + counts["library"]
        if not self.is_supported or code < LEAST_SAMPLES:
            return None, False
        custom, torchs, library = (counts[owner] / code for owner in ("custom", "torch", "library"))
        known = work.torch + work.library
        inside = torchs * work.library / known if known else 0.0
        shared = replace(work, custom=custom, torch=torchs - inside, library=library + inside, other=0.0)
        return shared, counts["custom"] == 0 and code >= SURE_SAMPLES

    def _count_owners(self, built: Sequence[str]) -> Counter[Owner]:
        """An instant in which one thread runs others' code is theirs, whatever the candidate's threads do."""
        owners = _Owners(built)
        found = [{owners.find(trace) for trace in traces} for traces in self._instants]
        return Counter(next((one for one in ("torch", "library", "custom") if one in each), "other") for each in found)


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
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        return mapped.find(code) >= 0
    return False


@cache
def _list_libraries() -> frozenset[Path]:
    folders = {Path(entry).resolve() for entry in sys.path}
    found = (path for folder in folders if folder.is_dir() for path in folder.rglob("*.so*"))
    return frozenset(path.resolve() for path in found if not _UNLIKELY.search(str(path)))
