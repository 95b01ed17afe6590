import contextlib
import json
import sqlite3
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.domain import UsageError

MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self):\n        pass\n"


def test_a_verdict_is_the_whole_stored_record(server, request_of):
    answer = server.post("/v1/evaluations?wait=30", request_of())
    assert answer.status == 200
    verdict = answer.body["verdict"]
    assert (verdict["outcome"], verdict["speedup"], verdict["timing"]["speedup_low"]) == ("correct", 2.0, 1.9)
    assert (verdict["problem"], verdict["suite"], verdict["workload"]) == ("add", "tiny", "full")
    assert verdict["environment"]["torch"] == "2.9.0"
    assert verdict["fidelity"] == "full"


def test_a_problem_may_be_named_with_its_suite(server, request_of):
    verdict = server.post("/v1/evaluations?wait=30", request_of(problem="tiny/add", suite="core")).body["verdict"]
    assert (verdict["problem"], verdict["suite"]) == ("add", "tiny")


def test_a_failing_program_is_a_verdict(server, request_of):
    answer = server.post("/v1/evaluations?wait=30", request_of("wrong_value"))
    assert (answer.status, answer.body["verdict"]["outcome"]) == (200, "wrong_value")


@pytest.mark.parametrize("script", ["harness_error", "not_run", "raise"])
def test_a_fault_of_the_harness_is_no_verdict_but_a_server_error(server, request_of, script):
    answer = server.post("/v1/evaluations?wait=30", request_of(script))
    assert (answer.status, answer.body["verdict"], answer.body["state"]) == (503, None, "failed")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_reference_that_fails_is_an_invalid_request(server, request_of):
    for answer in (
        server.post("/v1/evaluations?wait=30", request_of("problem_error")),
        server.get("/v1/evaluations/t1"),
    ):
        assert (answer.status, answer.body["state"], answer.body["verdict"]) == (422, "invalid", None)
        assert (answer.headers["Retry-After"], answer.body["error"][:12]) == (None, "reference.py")


def test_a_named_language_without_a_device_is_an_invalid_request(server, request_of):
    server.executor.languages = ("cuda",)
    answer = server.post("/v1/evaluations?wait=30", request_of(language="torch"))
    assert (answer.status, "no device for language torch" in answer.body["error"]) == (422, True)


@pytest.mark.parametrize(
    ("evaluated", "line", "language"),
    [
        (("cuda",), "y = 1", "cuda"),
        (("cuda",), "from torch.utils.cpp_extension import load_inline", "cuda"),
        (("cpp", "torch"), "import triton", "cpp"),
        (("cpp", "cuda"), "y = 1", "cpp"),
    ],
)
def test_a_program_cannot_choose_a_language_without_a_device(server, request_of, evaluated, line, language):
    server.executor.languages = evaluated
    for name in ("candidate", "completion"):
        program = f"# wrong_value\n{line}\n"
        given = {"candidate": None, name: program if name == "candidate" else f"```python\n{program}{MODEL}```"}
        answer = server.post("/v1/evaluations?wait=30", request_of(**given, task_id=name))
        assert (answer.status, answer.body["verdict"]["language"]) == (200, language)


def test_compile_only_language_has_a_verdict_unless_execution_was_requested(server, request_of):
    server.executor.device, server.executor.languages = "emulated", ("cuda", "tilelang")
    program = "# wrong_value\nimport tilelang\nimport tilelang.language as T\n"
    for language, status in ((None, 200), ("tilelang", 422)):
        body = request_of(candidate=program, workload="full", language=language, task_id=f"t-{language}")
        answer = server.post("/v1/evaluations?wait=30", body)
        assert (answer.status, answer.body["error"] is None) == (status, status == 200)
    assert "needs a GPU" in answer.body["error"]


def test_the_same_request_repeats_what_the_harness_failed(server, request_of):
    server.post("/v1/evaluations?wait=30", request_of("not_run"))
    server.post("/v1/evaluations?wait=30", request_of("not_run"))
    assert len(server.executor.evaluated) == 2


def test_a_repeated_request_returns_the_stored_verdict(server, request_of):
    first = server.post("/v1/evaluations?wait=30", request_of())
    second = server.post("/v1/evaluations?wait=30", request_of())
    assert first.body == second.body
    assert len(server.executor.evaluated) == 1


def test_a_task_id_with_another_program_is_a_conflict(server, request_of):
    server.post("/v1/evaluations", request_of())
    assert server.post("/v1/evaluations", request_of("wrong_value")).status == 409


