"""Records the GPU work of a call: of a baseline for all candidates of a problem, of a rival, of a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

from harness.domain import HarnessError
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.model_workers import blaming_baseline
from harness.evaluation.timing.apart import time_calls, warm_up
from harness.evaluation.timing.block_statistics import GIVEN
from harness.evaluation.timing.chosen_calls import draw_seed
from harness.sandbox.gpu.recording import KeptBaseline, NotReplayable, Recording
from harness.sandbox.gpu.window import WindowSession
from harness.sandbox.model_session import ModelSession
from harness.sandbox.workers_ahead import WorkersAhead

Open = Callable[[], AbstractContextManager[ModelSession]]


@contextmanager
def keep_baseline(
    name: str,
    start: Open,
    reference: Reference,
    seeds: Iterator[int],
    ahead: WorkersAhead,
    *,
    may_read_back: bool = True,
) -> Iterator[KeptBaseline]:
    """Record, and time whole calls, once per reference. No candidate may run. Raises NotReplayable, BaselineFailure."""
    if name not in reference.baselines:
        with start() as session:
            try:
                with blaming_baseline():
                    warm_up(session, reference, seeds)
                    ahead.finish()
                    call_us = time_calls(session, reference, seeds).median_us
                recording = _record(session, reference, seeds, may_read_back=may_read_back)
                reference.baselines[name] = KeptBaseline(recording, call_us)
            except NotReplayable as reason:
                reference.baselines[name] = reason
    kept = reference.baselines[name]
    if isinstance(kept, NotReplayable):
        raise kept
    yield kept


@contextmanager
def record_rival(start: Open, reference: Reference, seeds: Iterator[int]) -> Iterator[KeptBaseline]:
    with start() as session, closing(KeptBaseline(_record(session, reference, seeds))) as kept:
        yield kept


@contextmanager
def record_call(
    start: Open, reference: Reference, seeds: Iterator[int], *, may_read_back: bool = False
) -> Iterator[Recording]:
    """Record a call; its memory is kept until the end. Raises NotReplayable."""
    with start() as session, closing(_record(session, reference, seeds, may_read_back=may_read_back)) as recording:
        yield recording


def _record(
    session: ModelSession, reference: Reference, seeds: Iterator[int], *, may_read_back: bool = False
) -> Recording:
    if not isinstance(session, WindowSession):
        raise HarnessError("replays need a GPU session")
    seed = draw_seed(reference, seeds, GIVEN)
    return replace(session.record(reference.make_timed_inputs(seed), may_read_back=may_read_back), seed=seed)
