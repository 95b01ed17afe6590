import pytest

from harness.domain import LaunchedKernels, Work

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
    ("script", "compiled"), [("build_error", False), ("load_error", False), ("wrong_value", True), ("suspect", True)]
)
def test_a_failing_program_is_completed_without_a_speedup(server, gym_request_of, script, compiled):
    body = server.post("/evaluate", gym_request_of(script)).body
    assert (body["status"], body["compiled"], body["correctness"]) == ("completed", compiled, False)
    assert (body["speedup"], body["kernel_runtime"], body["error_code"]) == (None, None, script.upper())


COVERAGE = (
    "num_custom_kernels", "num_total_kernels",
    "custom_kernel_cuda_time_in_profiling_us", "total_kernel_run_time_in_profiling_us",
)  # fmt: skip


@pytest.mark.parametrize(
    ("launched", "coverage"),
    [(None, [None] * 4), (LaunchedKernels(custom=1, total=3, custom_us=6.0, total_us=8.0), [1, 3, 6.0, 8.0])],
)
def test_coverage_is_what_the_profiler_saw_and_null_without_a_gpu(server, gym_request_of, launched, coverage):
    server.executor.work = Work(own=0.6, torch=0.2, library=0.0, other=0.2, own_kernels=("a", "b"), launched=launched)
    metadata = server.post("/evaluate", gym_request_of()).body["metadata"]
    assert [metadata[name] for name in COVERAGE] == coverage


def test_coverage_is_null_without_an_attribution(server, gym_request_of):
    metadata = server.post("/evaluate", gym_request_of("wrong_value")).body["metadata"]
    assert [metadata[name] for name in COVERAGE] == [None] * 4


def test_a_program_that_was_not_timed_has_no_speedup(server, gym_request_of):
    body = server.post("/evaluate", gym_request_of("correct")).body
    assert (body["correctness"], body["speedup"], body["kernel_runtime"]) == (True, None, None)


@pytest.mark.parametrize("script", ["harness_error", "not_run", "raise"])
def test_a_fault_of_the_harness_is_a_server_error_on_every_route(server, gym_request_of, script):
    answers = [server.post("/evaluate", gym_request_of(script)), server.get("/status/t1"), server.get("/results/t1")]
    batch = {"batch_id": "b", "tasks": [gym_request_of(script), gym_request_of(task_id="t2")]}
    for answer in (*answers, server.post("/evaluate/batch", batch)):
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.body["correctness"] is None
        assert answer.body["compiled"] is None


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
    "changes", [{"entry_point": "Net"}, {"backend": "cobol"}, {"reference_backend": "jax"}, {"kernel_code": ""}]
)
def test_what_the_evaluator_cannot_do_is_refused(shared_server, gym_request_of, changes):
    assert shared_server.post("/evaluate", gym_request_of(**changes)).status == 422


def test_the_state_routes_describe_queue_and_workers(server, gym_request_of):
    server.post("/evaluate", gym_request_of())
    assert server.get("/queue/status").body == {"pending": 0, "processing": 0, "completed": 1, "failed": 0}
    assert server.get("/workers/status").body["devices"] == [{"name": "cpu", "waiting": 0, "running": 0, "done": 1}]
    assert server.get("/health").body["status"] == "healthy"
    assert server.delete("/tasks/t1").status == 200
    assert server.get("/results/t1").status == 404


def test_a_device_out_of_service_is_reported_while_the_others_go_on(server):
    server.executor.lost = ("cuda:1 was taken out of service: Xid 79",)
    health = server.get("/health")
    assert (health.status, health.body["status"], health.body["lost"]) == (200, "degraded", list(server.executor.lost))
    assert server.get("/workers/status").body["lost"] == list(server.executor.lost)


def test_a_service_whose_executor_failed_for_good_is_unhealthy(server):
    server.executor.failure = "cuda:0 was lost 3 times in a row"
    answer = server.get("/health")
    assert (answer.status, answer.body["status"]) == (503, "unhealthy")
    assert "lost 3 times" in answer.body["failure"]
