import base64
import contextlib
import http.client
import json
import logging
import socket
import time
import urllib.error
import urllib.request
from contextlib import closing
from itertools import repeat
from urllib.parse import urlsplit

import pytest

from harness.service.server import JsonLines

TOKENS = {"secret-a": "alice", "secret-b": "bob"}


@pytest.mark.parametrize("token", ["wrong", "secret-", "secret-aa", "sécret", "\t"])
def test_a_wrong_token_opens_nothing(open_service, request_of, token):
    server = open_service(tokens=TOKENS)
    for method, path in (("POST", "/v1/evaluations"), ("GET", "/metrics"), ("GET", "/queue/status"), ("GET", "/none")):
        answer = server.call(method, path, request_of() if method == "POST" else None, token=token)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert sum(server.service.queue.count().values()) == 0


def test_a_token_may_be_the_password_of_the_address(open_service, request_of):
    server = open_service(tokens=TOKENS)
    for name in ("alice", "", "anyone"):
        basic = base64.b64encode(f"{name}:secret-b".encode()).decode()
        head = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
        body = json.dumps(request_of(task_id=f"t-{name}")).encode()
        request = urllib.request.Request(f"{server.url}/v1/evaluations?wait=30", body, head)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        assert server.service.queue.find("bob", f"t-{name}") is not None


def test_a_wrong_password_opens_nothing(open_service):
    server = open_service(tokens=TOKENS)
    for value in ("Basic", "Basic !!", "Basic c2VjcmV0LWE=", "Basic OnNlY3JldA==", "Digest secret-a"):
        request = urllib.request.Request(f"{server.url}/metrics", headers={"Authorization": value})
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=60)


def test_health_and_documentation_need_no_token(open_service):
    server = open_service(tokens=TOKENS)
    server.token = ""
    assert [server.get(path).status for path in ("/health", "/docs", "/openapi.json")] == [200, 200, 200]


def test_a_client_sees_only_its_own_tasks(open_service, request_of):
    server = open_service(tokens=TOKENS)
    server.post("/v1/evaluations?wait=30", request_of())
    for path in ("/v1/evaluations/t1", "/status/t1", "/results/t1", "/v1/evaluations/t1/events"):
        assert server.get(path, token="secret-b").status == 404
    assert server.delete("/tasks/t1", token="secret-b").status == 404
    assert server.post("/v1/evaluations?wait=30", request_of("wrong_value"), token="secret-b").status == 200
    assert server.get("/v1/evaluations/t1").body["verdict"]["outcome"] == "correct"


def test_a_body_over_the_limit_is_refused_before_it_is_read(shared_server):
    address = urlsplit(shared_server.url)
    with socket.create_connection((address.hostname, address.port)) as line:
        head = "POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: {100 * 2**20}\r\n\r\n".encode())
        assert b" 413 " in line.recv(100)


def test_client_that_sends_its_whole_body_first_sees_the_refusal(open_service):
    server = open_service(tokens=TOKENS)
    for token, mib, status in (("secret-a", 100, 413), ("wrong", 10, 401)):
        assert server.post("/v1/evaluations", raw=b"x" * mib * 2**20, token=token).status == status


def test_a_connection_without_a_whole_head_is_closed(open_service):
    address = urlsplit(open_service(head_s=0.2).url)
    for head in (b"", b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\n", b"G"):
        with socket.create_connection((address.hostname, address.port), timeout=60) as line:
            line.sendall(head)
            assert line.recv(100) == b""


def test_a_second_head_that_does_not_end_closes_the_connection(open_service):
    address = urlsplit(open_service(head_s=0.2).url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in line.recv(10_000)
        line.sendall(b"G")
        while line.recv(10_000):
            pass


def test_a_request_that_waits_for_its_verdict_is_not_closed(open_service, request_of):
    server = open_service(head_s=0.1, body_s=0.1)
    assert server.post("/v1/evaluations?wait=0.5", request_of("wait")).status == 202


def test_a_body_that_does_not_arrive_is_answered_and_forgotten(open_service):
    server = open_service(body_s=0.2)
    with send_half(server) as line:
        assert b" 408 " in line.recv(100)


def test_bodies_of_all_requests_together_are_limited(open_service, request_of):
    server = open_service(max_bodies_bytes=1500)
    with send_half(server), send_half(server) as second:
        assert b" 503 " in second.recv(100)
        assert server.post("/v1/evaluations", raw=b"x" * 1000).status == 503
    for _ in range(3):  # their memory is free once they are closed
        assert server.post("/v1/evaluations?wait=30", request_of()).status == 200


def test_more_connections_than_allowed_are_refused(open_service):
    server = open_service(max_connections=2)
    address = urlsplit(server.url)
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection((address.hostname, address.port))) for _ in range(3)]
        assert b" 503 " in lines[2].recv(100)
    assert server.get("/health").status == 200


