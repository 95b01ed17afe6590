"""What is left of a forkserver that was lost or interrupted."""

from __future__ import annotations

import os
import signal

import pytest

from harness.protocol.process_tree import children_of
from harness.sandbox.forkserver import Forkserver
from harness.sandbox.policy import probe_isolation
from harness.sandbox.worker_process import WorkerLimits

LIMITS = WorkerLimits()


@pytest.fixture
def forkserver():
    made = Forkserver(probe_isolation())
    yield made
    made.close()


def _lose(forkserver):
    forkserver.abort()
    forkserver._process.wait()


@pytest.mark.slow
def test_a_forkserver_that_was_killed_while_idle_is_restarted(bench):
    forkserver = bench.forkserver  # of other tests, too: to start one takes 2 s of CPU time
    with forkserver.spawn(LIMITS):
        pass
    _lose(forkserver)
    with forkserver.spawn(LIMITS) as worker:
        assert worker._outer_pid in children_of(forkserver._outer_id)


@pytest.mark.slow
def test_ending_a_lost_worker_spares_processes_that_reuse_its_id(forkserver):
    lost = forkserver.spawn(LIMITS)
    _lose(forkserver)
    with forkserver.spawn(LIMITS) as worker:
        lost.end()
        assert worker._outer_pid in children_of(forkserver._outer_id)


@pytest.mark.slow
def test_an_interrupted_start_is_ended_by_close():
    def interrupt(*_):
        raise KeyboardInterrupt

    before, usual = children_of(os.getpid()), signal.signal(signal.SIGALRM, interrupt)
    forkserver = Forkserver(probe_isolation())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)  # the start imports torch
        with pytest.raises(KeyboardInterrupt):
            forkserver.spawn(LIMITS)
        forkserver.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
    assert set(children_of(os.getpid())) <= set(before)