def test_a_reference_by_text_is_evaluated_and_requires_a_custom_kernel(server, request_of, gym_request_of):
    reference = gym_request_of()["reference_code"]
    answer = server.post("/v1/evaluations?wait=30", request_of(problem=None, reference=reference))
    assert answer.status == 200
    (task,) = server.executor.evaluated
    assert (task.problem.source, task.problem.requires_kernel) == (reference, True)


def test_a_program_is_extracted_from_a_completion(server, request_of):
    program = "# wrong_value\nimport torch\nclass ModelNew(torch.nn.Module):\n    def forward(self):\n        pass\n"
    completion = f"Here it is:\n```python\n{program}```\n"
    answer = server.post("/v1/evaluations?wait=30", request_of(candidate=None, completion=completion))
    assert answer.body["verdict"]["outcome"] == "wrong_value"
    answer = server.post("/v1/evaluations?wait=30", request_of(candidate=None, completion="no idea", task_id="t2"))
    assert answer.body["verdict"]["outcome"] == "no_code"


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": "absent"},
        {"problem": "../tiny/add"},
        {"problem": "/etc/passwd"},
        {"suite": "absent"},
        {"problem": "/tiny/add"},
        {"suite": ".."},
        {"workload": "small"},
        {"unknown": 1},
        {"candidate": None},
        {"completion": "both"},
        {"reference": "x = 1", "problem": None},
        {"reference": "x = \0", "problem": None},
        {"reference": "-" * 200_000 + "1", "problem": None},
        {"candidate": "\ud800"},
        {"candidate": 5},
        {"task_id": "a/b"},
        {"task_id": ""},
        {"language": "cobol"},
        {"priority": "urgent"},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_invalid_request_is_refused_and_queues_nothing(shared_server, request_of, changes):
    answer = shared_server.post("/v1/evaluations", request_of(**changes))
    assert answer.status == 422
    assert isinstance(answer.body["detail"], str)
    assert sum(shared_server.service.queue.count().values()) == 0


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b'{"task_id": 1e999}', b"null"])
def test_a_body_that_is_no_request_is_refused(shared_server, raw):
    assert shared_server.post("/v1/evaluations", raw=raw).status in (400, 422)


def test_a_body_without_its_content_type_is_told_which_one(shared_server, request_of):
    body = json.dumps(request_of()).encode()
    request = urllib.request.Request(f"{shared_server.url}/v1/evaluations", body)  # as curl -d: a form
    with pytest.raises(urllib.error.HTTPError) as refusal, urllib.request.urlopen(request, timeout=60):
        pass
    with refusal.value as answer:
        assert (answer.code, "Content-Type: application/json" in answer.read().decode()) == (422, True)


def test_a_program_with_nul_bytes_reaches_the_evaluator_unchanged(server, request_of):
    answer = server.post("/v1/evaluations?wait=30", request_of(candidate="# load_error\n\0\n"))
    assert answer.body["verdict"]["outcome"] == "load_error"
    assert server.executor.evaluated[0].candidate.source == "# load_error\n\0\n"


def test_a_service_without_references_refuses_them(open_service, request_of, gym_request_of):
    server = open_service(accepts_references=False)
    body = request_of(problem=None, reference=gym_request_of()["reference_code"])
    assert server.post("/v1/evaluations", body).status == 422
    assert server.post("/evaluate", gym_request_of()).status == 422


@pytest.mark.parametrize("trusted", [False, True])
def test_a_reference_is_executed_in_the_service_only_where_clients_are_trusted(
    open_service, request_of, gym_request_of, trusted
):
    server = open_service(trusts_references=trusted)
    reference = f"{gym_request_of()['reference_code']}\ndef get_cases():\n    return 1 / 0\n"
    answer = server.post("/v1/evaluations?wait=30", request_of(problem=None, reference=reference))
    if trusted:
        assert (answer.status, "ZeroDivisionError" in answer.body["detail"]) == (422, True)
    else:
        assert answer.status == 200
        assert [task.owner for task in server.executor.evaluated] == ["anonymous"]


def test_problems_of_suites_are_trusted_and_references_belong_to_their_client(open_service, request_of, gym_request_of):
    server = open_service(tokens={"secret-a": "alice", "secret-b": "bob"})
    by_name, by_text = request_of(), request_of(problem=None, reference=gym_request_of()["reference_code"])
    for token, body in (("secret-a", by_name), ("secret-b", by_text), ("secret-a", by_text | {"task_id": "t2"})):
        assert server.post("/v1/evaluations?wait=30", body, token=token).status == 200
    assert [task.owner for task in server.executor.evaluated] == ["", "bob", "alice"]


