from urllib.parse import quote

import pytest

from harness.domain import LaunchedKernels, Outcome, Work
from harness.service.routes.kernelgym import ERROR_CODES

FIELDS = {
    "task_id", "status", "compiled", "correctness", "decoy_kernel", "reference_runtime", "kernel_runtime", "speedup",
    "metadata", "error_message", "error_code", "processing_time",
}  # fmt: skip


def test_a_correct_program_has_every_field_and_times_in_ms(server, gym_request_of):
    answer = server.post("/evaluate", gym_request_of(backend="cpp", num_warmup=3, is_valid=False))
    assert answer.status == 200
    assert set(answer.body) >= FIELDS
    assert (answer.body["status"], answer.body["compiled"], answer.body["correctness"]) == ("completed", True, True)
    assert (answer.body["reference_runtime"], answer.body["kernel_runtime"], answer.body["speedup"]) == (0.1, 0.05, 2.0)
    assert (answer.body["error_message"], answer.body["decoy_kernel"]) == (None, False)
    assert server.get("/results/t1").body == answer.body
    assert server.get("/status/t1").body["status"] == "completed"


@pytest.mark.parametrize(
    ("script", "compiled", "code"),
    [
        ("build_error", False, "COMPILATION_ERROR"),
        ("load_error", False, "COMPILATION_ERROR"),
        ("runtime_error", True, "RUNTIME_ERROR"),
        ("wrong_value", True, "CORRECTNESS_ERROR"),
        ("timeout", True, "TIMEOUT_ERROR"),
        ("out_of_memory", True, "RESOURCE_ERROR"),
        ("rejected", True, "VALIDATION_ERROR"),
        ("suspect", True, "VALIDATION_ERROR"),
    ],
)
def test_a_failing_program_is_completed_with_a_code_of_kernelgym(shared_server, gym_request_of, script, compiled, code):
    body = shared_server.post("/evaluate", gym_request_of(script, task_id=script)).body
    assert (body["status"], body["compiled"], body["correctness"]) == ("completed", compiled, False)
    assert (body["speedup"], body["kernel_runtime"], body["error_code"]) == (0.0, None, code)


def test_every_failure_has_a_code():
    assert set(ERROR_CODES) == {one for one in Outcome if one.counts_against_model} - {Outcome.CORRECT}


COVERAGE = (
    "num_custom_kernels", "num_total_kernels",
    "custom_kernel_cuda_time_in_profiling_us", "total_kernel_run_time_in_profiling_us",
)  # fmt: skip


@pytest.mark.parametrize(
    ("launched", "coverage"),
    [(None, [None] * 4), (LaunchedKernels(custom=1, total=3, custom_us=6.0, total_us=8.0), [1, 3, 6.0, 8.0])],
)
def test_coverage_is_what_the_profiler_saw_and_null_without_a_gpu(server, gym_request_of, launched, coverage):
    server.executor.work = Work(
        custom=0.6, torch=0.2, library=0.0, other=0.2, custom_kernels=("a", "b"), launched=launched
    )
    metadata = server.post("/evaluate", gym_request_of()).body["metadata"]
    assert [metadata[name] for name in COVERAGE] == coverage


def test_coverage_is_null_without_an_attribution(server, gym_request_of):
    metadata = server.post("/evaluate", gym_request_of("wrong_value")).body["metadata"]
    assert [metadata[name] for name in COVERAGE] == [None] * 4


def test_untimed_program_has_a_comparable_speedup_of_zero(server, gym_request_of):
    body = server.post("/evaluate", gym_request_of("correct")).body
    assert (body["correctness"], body["speedup"], body["kernel_runtime"]) == (True, 0.0, None)


@pytest.mark.parametrize("script", ["harness_error", "not_run", "raise"])
def test_harness_error_has_status_failed_and_asks_to_resubmit(server, gym_request_of, script):
    answer = server.post("/evaluate", gym_request_of(script))
    assert (answer.status, int(answer.headers["Retry-After"]) > 0) == (503, True)
    for later in (answer, server.get("/status/t1"), server.get("/results/t1")):
        assert (later.body["status"], later.body["error_code"]) == ("failed", "SYSTEM_ERROR")
    assert (answer.body["correctness"], answer.body["compiled"]) == (None, None)


def test_a_reference_that_fails_is_answered_as_failed_at_once(server, gym_request_of):
    for answer in (server.post("/evaluate", gym_request_of("problem_error")), server.get("/status/t1")):
        assert (answer.status, answer.body["status"], answer.body["error_code"]) == (200, "failed", "VALIDATION_ERROR")
        assert "reference.py: forward raised" in answer.body["error_message"]


def test_a_batch_has_a_result_per_task(server, gym_request_of):
    scripts = ("correct 2.0", "not_run", "problem_error", "wrong_value")
    tasks = [gym_request_of(script, task_id=script) for script in scripts]
    tasks += [gym_request_of(task_id="no Model", reference_code="x = 1"), gym_request_of(task_id="no", backend="cobol")]
    answer = server.post("/evaluate/batch", {"batch_id": "b", "tasks": tasks})
    assert [one["task_id"] for one in answer.body["results"]] == [one["task_id"] for one in tasks]
    statuses = [one["status"] for one in answer.body["results"]]
    assert statuses == ["completed", "failed", "failed", "completed", "failed", "failed"]
    assert (answer.body["completed_tasks"], answer.body["failed_tasks"]) == (2, 4)


