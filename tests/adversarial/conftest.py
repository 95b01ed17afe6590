"""Kinds of walls, for tests that try each of them."""

import pytest


@pytest.fixture(scope="session")
def walls_of():
    """The walls of a kind, skipping where this machine does not allow them: "bubblewrap", "private_root" (made in
    namespaces, without it), "filters" (Landlock and seccomp alone), "nothing" (limits alone)."""
    from harness.sandbox.policy import Confinement, explain_start_failure, probe_confinement

    def choose(kind):
        if kind == "bubblewrap":
            walls = probe_confinement()
            if walls.bubblewrap is None:
                pytest.skip(f"needs bubblewrap: {walls.weakness}")
            return walls
        walls = Confinement(bubblewrap=None, namespaces=kind == "private_root", filters=kind != "nothing")
        if explain_start_failure(walls):
            pytest.skip(f"this machine does not allow these walls: {explain_start_failure(walls)}")
        return walls

    return choose


@pytest.fixture(scope="session")
def open_walled_bench(open_bench, walls_of):
    """A bench behind the walls of a kind."""
    from harness.sandbox.worker_process import WorkerLimits

    def make(kind):
        bench = open_bench(confinement=walls_of(kind), call_s=60.0)
        if kind == "filters":
            bench.forkserver.spawn(WorkerLimits()).end()
            if "landlock" not in bench.forkserver.isolation:
                pytest.skip(f"needs a kernel with Landlock; there is only {bench.forkserver.isolation}")
        return bench

    return make
