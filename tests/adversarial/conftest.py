"""Kinds of isolation, for tests that try each of them; and a quick evaluation of plain programs."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def isolation_of():
    """The isolation of a kind, skipping where this machine does not allow it: "private_root" (made in namespaces),
    "filters" (Landlock and seccomp alone), "nothing" (limits alone)."""
    from harness.sandbox.policy import Isolation, explain_start_failure

    def choose(kind):
        isolation = Isolation(namespaces=kind == "private_root", filters=kind != "nothing")
        if explain_start_failure(isolation):
            pytest.skip(f"this machine does not allow this isolation: {explain_start_failure(isolation)}")
        return isolation

    return choose


@pytest.fixture(scope="session")
def open_isolated_bench(open_bench, isolation_of):
    """A bench with the isolation of a kind."""
    from harness.sandbox.worker_process import WorkerLimits

    def make(kind):
        bench = open_bench(isolation=isolation_of(kind), call_s=60.0)
        if kind == "filters":
            bench.forkserver.spawn(WorkerLimits()).end()
            if "landlock" not in bench.forkserver.isolation:
                pytest.skip(f"needs a kernel with Landlock; there is only {bench.forkserver.isolation}")
        return bench

    return make


@pytest.fixture(scope="session")
def evaluate(open_bench):
    """Evaluates a candidate on a problem, both as source."""
    from harness.problems.discovery import parse_problem

    bench = open_bench()

    def run(candidate, problem, **options):
        return bench.evaluate(candidate, parse_problem(problem, Path("toy.py"), "mine"), **options)

    return run