@contextlib.contextmanager
def send_half(server):
    """A connection with 1000 bytes of a longer body."""
    address = urlsplit(server.url)
    head = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.sendall(head + b"x" * 1000)
        yield line


@pytest.mark.parametrize("chunked", [True, False])
def test_a_client_that_sends_a_body_over_the_limit_reads_the_refusal(shared_server, chunked):
    address = urlsplit(shared_server.url)
    size = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(5 * 2**20)}

    def send_slowly():
        for _ in range(5):
            time.sleep(0.02)
            yield b"x" * 2**20

    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=60)) as line:
        line.request("POST", "/v1/evaluations", send_slowly(), size, encode_chunked=chunked)
        assert line.getresponse().status == 413


def test_an_endless_body_is_not_read_to_its_end(shared_server):
    address = urlsplit(shared_server.url)
    with (
        closing(http.client.HTTPConnection(address.hostname, address.port, timeout=60)) as line,
        pytest.raises((ConnectionResetError, BrokenPipeError)),
    ):
        line.request("POST", "/v1/evaluations", repeat(b"x" * 2**20), encode_chunked=True)


def test_a_body_of_the_limit_is_accepted(open_service, request_of):
    body = json.dumps(request_of()).encode()
    server = open_service(max_body_bytes=len(body))
    assert server.post("/v1/evaluations?wait=30", raw=body).status == 200
    refused = server.post("/v1/evaluations", raw=body + b" ")
    assert (refused.status, refused.headers.get("Retry-After")) == (413, None)


def test_full_queue_refuses_a_whole_batch_with_retry_after(open_service, request_of, gym_request_of):
    server = open_service(max_queued=2)
    server.executor.capacity = 0
    for name in ("t1", "t2"):
        assert server.post("/v1/evaluations", request_of(task_id=name)).status == 202
    answer = server.post("/v1/evaluations", request_of(task_id="t3"))
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert server.post("/v1/evaluations", request_of(task_id="t1")).status == 202  # accepted before
    tasks = [gym_request_of(task_id=name) for name in ("t4", "t5")]
    assert server.post("/evaluate/batch", {"tasks": tasks}).status == 429
    assert server.service.queue.count()["queued"] == 2


def test_one_client_cannot_fill_the_queue_of_another(open_service, request_of):
    server = open_service(tokens=TOKENS, max_per_client=1)
    server.executor.capacity = 0
    assert server.post("/v1/evaluations", request_of(task_id="t1")).status == 202
    assert server.post("/v1/evaluations", request_of(task_id="t2")).status == 429
    assert server.post("/v1/evaluations", request_of(task_id="t2"), token="secret-b").status == 202


def test_a_client_that_disconnects_loses_nothing(server, request_of):
    address = urlsplit(server.url)
    line = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    body = json.dumps(request_of("wait"))
    line.request("POST", "/v1/evaluations?wait=60", body, {"Content-Type": "application/json"})
    server.await_state("t1", "running")
    line.close()
    server.executor.release.set()
    assert server.get("/v1/evaluations/t1?wait=30").body["verdict"]["outcome"] == "wrong_value"


def test_metrics_count_requests_verdicts_and_failures(server, request_of):
    server.post("/v1/evaluations?wait=30", request_of())
    server.post("/v1/evaluations?wait=30", request_of("raise", task_id="t2"))
    text = server.get("/metrics").body
    assert 'harness_verdicts_total{device="cpu",language="cpp",outcome="correct"} 1.0' in text
    assert "harness_failures_total 1.0" in text
    assert 'harness_tasks{state="done"} 1.0' in text
    assert 'harness_requests_total{method="POST",route="/v1/evaluations",status="200"} 1.0' in text
    assert "harness_queue_wait_seconds_count 2.0" in text
    assert "harness_evaluation_seconds_count 1.0" in text


def test_unknown_paths_share_one_metric(server):
    for path in ("/a", "/b", "/c"):
        server.get(path)
    assert 'harness_requests_total{method="GET",route="unknown",status="404"} 3.0' in server.get("/metrics").body


def test_invented_methods_share_one_metric(server):
    for method in ("A", "B", "C"):
        server.call(method, "/health")
    assert 'harness_requests_total{method="other",route="/health",status="405"} 3.0' in server.get("/metrics").body


def test_metrics_count_the_devices(server):
    assert "harness_devices 1.0" in server.get("/metrics").body


def test_log_lines_are_json_without_the_program(server, request_of, caplog):
    with caplog.at_level(logging.INFO, "harness.service"):
        server.post("/v1/evaluations?wait=30", request_of(candidate="# correct 2.0\nSECRET = 1\n"))
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    assert {"request", "evaluated"} <= {line["event"] for line in lines}
    assert [line["outcome"] for line in lines if line["event"] == "evaluated"] == ["correct"]
    assert "SECRET" not in str(lines)
