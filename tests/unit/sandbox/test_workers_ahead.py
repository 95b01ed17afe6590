"""Workers that wait for their program."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
import torch

from harness.domain import HarnessError
from harness.languages.torch import INDUCTOR
from harness.protocol.process_tree import children_of, threads_of
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.policy import probe_isolation
from harness.sandbox.worker_process import WorkerLimits
from harness.sandbox.workers_ahead import WorkersAhead

# Without a GPU, a waiting worker has no context; all else is the same.
STAND_IN = SimpleNamespace(has_contexts=True, torch_device=torch.device("cpu"))
LIMITS = WorkerLimits()


@pytest.fixture
def ahead(bench):
    made = WorkersAhead(bench.forkserver, STAND_IN)
    yield made
    made.release()


def _ids(ahead):
    return [start.result()._outer_pid for start in ahead._waiting]


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_worker_that_waits_is_the_next_one(ahead):
    ahead.prepare(2)
    ahead.finish()
    first, second = _ids(ahead)
    with ahead.spawn(LIMITS, ends_beside=False) as worker:
        assert worker._outer_pid == first
        assert _ids(ahead) == [second]


@pytest.mark.slow
def test_no_more_workers_wait_than_asked_for(ahead):
    ahead.prepare(2)
    ahead.prepare(1)
    assert len(_ids(ahead)) == 2


def test_a_worker_that_was_killed_while_it_waited_is_replaced(ahead):
    ahead.prepare(1)
    ahead.finish()
    (waiting,) = _ids(ahead)
    os.kill(ahead._waiting[0].result()._innermost, signal.SIGKILL)
    with ahead.spawn(LIMITS, ends_beside=False) as worker:
        assert worker._outer_pid != waiting
        assert _is_running(worker._outer_pid)


def test_a_worker_whose_device_fails_does_not_wait(bench):
    broken = WorkersAhead(bench.forkserver, SimpleNamespace(has_contexts=True, torch_device=torch.device("cuda:77")))
    broken.prepare(1)
    assert broken._waiting[0].result() is None
    with broken.spawn(LIMITS, ends_beside=False) as worker:
        assert _is_running(worker._outer_pid)


def test_workers_that_wait_end_on_release(ahead):
    ahead.prepare(2)
    ahead.finish()
    ids = _ids(ahead)
    assert ahead.some_wait
    ahead.release()
    assert not any(map(_is_running, ids))
    assert not ahead.some_wait


def test_finish_waits_for_the_ends(ahead):
    with ahead.spawn(LIMITS, ends_beside=True) as worker:
        pass
    ahead.finish()
    assert not _is_running(worker._outer_pid)


def test_stop_drops_the_starts_that_have_not_begun(ahead):
    ahead.prepare(30)
    ahead.stop()
    assert len(ahead._waiting) < 30


def test_no_worker_waits_without_a_gpu(bench):
    ahead = WorkersAhead(bench.forkserver, SimpleNamespace(has_contexts=False, torch_device=torch.device("cpu")))
    ahead.prepare(2)
    assert not ahead._waiting
    with ahead.spawn(LIMITS, ends_beside=True) as worker:
        pass
    assert not _is_running(worker._outer_pid)


class _Refusing:
    def __init__(self, error):
        self.error = error

    def spawn(self, limits):
        raise self.error


@pytest.mark.parametrize("kind", [HarnessError, FileNotFoundError, RuntimeError])
def test_a_start_that_fails_is_tried_again_when_a_worker_is_needed(kind):
    ahead = WorkersAhead(_Refusing(kind("no more processes")), STAND_IN)
    ahead.prepare(1)
    ahead.finish()
    with pytest.raises(kind, match="no more processes"):
        ahead.spawn(LIMITS, ends_beside=False)
    ahead.finish()
    assert not ahead.some_wait


COMPILED = """
import sys
import torch
from torch import nn

assert ("torch._inductor.compile_fx" in sys.modules) is {preloaded}


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x + y
"""


@pytest.mark.slow
def test_compilers_are_imported_once_for_all_workers(bench):
    forkserver = Forkserver(probe_isolation())
    try:
        ahead = WorkersAhead(forkserver, STAND_IN)
        ahead.prepare(1)
        with bench.open_session(COMPILED.format(preloaded=False), forkserver=forkserver):
            pass
        threads = threads_of(forkserver._outer_id)
        ahead.preload(INDUCTOR)
        assert not ahead.some_wait  # forked without the compiler
        assert children_of(forkserver._outer_id) == []
        assert threads_of(forkserver._outer_id) == threads
        with bench.open_session(COMPILED.format(preloaded=True), forkserver=forkserver):
            pass
        assert not forkserver.preload(INDUCTOR)
    finally:
        forkserver.close()