def test_events_follow_a_task_to_its_verdict(server, request_of):
    server.post("/v1/evaluations", request_of("wait"))
    with urllib.request.urlopen(f"{server.url}/v1/evaluations/t1/events", timeout=60) as stream:
        states = []
        for line in stream:
            if line.startswith(b"data: "):
                states.append(json.loads(line[6:]))
                server.executor.release.set()
    assert states[0]["state"] in ("queued", "running")
    assert (states[-1]["state"], states[-1]["verdict"]["outcome"]) == ("done", "wrong_value")


def test_a_high_priority_overtakes(open_service, request_of):
    server = open_service()
    server.executor.capacity = 1
    server.post("/v1/evaluations", request_of("wait", task_id="first"))
    for name, priority in (("low", "low"), ("normal", "normal"), ("high", "high")):
        server.post("/v1/evaluations", request_of(f"correct {len(name)}", task_id=name, priority=priority))
    positions = [server.get(f"/v1/evaluations/{name}").body["position"] for name in ("high", "normal", "low")]
    assert positions == [0, 1, 2]
    server.executor.release.set()
    server.get("/v1/evaluations/low?wait=30")
    assert [task.candidate.source.split()[-4] for task in server.executor.evaluated[1:]] == ["4", "6", "3"]


def test_a_deleted_task_is_unknown_and_a_running_one_cannot_be_deleted(open_service, request_of):
    server = open_service()
    server.executor.capacity = 1
    server.post("/v1/evaluations", request_of("wait", task_id="first"))
    server.await_state("first", "running")
    server.post("/v1/evaluations", request_of(task_id="second"))
    assert server.delete("/v1/evaluations/first").status == 409
    assert server.delete("/v1/evaluations/second").status == 200
    assert server.get("/v1/evaluations/second").status == 404
    assert server.delete("/v1/evaluations/second").status == 404


def test_a_request_that_waits_learns_that_its_task_was_deleted(server, request_of):
    server.executor.capacity = 0
    server.post("/v1/evaluations", request_of())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.get, "/v1/evaluations/t1?wait=50")
        while not server.service._waiting:
            time.sleep(0.01)
        assert server.delete("/v1/evaluations/t1").status == 200
        assert waiting.result(timeout=20).status == 404


def test_a_queue_that_could_not_be_written_delays_verdicts_and_loses_none(server, request_of):
    server.post("/v1/evaluations", request_of("wait"))
    server.await_state("t1", "running")
    server.service.queue._connection.execute("PRAGMA busy_timeout = 1")
    with contextlib.closing(sqlite3.connect(server.service.settings.folder / "tasks.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        server.executor.release.set()
        refused = server.post("/v1/evaluations", request_of(task_id="t2"))
        assert (refused.status, int(refused.headers["Retry-After"]) > 0) == (500, True)
        server.service.dispatcher.wake()
        while not server.service.dispatcher._unstored:
            time.sleep(0.01)
    assert server.get("/v1/evaluations/t1?wait=30").body["verdict"]["outcome"] == "wrong_value"
    assert server.post("/v1/evaluations?wait=30", request_of(task_id="t2")).body["verdict"]["outcome"] == "correct"


def test_the_openapi_description_names_every_route(shared_server):
    paths = shared_server.get("/openapi.json").body["paths"]
    assert {"/v1/evaluations", "/v1/evaluations/{task_id}/events", "/evaluate/batch", "/metrics"} <= set(paths)
    assert shared_server.get("/docs").status == 200


STEPS = "".join(f"        extra = torch.mul(a, {number}) - {number} * a\n" for number in range(40))
PROGRAM = f"import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n{STEPS}        return a + b\n"


@pytest.mark.parametrize(
    ("source", "found"), [(f"# correct\n{PROGRAM}", True), (f"# correct\n{PROGRAM.replace('mul', 'add')}", False)]
)
def test_a_known_solution_is_named_among_the_findings(open_service, request_of, tmp_path, source, found):
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "solution.py").write_text(PROGRAM.replace("extra", "unused"))
    server = open_service(known_solutions=tmp_path / "known")
    server.post("/v1/evaluations?wait=30", request_of(candidate=source))
    (task,) = server.executor.evaluated
    assert [note.check for note in task.notes] == ["contaminated"] * found
    assert all(str(tmp_path / "known" / "solution.py") in note.message for note in task.notes)


def test_a_service_without_known_solutions_in_the_named_folder_does_not_start(open_service, tmp_path):
    with pytest.raises(UsageError, match="--known-solutions"):
        open_service(known_solutions=tmp_path / "missing")
