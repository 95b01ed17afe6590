"""Evaluations on several nodes of a Ray cluster that lose a node again and again, and how they scale from 1 to 4 nodes.

The nodes are simulated on this machine (ray.cluster_utils). Evaluations sleep for --service-s instead of computing,
since the nodes share this machine's cores; with --device small programs without extensions are evaluated.

    python benchmarks/ray_nodes.py [--evaluations 400] [--nodes 4] [--kill-every-s 10] [--device cpu] [--no-scaling]

Goals: 0 lost, 0 doubled, 0 charged to a candidate; 4 nodes at least 3.4 times as fast as one.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from harness.domain import (
    EMULATED,
    NOTHING_AHEAD,
    BuiltAhead,
    Candidate,
    Correctness,
    Evaluation,
    Language,
    Outcome,
    Problem,
    Trial,
)
from harness.executors.cluster.connection import ClusterSettings
from harness.executors.cluster.executor import RayExecutor
from harness.executors.executor import DeviceFacts, ExecutorStatus, Origin, Task, make_task, run_tasks
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings

GOAL_SCALING = 3.4
VERDICTS_BETWEEN = 2  # losses, per node
STORE_BYTES = 80 * 2**20
PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b):
        return a + b

def get_inputs():
    return [torch.randn(8, 9), torch.randn(8, 9)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a {sign} b
"""
LANGUAGES: dict[str, Language] = {"simulated": "cpp", "cpu": "cpp", EMULATED: "cuda"}  # by device
EXPECTED = {"+": Outcome.CORRECT, "-": Outcome.WRONG_VALUE}


class SimulatedExecutor:
    """Takes `HARNESS_SERVICE_S` per evaluation, one at a time."""

    capacity = 1

    def __init__(self, settings: LocalSettings) -> None:
        self._service_s = float(os.environ["HARNESS_SERVICE_S"])
        self._pool = ThreadPoolExecutor(1)

    def devices(self, language: Language) -> tuple[DeviceFacts, ...]:
        return (DeviceFacts(name="cpu", chip="simulated"),)

    def submit(self, task: Task, ahead: BuiltAhead = NOTHING_AHEAD) -> Future[Evaluation]:
        return self._pool.submit(self._evaluate, task)

    def status(self) -> ExecutorStatus:
        return ExecutorStatus(building=0, builds={}, devices=())

    def close(self) -> None:
        self._pool.shutdown()

    def _evaluate(self, task: Task) -> Evaluation:
        time.sleep(self._service_s)
        outcome = EXPECTED[find_sign(task)]
        trial = Trial(distribution="simulated", passed=outcome is Outcome.CORRECT)
        return Evaluation(
            subject=task.subject, outcome=outcome, correctness=Correctness(trials=(trial,), weights="none")
        )


def find_sign(task: Task) -> str:
    return "+" if task.subject.sample % 2 else "-"


def make_tasks(count: int, device: str) -> list[Task]:
    problem, language = Problem(name="add", suite="benchmark", source=PROBLEM), LANGUAGES[device]
    programs = {
        sign: Candidate(source=CANDIDATE.format(sign=sign), language=language, rule="file") for sign in EXPECTED
    }
    origins = [Origin(run="ray", sample=number, model="-") for number in range(count)]
    return [make_task(problem, programs["-+"[one.sample % 2]], one, language=language) for one in origins]