def test_an_entry_point_of_any_name_is_evaluated(server, gym_request_of):
    reference = gym_request_of()["reference_code"].replace("class Model", "class Net")
    body = server.post("/evaluate", gym_request_of(entry_point="Net", reference_code=reference)).body
    assert (body["status"], body["correctness"]) == ("completed", True)
    (task,) = server.executor.evaluated
    assert task.candidate.source.endswith("ModelNew = NetNew\n")


@pytest.mark.parametrize("task_id", ["with space", "group/7/x", "été", "a?b#c%20"])
def test_a_task_id_may_have_any_printable_characters(shared_server, gym_request_of, task_id):
    shared_server.post("/evaluate", gym_request_of(task_id=task_id))
    for path in ("status", "results"):
        assert shared_server.get(f"/{path}/{quote(task_id)}").body["task_id"] == task_id
    assert shared_server.delete(f"/tasks/{quote(task_id)}").status == 200


def test_a_workflow_is_an_evaluation_with_its_answer_as_the_result(server, gym_request_of):
    body = server.post("/workflow/submit", {"workflow": "kernelbench", "payload": gym_request_of()}).body
    assert (body["task_id"], body["status"], body["result"]["speedup"]) == ("t1", "completed", 2.0)
    assert server.post("/workflow/submit", {"task_id": "t2", "payload": gym_request_of()}).body["task_id"] == "t2"
    for bad in ({"workflow": "other", "payload": gym_request_of()}, {"payload": {"task_id": "x"}}):
        assert server.post("/workflow/submit", bad).status == 422


def test_a_batch_is_answered_in_order(server, gym_request_of):
    tasks = [gym_request_of(f"correct {2 + n}", task_id=f"t{n}") for n in range(5)]
    body = server.post("/evaluate/batch", {"batch_id": "b", "tasks": tasks}).body
    assert (body["total_tasks"], body["completed_tasks"], body["batch_status"]) == (5, 5, "completed")
    assert [result["speedup"] for result in body["results"]] == [2, 3, 4, 5, 6]


def test_a_batch_with_a_conflict_or_over_100_tasks_is_refused_whole(server, gym_request_of):
    server.post("/evaluate", gym_request_of())
    conflict = [gym_request_of(task_id="new"), gym_request_of("wrong_value")]
    assert server.post("/evaluate/batch", {"tasks": conflict}).status == 409
    assert server.get("/status/new").status == 404
    tasks = [gym_request_of(task_id=f"t{n}") for n in range(101)]
    assert server.post("/evaluate/batch", {"tasks": tasks}).status == 422
    assert server.post("/evaluate/batch", {"tasks": []}).status == 422


def test_an_answer_after_the_timeout_says_that_the_task_runs(server, gym_request_of):
    answer = server.post("/evaluate", gym_request_of("wait", timeout=0.01))
    assert (answer.status, answer.body["correctness"]) == (200, None)
    assert answer.body["status"] in ("pending", "processing")
    server.executor.release.set()
    assert server.post("/evaluate", gym_request_of("wait", timeout=60)).body["status"] == "completed"


@pytest.mark.parametrize(
    "changes",
    [
        {"entry_point": "a b"},
        {"task_id": "a\nb"},
        {"backend": "cobol"},
        {"reference_backend": "jax"},
        {"kernel_code": ""},
    ],
)
def test_unsupported_request_is_refused(shared_server, gym_request_of, changes):
    assert shared_server.post("/evaluate", gym_request_of(**changes)).status == 422


def test_the_state_routes_describe_queue_and_workers(server, gym_request_of):
    server.post("/evaluate", gym_request_of())
    assert server.get("/queue/status").body == {"pending": 0, "processing": 0, "completed": 1, "failed": 0}
    assert server.get("/workers/status").body["devices"] == [{"name": "cpu", "waiting": 0, "running": 0, "done": 1}]
    health = server.get("/health").body
    assert (health["status"], health["total_processed"], health["active_tasks"]) == ("healthy", 1, 0)
    assert {"timestamp", "gpu_status", "queue_status", "memory_usage", "uptime"} <= set(health)
    assert server.delete("/tasks/t1").status == 200
    assert server.get("/results/t1").status == 404


def test_a_device_out_of_service_is_reported_while_the_others_go_on(server):
    server.executor.lost = ("cuda:1 was taken out of service: Xid 79",)
    health = server.get("/health")
    assert (health.status, health.body["status"], health.body["lost"]) == (200, "healthy", list(server.executor.lost))
    assert server.get("/workers/status").body["lost"] == list(server.executor.lost)


def test_a_service_whose_executor_failed_for_good_is_unhealthy(server):
    server.executor.failure = "cuda:0 was lost 3 times in a row"
    answer = server.get("/health")
    assert (answer.status, answer.body["status"]) == (503, "unhealthy")
    assert "lost 3 times" in answer.body["failure"]
