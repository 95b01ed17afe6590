"""Adapters whose frameworks expect plain functions or HTTP; the others are in `test_rl_packages.py`."""

import json

import pytest
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.sync.client import connect

from harness.domain import NoVerdict
from harness.service.adapters.scoring import ALWAYS, find_scorer, list_tasks
from harness.service.adapters.verl import compute_score
from harness.service.reward import Shaping

PROGRAM = (
    "Here:\n```python\n# {}\nimport torch\nclass ModelNew(torch.nn.Module):\n    def forward(self):\n        pass\n```"
)
ADD = {"problem": "add", "suite": "tiny"}


@pytest.fixture(autouse=True)
def forget_scorers():
    yield
    find_scorer.cache_clear()


def test_verl_gets_a_score_and_the_same_keys_for_every_program(server):
    right = compute_score("kernels", PROGRAM.format("correct 2.0"), "", {"evaluation": ADD}, url=server.url)
    wrong = compute_score("kernels", PROGRAM.format("wrong_value"), "", {"evaluation": ADD}, url=server.url)
    assert (right["score"], wrong["score"]) == (pytest.approx(1.9), 0.0)
    assert set(right) == set(wrong) == {"score", *ALWAYS}


def test_verl_takes_the_ground_truth_as_the_reference(server, gym_request_of):
    reference = gym_request_of()["reference_code"]
    assert compute_score("kernels", PROGRAM.format("wrong_value"), reference, url=server.url)["score"] == 0.0
    assert server.executor.evaluated[0].problem.source == reference


def test_verl_never_scores_a_fault_of_the_service(server):
    with pytest.raises(NoVerdict):
        find_scorer(server.url, None, Shaping()).client._max_failures = 1
        compute_score("kernels", PROGRAM.format("not_run"), "", {"evaluation": ADD}, url=server.url)


def test_verl_takes_the_shaping_from_its_configuration(server):
    extra = {"evaluation": ADD}
    score = compute_score("k", PROGRAM.format("wrong_value"), "", extra, url=server.url, shaping={"loaded": 0.25})
    assert score["score"] == 0.25


def test_a_scorer_uses_its_shaping(server):
    scorer = find_scorer(server.url, None, Shaping(loaded=0.25))
    assert scorer.score(PROGRAM.format("wrong_value"), ADD).value == 0.25


def test_tasks_have_a_prompt_with_the_reference_and_name_their_problem(tiny_suite):
    (task,) = list_tasks("tiny", "cpp", problems_dir=tiny_suite.parent)
    assert "return a + b" in task.prompt
    assert task.evaluation == {"problem": "add", "suite": "tiny", "language": "cpp"}


def test_an_openenv_episode_is_a_reset_and_a_step(server):
    reset = server.post("/reset", {"suite": "tiny", "language": "cpp", "seed": 1})
    observation = reset.body["observation"]
    assert (reset.status, reset.body["done"], observation["problem"]) == (200, False, "add")
    assert "return a + b" in observation["prompt"]
    action = {name: observation[name] for name in ("task_id", "problem", "suite", "language")}
    step = server.post("/step", {"action": action | {"completion": PROGRAM.format("correct 2.0")}})
    assert (step.body["reward"], step.body["done"]) == (pytest.approx(1.9), True)
    assert step.body["observation"]["metrics"]["correct"] == 1.0


def test_an_openenv_step_that_the_harness_failed_has_no_reward(server):
    answer = server.post("/step", {"action": {**ADD, "candidate": "# not_run\n"}})
    assert answer.status == 503
    assert "reward" not in answer.body


def test_openenv_reset_accepts_problem_suite_and_language(server):
    server.executor.languages = ("triton",)
    observation = server.post("/reset", {"problem": "tiny/add"}).body["observation"]
    assert (observation["problem"], observation["suite"], observation["language"]) == ("add", "tiny", "triton")


@pytest.fixture
def converse():
    """Sends messages over one WebSocket; the answers."""

    def talk(address, *messages):
        with connect(f"{address.replace('http', 'ws', 1)}/ws", open_timeout=60) as line:
            answers = []
            for message in messages:
                line.send(message if isinstance(message, str | bytes) else json.dumps(message))
                answers.append(json.loads(line.recv(60)))
            line.send('{"type": "close"}')
            with pytest.raises(ConnectionClosedOK):
                line.recv(60)
            return answers

    return talk


def test_an_openenv_session_remembers_what_its_reset_chose(server, converse):
    reset = {"type": "reset", "data": {"problem": "tiny/add", "language": "cpp", "episode_id": "e1"}}
    step = {"type": "step", "data": {"completion": PROGRAM.format("correct 2.0"), "metadata": {}}}
    chosen, first, second, state = converse(server.url, reset, step, step, {"type": "state"})
    assert "return a + b" in chosen["data"]["observation"]["prompt"]
    assert [one["data"]["reward"] for one in (first, second)] == [pytest.approx(1.9)] * 2
    assert state["data"] == {
        "episode_id": "e1", "step_count": 2, "problem": "add", "suite": "tiny", "language": "cpp",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ("no JSON", "INVALID_JSON", "expected"),
        (b"\xff", "INVALID_JSON", "expected"),
        ("[1]", "INVALID_JSON", "expected"),
        ({"type": "dance"}, "UNKNOWN_TYPE", "dance"),
        ({"type": "reset", "data": [1]}, "VALIDATION_ERROR", "dictionary"),
        ({"type": "reset", "data": {"problem": "../x"}}, "VALIDATION_ERROR", "no name of a problem"),
        ({"type": "step", "data": {"candidate": "x = 1"}}, "VALIDATION_ERROR", "either problem or reference"),
        ({"type": "step", "data": ADD | {"candidate": "# not_run\n"}}, "EXECUTION_ERROR", "no verdict"),
        ({"type": "step", "data": ADD | {"candidate": "# problem_error\n"}}, "EXECUTION_ERROR", "boom"),
    ],
)
def test_failed_openenv_message_is_an_error_and_the_session_continues(shared_server, converse, message, code, text):
    error, state = converse(shared_server.url, message, {"type": "state"})
    assert (error["type"], error["data"]["code"], state["type"]) == ("error", code, "state")
    assert text in error["data"]["message"]


def test_an_openenv_session_needs_the_token_in_its_address(open_service, converse):
    server = open_service(tokens={"secret": "alice"})
    assert converse(server.url.replace("//", "//any:secret@"), {"type": "state"})[0]["type"] == "state"
    for address in (server.url, server.url.replace("//", "//any:wrong@")):
        with pytest.raises(InvalidStatus, match="401"):
            converse(address)


def test_more_openenv_sessions_than_allowed_are_refused(open_service, converse):
    server = open_service(max_sessions=0)
    with connect(f"ws{server.url[4:]}/ws") as line:
        assert json.loads(line.recv(60))["data"]["code"] == "CAPACITY_REACHED"


@pytest.mark.parametrize("body", [{"suite": "../tiny"}, {"suite": "tiny", "problem": "absent"}, {"language": "cobol"}])
def test_an_invalid_reset_is_refused(shared_server, body):
    assert shared_server.post("/reset", body).status == 422