class SimulatedNodes:
    """The head has no device."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False},
        )
        self._nodes = [self._add() for _ in range(count)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def replace_one(self) -> None:
        """Kills a node without warning, and starts another."""
        node = self._nodes.pop(random.randrange(len(self._nodes)))
        self._cluster.remove_node(node, allow_graceful=False)
        self._nodes.append(self._add())

    def close(self) -> None:
        self._cluster.shutdown()

    def _add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)


@contextmanager
def open_cluster(nodes: int, cache: Path, device: str) -> Iterator[tuple[SimulatedNodes, RayExecutor]]:
    cluster = SimulatedNodes(nodes)
    try:
        opened, used = (SimulatedExecutor, "cpu") if device == "simulated" else (LocalExecutor, device)
        settings = LocalSettings(cache=cache, device=used, fidelity="correctness")
        with RayExecutor(ClusterSettings(address=cluster.address), settings, opened) as executor:
            executor.devices(LANGUAGES[device])
            yield cluster, executor
    finally:
        cluster.close()


def run(executor: RayExecutor, tasks: list[Task], report: Callable[[Task, Evaluation], None]) -> float:
    """Seconds."""
    began_s = time.monotonic()
    run_tasks(executor, tasks, report)
    return time.monotonic() - began_s


def lose_nodes(options: argparse.Namespace, cache: Path) -> bool:
    tasks, found, kills, before = make_tasks(options.evaluations, options.device), list[tuple[Task, Evaluation]](), 0, 0
    news = SimpleQueue[None]()  # a verdict, or the end

    def report(task: Task, evaluation: Evaluation) -> None:
        found.append((task, evaluation))
        news.put(None)

    with open_cluster(options.nodes, cache, options.device) as (cluster, executor), ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, executor, tasks, report)
        running.add_done_callback(lambda _: news.put(None))
        killed_s = time.monotonic()
        while not running.done():
            news.get()
            is_due = time.monotonic() - killed_s >= options.kill_every_s
            # With fewer verdicts between losses a slow machine only starts nodes.
            if is_due and before + VERDICTS_BETWEEN * options.nodes <= len(found) < len(tasks):
                cluster.replace_one()  # in the main thread: Ray sets signal handlers
                kills, before, killed_s = kills + 1, len(found), time.monotonic()
        seconds = running.result()
    times = Counter(task.subject.sample for task, _ in found)
    wrong = [one for task, one in found if one.outcome is not EXPECTED[find_sign(task)]]
    lost, doubled = len(tasks) - len(times), sum(count > 1 for count in times.values())
    kind = f"simulated ({options.service_s:g} s)" if options.device == "simulated" else options.device
    print(
        f"{len(tasks)} {kind} evaluations on {options.nodes} nodes in {seconds:.0f} s, {kills} nodes killed: "
        f"{lost} lost, {doubled} doubled, {len(wrong)} charged to a candidate"
    )
    for one in wrong:
        print(f"sample {one.subject.sample}: {one.outcome.value}, {one.message}")
    return not (lost or doubled or wrong)


def scale(options: argparse.Namespace, cache: Path) -> bool:
    seconds = {}
    for nodes in (1, 2, 4):
        with open_cluster(nodes, cache, "simulated") as (_, executor):
            seconds[nodes] = run(executor, make_tasks(options.evaluations // 4, "simulated"), lambda *_: None)
        print(
            f"{nodes} nodes: {options.evaluations // 4} simulated evaluations in {seconds[nodes]:.1f} s, "
            f"{seconds[1] / seconds[nodes]:.2f} times one node"
        )
    return seconds[1] / seconds[4] >= GOAL_SCALING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=400)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--kill-every-s", type=float, default=10.0, help="at least")
    parser.add_argument("--service-s", type=float, default=1.0, help="seconds of a simulated evaluation")
    parser.add_argument("--device", choices=LANGUAGES, default="simulated")
    parser.add_argument("--no-scaling", dest="scaling", action="store_false")
    options = parser.parse_args()
    logging.getLogger("ray").setLevel(logging.ERROR)
    os.environ["HARNESS_SERVICE_S"] = str(options.service_s)  # the nodes inherit it
    with tempfile.TemporaryDirectory() as cache:
        met = [lose_nodes(options, Path(cache))]
        if options.scaling:
            met.append(scale(options, Path(cache)))
    print(f"goals: {'met' if all(met) else 'MISSED'}")
    raise SystemExit(not all(met))


if __name__ == "__main__":
    main()
