"""`--executor ray` on simulated nodes of this machine: a cluster for all tests, since its start takes seconds."""

import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import harness
from harness.domain import Candidate, Problem, UsageError
from harness.executors import executor as submission
from harness.executors.cluster.connection import ClusterSettings
from harness.executors.cluster.executor import LOOK_EVERY_S, RayExecutor
from harness.executors.executor import Origin, run_tasks
from harness.executors.settings import LocalSettings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings
ROOT = Path(__file__).resolve().parents[2]
HEAD = "import torch\nfrom torch import nn\n"
GOOD = f"{HEAD}class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + b  # NUMBER\n"
WRONG = GOOD.replace("a + b", "a - b")
STORE_BYTES = 80 * 2**20
SHORT = "/tmp"  # paths of sockets have at most 107 bytes

if importlib.util.find_spec("ray") is None:
    pytest.skip("needs the package ray", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head without devices, and two nodes."""
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))  # the locks of devices
        patch.setenv("RAY_TMPDIR", SHORT)
        patch.setenv("PYTHONPATH", str(ROOT))
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False},
        )
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        yield cluster
        cluster.shutdown()


@pytest.fixture
def evaluate_args(cluster, tiny_suite, build_cache):
    """Of `harness`, to evaluate on the cluster."""

    def make(*more):
        where = ["--executor", "ray", "--address", cluster.address, "--cache-dir", build_cache, "--no-time"]
        return ["evaluate", *more, "--problems-dir", tiny_suite.parent, *where]

    return make


def read_outcomes(results_dir):
    if not (results_dir / "harness.db").exists():
        return []
    connection = sqlite3.connect(results_dir / "harness.db")
    try:
        return connection.execute("SELECT sample, outcome FROM evaluations ORDER BY sample").fetchall()
    except sqlite3.OperationalError:  # the table is about to be made
        return []
    finally:
        connection.close()


def test_a_killed_command_goes_on_and_evaluates_nothing_twice(evaluate_args, tmp_path, write_run, start_harness):
    write_run("r", [(GOOD if number % 2 else WRONG).replace("NUMBER", str(number)) for number in range(10)])
    first = start_harness(evaluate_args("r"))
    while not read_outcomes(tmp_path / "results"):
        assert first.poll() is None, first.communicate()
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    second = start_harness(evaluate_args("r", "--json"))
    stdout, stderr = second.communicate(timeout=600)
    assert second.returncode == 0, stderr
    assert read_outcomes(tmp_path / "results") == [(n, "correct" if n % 2 else "wrong_value") for n in range(10)]
    records = [json.loads(line) for line in stdout.splitlines()]
    assert all(record["environment"]["node"] for record in records)


def test_a_node_with_another_version_is_refused_and_both_are_named(
    cluster, evaluate_args, tmp_path, write_run, start_harness
):
    other = tmp_path / "other" / "harness"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.9"\n')
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, env_vars={"PYTHONPATH": str(other.parent)})
    try:
        write_run("r", [GOOD])
        process = start_harness(evaluate_args("r"))
        _, stderr = process.communicate(timeout=600)
    finally:
        cluster.remove_node(node)
    assert process.returncode == 3
    assert f"is refused: harness 0.0.9, here {harness.__version__}" in stderr
    assert read_outcomes(tmp_path / "results") == [(0, "correct")]


def test_no_cluster_is_an_error_that_says_how_to_start_one(tmp_path, write_run, tiny_suite, run_harness):
    write_run("r", [GOOD])
    done = run_harness(
        ["evaluate", "r", "--problems-dir", tiny_suite.parent, "--executor", "ray", "--address", "127.0.0.1:1"]
    )
    assert done.returncode == 3
    assert "no Ray cluster at 127.0.0.1:1" in done.stderr
    assert "ray start --head" in done.stderr


def open_here(cluster, tmp_path, open_executor, device="cpu"):
    settings = LocalSettings(device=device, cache=tmp_path / "cache")
    return RayExecutor(ClusterSettings(address=cluster.address), settings, open_executor)


def make_scripted(on_open="", on_submit=""):
    """Opens an executor that runs these lines and gives every program a verdict. Sent to the nodes as a whole."""

    class Scripted:
        capacity = 1

        def __init__(self, settings):
            exec(on_open)

        def devices(self, language):
            from harness.executors.executor import DeviceFacts

            return (DeviceFacts(name="cpu", chip="scripted"),)

        def submit(self, task, ahead):
            import concurrent.futures

            import ray

            from harness.domain import Evaluation, Outcome

            sample = task.subject.sample
            exec(on_submit, {"sample": sample})
            node = ray.get_runtime_context().get_node_id()
            future = concurrent.futures.Future()
            future.set_result(Evaluation(subject=task.subject, outcome=Outcome.WRONG_VALUE, message=node))
            return future

    return Scripted


def evaluate_scripted(executor, count, language="cpp"):
    found = []
    run_tasks(executor, [make_task(number, language) for number in range(count)], lambda _, one: found.append(one))
    return sorted(found, key=lambda one: one.subject.sample)


def make_task(sample, language="cpp"):
    problem = Problem(name="add", suite="tiny", source="import torch")
    candidate = Candidate(source="pass", language=language, rule="file")
    return submission.make_task(problem, candidate, Origin(run="r", sample=sample, model="m"), language=language)


def test_only_the_program_that_ends_three_devices_is_suspect(cluster, tmp_path):
    deadly = make_scripted(on_submit="import os\nif sample == 3: os._exit(1)")
    with open_here(cluster, tmp_path, deadly) as executor:
        found = evaluate_scripted(executor, 8)
    assert [one.subject.sample for one in found] == list(range(8))
    assert [one.subject.sample for one in found if one.outcome == "suspect"] == [3]
    assert found[3].message.startswith("3 devices were lost")


def test_an_idle_node_that_is_lost_gets_no_more_evaluations(cluster, tmp_path):
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    with open_here(cluster, tmp_path, make_scripted()) as executor:
        evaluate_scripted(executor, 3)
        assert len(executor.status().devices) == 3
        cluster.remove_node(node, allow_graceful=False)
        deadline_s = time.monotonic() + 120
        while len(executor.status().devices) > 2:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        assert {one.outcome for one in evaluate_scripted(executor, 3)} == {"wrong_value"}


def test_a_broken_device_is_taken_out_of_service_and_named(cluster, tmp_path):
    on_open = f"""
from pathlib import Path
from harness.domain import DeviceError
try:
    Path({str(tmp_path / "first")!r}).touch(exist_ok=False)
except FileExistsError:
    pass
else:
    raise DeviceError("Xid 79: the GPU has fallen off the bus")
"""
    with open_here(cluster, tmp_path, make_scripted(on_open=on_open)) as executor:
        found = evaluate_scripted(executor, 4)
        (lost,) = executor.status().lost
    assert len(found) == 4
    assert "Xid 79" in lost


def test_failing_gpus_are_not_reused_and_not_charged_to_the_program(cluster, tmp_path):
    """On a node with three simulated GPUs: two have Xid errors with the first program, then the third's actor dies."""
    on_submit = f"""
import os, ray
from pathlib import Path
from harness.domain import DeviceError
folder, (gpu,) = Path({str(tmp_path)!r}), ray.get_runtime_context().get_accelerator_ids()["GPU"]
faulty = {{path.name for path in folder.glob("faulty-*")}}
if sample == 0 and len(faulty) < 2 or f"faulty-{{gpu}}" in faulty:
    (folder / f"faulty-{{gpu}}").touch()
    raise DeviceError(f"cuda:0 was taken out of service: Xid 79")
if sample > 4 and len(faulty) == 2 and not (folder / "died").exists():
    (folder / "died").touch()
    os._exit(1)
"""
    node = cluster.add_node(num_cpus=1, num_gpus=3, object_store_memory=STORE_BYTES)
    try:
        with open_here(cluster, tmp_path, make_scripted(on_submit=on_submit), device="cuda") as executor:
            found = evaluate_scripted(executor, 24, "cuda")
            lost = executor.status().lost
    finally:
        cluster.remove_node(node)
    assert {one.outcome for one in found} == {"wrong_value"}
    assert (tmp_path / "died").exists()
    assert len(lost) == 2
    assert all("cannot be used: cuda:0 was taken out of service: Xid 79" in one for one in lost)


def test_unknown_chip_is_an_error_that_names_those_of_the_cluster(cluster, tmp_path):
    settings = LocalSettings(device="cpu", cache=tmp_path / "cache")
    where = ClusterSettings(address=cluster.address, chip="H100")
    with RayExecutor(where, settings, make_scripted()) as executor, pytest.raises(UsageError, match="it has scripted"):
        executor.devices("cpp")


def test_a_node_that_is_drained_gets_no_more_evaluations_and_loses_none(cluster, tmp_path):
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    ray = [Path(sys.executable).with_name("ray"), "drain-node", "--address", cluster.address]
    why = [
        "--reason",
        "DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message",
        "test",
        "--deadline-remaining-seconds",
        "600",
    ]
    try:
        with open_here(cluster, tmp_path, make_scripted(on_submit="import time\ntime.sleep(0.3)")) as executor:
            before = evaluate_scripted(executor, 12)
            subprocess.run([*ray, "--node-id", node.node_id, *why], check=True, capture_output=True)
            time.sleep(2 * LOOK_EVERY_S)
            after = evaluate_scripted(executor, 12)
    finally:
        cluster.remove_node(node)
    assert node.node_id in {one.message for one in before}
    assert len({one.message for one in after} - {node.node_id}) == 2
    assert node.node_id not in {one.message for one in after}
    assert [one.subject.sample for one in after] == list(range(12))


def test_the_doctor_lists_chips_isolation_layers_and_certificates_of_the_nodes(cluster, run_harness):
    done = run_harness(["doctor", "--executor", "ray", "--address", cluster.address, "--json"])
    assert done.returncode == 0, done.stderr
    devices = [device for line in done.stdout.splitlines() for device in json.loads(line)["devices"]]
    assert [device["name"] for device in devices] == ["cpu", "cpu"]
    assert all(device["chip"] and "seccomp" in device["isolation"] for device in devices)
    assert all("red-team" in device["certificate"] for device in devices)


@pytest.mark.parametrize(("device", "count"), [("simulated", 20), ("cpu", 8)])
def test_killed_nodes_lose_and_repeat_no_evaluation(tmp_path, device, count):
    benchmark = [sys.executable, ROOT / "benchmarks" / "ray_nodes.py", "--nodes", "2", "--no-scaling"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "RAY_TMPDIR": SHORT, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*benchmark, "--kill-every-s", "0", "--evaluations", str(count), "--device", device],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "0 lost, 0 doubled, 0 charged to a candidate" in done.stdout, done.stdout + done.stderr
    assert " 0 nodes killed" not in done.stdout
