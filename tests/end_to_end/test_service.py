"""`harness serve` in a process of its own, with real evaluations on the CPU."""

import json
import re
import signal
import socket
import sqlite3
import urllib.error
import urllib.request

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

HEAD = "import torch\nfrom torch import nn\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n        return "
REFERENCE = f"""
{HEAD.replace("ModelNew", "Model")}a + b
def get_inputs():
    return [torch.randn(64, 65), torch.randn(64, 65)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def serve(start_harness, tiny_suite, tmp_path):
    """Starts the service; returns its process and address."""

    def start(*options):
        fixed = (
            "--port",
            "0",
            "--device",
            "cpu",
            "--queue-dir",
            tmp_path / "queue",
            "--problems-dir",
            tiny_suite.parent,
        )
        process = start_harness(["serve", *fixed, "--fidelity", "correctness", *options])
        for line in process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                return process, found[0]
        raise AssertionError(f"no address: exit code {process.wait()}")

    return start


def call(url, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} | (headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def submit(address, name, source, wait=0):
    body = {"task_id": name, "candidate": source, "problem": "add", "suite": "tiny"}
    return call(f"{address}/v1/evaluations?wait={wait}", body)


def read(address, name):
    """Its verdict's outcome, waiting as long as it takes."""
    while True:
        status, body = call(f"{address}/v1/evaluations/{name}?wait=60")
        if status != 202:
            return status, body["verdict"] and body["verdict"]["outcome"]


@pytest.mark.slow
def test_real_programs_get_their_verdicts_and_a_stopped_service_ends_with_0(serve):
    process, address = serve()
    assert submit(address, "right", f"{HEAD}a + b\n")[0] == 202
    assert submit(address, "wrong", f"{HEAD}a - b\n")[0] == 202
    assert submit(address, "nul", f"{HEAD}a + b\n\0")[0] == 202
    assert [read(address, name) for name in ("right", "wrong", "nul")] == [
        (200, "correct"), (200, "wrong_value"), (200, "load_error"),
    ]  # fmt: skip
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (0, -signal.SIGTERM)


@pytest.mark.slow
def test_a_known_solution_is_named_in_the_verdict(serve, tmp_path):
    steps = "".join(f"        extra = torch.mul(a, {number}) - {number} * a\n" for number in range(40))
    program = f"{HEAD.removesuffix('        return ')}{steps}        return a + b\n"
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "solution.py").write_text(f"# best so far\n{program}")
    _, address = serve("--known-solutions", tmp_path / "known")
    verdict = submit(address, "copy", program, wait=60)[1]["verdict"]
    assert [one["severity"] for one in verdict["findings"] if one["check"] == "contaminated"] == ["warning"]


@pytest.mark.slow
@pytest.mark.parametrize(("option", "reads"), [("--no-trusted-clients", False), ("--trusted-clients", True)])
def test_reference_reads_tokens_only_if_clients_are_trusted(serve, tmp_path, option, reads):
    tokens = tmp_path / "tokens"
    tokens.write_text("alice secret-a\nbob secret-b\n")
    _, address = serve("--tokens", tokens, option)
    for body in (f"raise RuntimeError(open({str(tokens)!r}).read())", "return a + b"):
        request = {
            "task_id": str(len(body)),
            "candidate": f"{HEAD}a + b\n",
            "reference": REFERENCE.replace("return a + b", body),
            "requires_kernel": False,
        }
        status, answer = call(f"{address}/v1/evaluations?wait=60", request, {"Authorization": "Bearer secret-b"})
        if status == 422:
            assert ("secret-a" in answer["error"]) == reads
        else:
            assert (status, answer["verdict"]["outcome"]) == (200, "correct")


@pytest.mark.slow
def test_failing_reference_is_an_invalid_request_and_renamed_class_is_accepted(serve):
    _, address = serve()
    body = {"kernel_code": f"{HEAD}a + b\n", "reference_code": REFERENCE, "timeout": 300}
    good = {name: text.replace("Model", "Net") if "code" in name else text for name, text in body.items()}
    answer = call(f"{address}/evaluate", good | {"task_id": "good", "entry_point": "Net"})[1]
    assert (answer["error_message"].count("no custom kernel"), answer["metadata"]["outcome"]) == (1, "rejected")
    broken = body | {
        "task_id": "bad",
        "reference_code": REFERENCE.replace("return a + b", "raise RuntimeError('boom')"),
    }
    status, answer = call(f"{address}/evaluate", broken)
    assert (status, answer["status"], "boom" in answer["error_message"]) == (200, "failed", True)
    assert call(f"{address}/v1/evaluations/bad")[0] == 422


@pytest.mark.slow
def test_accepted_tasks_get_one_verdict_despite_repeated_kills(serve, tmp_path):
    names = [f"task-{number}" for number in range(12)]
    process, address = serve()
    for number, name in enumerate(names):
        assert submit(address, name, f"{HEAD}a {'+-'[number % 2]} b  # {number}\n")[0] == 202
    for kill in range(10):
        read(address, names[kill])
        process.kill()
        process.wait()
        process, address = serve()
    assert [read(address, name) for name in names] == [(200, "correct"), (200, "wrong_value")] * 6
    with sqlite3.connect(tmp_path / "queue" / "tasks.db") as connection:
        assert connection.execute("SELECT count(*) FROM tasks WHERE state = 'done'").fetchone() == (12,)
    connection.close()


@pytest.mark.slow
def test_second_service_on_the_same_queue_is_refused(serve, start_harness, tmp_path):
    _, address = serve()
    second = start_harness(["serve", "--port", "0", "--queue-dir", tmp_path / "queue"])
    assert second.wait(120) == 2
    assert "another service uses the queue" in second.stderr.read()
    assert call(f"{address}/health")[0] == 200


def test_a_service_without_tokens_listens_to_this_machine_only(start_harness):
    process = start_harness(["serve", "--host", "0.0.0.0"])
    assert process.wait(60) == 2
    assert "HARNESS_SERVICE_TOKEN" in process.stderr.read()


def test_a_port_in_use_is_named(start_harness):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_harness(["serve", "--port", str(port)])
        assert process.wait(60) == 2
    words = f"cannot listen on port {port} of 127.0.0.1: Address already in use; choose another one with --port"
    assert words in process.stderr.read()
