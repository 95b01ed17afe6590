import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.client import Client
from harness.domain import NoVerdict, UsageError


@pytest.fixture
def client_of():
    with contextlib.ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(Client(url, **options))


@pytest.fixture
def flaky():
    """A server that answers with the given (status, body) one after the other, the last one for ever; its requests."""
    started = []

    def start(*answers):
        left, requests = list(answers), []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                status, body = left.pop(0) if len(left) > 1 else left[0]
                if status == 0:
                    self.close_connection = True
                    return
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        started.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}", requests

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


DONE = (200, {"verdict": {"outcome": "correct"}})
FAILED = (503, {"task_id": "t", "state": "failed", "error": "the device was lost", "record": None})


def test_a_verdict_arrives_with_either_kind_of_call(server, client_of):
    client = client_of(server.url)
    request = {"candidate": "# correct 2.0\n", "problem": "add", "suite": "tiny"}
    assert client.evaluate(**request)["speedup"] == 2.0
    assert asyncio.run(client.evaluate_async(**request))["speedup"] == 2.0
    assert asyncio.run(client.evaluate_async(**request))["speedup"] == 2.0  # in another event loop


def test_many_async_calls_share_a_client(server, client_of, request_of):
    client = client_of(server.url)

    async def evaluate_all():
        calls = (client.evaluate_async(**request_of(f"correct {n + 2}", task_id=f"t{n}")) for n in range(20))
        return await asyncio.gather(*calls)

    assert [verdict["speedup"] for verdict in asyncio.run(evaluate_all())] == list(range(2, 22))


def test_a_token_is_sent(open_service, client_of, request_of):
    server = open_service(tokens={"secret": "alice"})
    assert client_of(server.url, token="secret").evaluate(**request_of())["outcome"] == "correct"
    with pytest.raises(UsageError, match="token"):
        client_of(server.url).evaluate(**request_of())


def test_an_invalid_request_is_not_repeated(server, client_of, request_of):
    with pytest.raises(UsageError, match="unknown"):
        client_of(server.url).evaluate(**request_of(), unknown=1)
    with pytest.raises(UsageError, match=r"no problem 'adds' in suite 'tiny'; did you mean add\?"):
        client_of(server.url).evaluate(**request_of(problem="adds"))
    with pytest.raises(UsageError, match=r"no suite 'tinny'; did you mean tiny"):
        client_of(server.url).evaluate(**request_of(suite="tinny"))


def test_a_reference_that_fails_has_no_verdict_and_is_not_repeated(server, client_of, request_of):
    with pytest.raises(NoVerdict, match=r"none when it is repeated: .*boom"):
        client_of(server.url).evaluate(**request_of("problem_error"))
    assert len(server.executor.evaluated) == 1


@pytest.mark.parametrize(
    "trouble", [(0, {}), (429, {"detail": "full"}), (502, {"detail": "proxy"}), (202, {"state": "running"}), FAILED]
)
@pytest.mark.quick(2)
def test_trouble_is_retried_with_the_same_task(flaky, client_of, trouble):
    url, requests = flaky(trouble, DONE)
    assert client_of(url).evaluate(candidate="x = 1", problem="add")["outcome"] == "correct"
    assert len(requests) == 2
    assert requests[0] == requests[1]
    url, requests = flaky(trouble, DONE)
    assert asyncio.run(client_of(url).evaluate_async(candidate="x", problem="add"))["outcome"] == "correct"


@pytest.mark.parametrize("script", ["harness_error", "not_run", "raise"])
def test_repeated_faults_of_the_service_raise_and_never_score(server, client_of, request_of, script):
    with pytest.raises(NoVerdict, match="after 1 failures"):
        client_of(server.url, max_failures=1).evaluate(**request_of(script))


def test_a_fault_is_repeated_as_often_as_allowed(flaky, client_of):
    url, requests = flaky(FAILED)
    with pytest.raises(NoVerdict, match="the device was lost"):
        client_of(url, max_failures=2).evaluate(candidate="x", problem="add")
    assert len(requests) == 2


def test_waiting_ends(flaky, client_of):
    url, _ = flaky((202, {"state": "running"}))
    with pytest.raises(NoVerdict, match="running"):
        client_of(url, max_wait_s=0.05).evaluate(candidate="x", problem="add")


def test_a_service_that_is_not_there_is_named(client_of):
    with pytest.raises(NoVerdict, match=r"^task \w+ has no verdict .* answers at 127.0.0.1:9 \(.*refused\)"):
        client_of("http://alice:secret@127.0.0.1:9", max_wait_s=0.05).evaluate(candidate="x", problem="add")


def test_an_address_without_a_scheme_is_refused_at_once(client_of):
    with pytest.raises(UsageError, match="http://"):
        client_of("reward-gpu:8700")


@pytest.mark.parametrize("answer", [(200, {"hello": "world"}), (200, ["x"]), (307, {})])
def test_an_answer_of_another_kind_of_server_is_not_repeated(flaky, client_of, answer):
    url, requests = flaky(answer)
    with pytest.raises(UsageError, match="no evaluation service"):
        client_of(url).evaluate(candidate="x", problem="add")
    assert len(requests) == 1


def test_the_address_comes_from_the_environment(server, request_of, monkeypatch):
    monkeypatch.setenv("HARNESS_SERVICE_URL", server.url)
    with Client() as client:
        assert client.evaluate(**request_of())["outcome"] == "correct"
    monkeypatch.delenv("HARNESS_SERVICE_URL")
    with pytest.raises(UsageError, match="HARNESS_SERVICE_URL"):
        Client()


def test_client_and_reward_load_no_heavy_package():
    code = (
        "import sys, harness.client, harness.service.reward; print({'torch', 'pandas', 'fastapi'} & set(sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "set()"
