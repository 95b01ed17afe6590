"""The turns of one sample with given verdicts: what is asked, what is measured again, and where the budget ends it."""

import asyncio
from pathlib import Path

import pytest

from harness.domain import Completion, Problem, Prompt, ProviderError, RunManifest, Usage
from harness.generate.sampler import Asker, Plan, SessionReport
from harness.pipeline.chains import Session, follow_all
from harness.pipeline.options import EvaluateOptions
from harness.report.terminal.search_progress import SearchProgress
from harness.search.strategy import SearchOptions, find_strategy
from harness.store.results import StoredEvaluation
from harness.store.runs import read_search, write_manifest

PROMPTS = Path(__file__).resolve().parents[3] / "prompts"
PROBLEM = Problem(name="add", suite="tiny", source="class Model:\n    pass\n")


class Answers:
    """A provider with a new program for every turn, or the given ones; every answer costs 100 tokens."""

    def __init__(self, programs):
        self.asked, self.programs = [], programs

    def can_answer(self, key):
        return key.turn < 6

    async def complete(self, request):
        self.asked.append(request)
        if request.key.turn == 5:
            raise ProviderError("the endpoint is down")
        program = f"class ModelNew:\n    turn = {self.programs[request.key.turn]}\n"
        usage = Usage(prompt_tokens=60, completion_tokens=40)
        return Completion(text=f"```python\n{program}```\n", usage=usage, reasoning="secret")

    async def close(self):
        pass


class Verdicts:
    """Evaluations by turn: the first measurement, then those on fresh seeds."""

    options = EvaluateOptions()

    def __init__(self, by_turn):
        self.left = {turn: [*evaluations] for turn, evaluations in by_turn.items()}
        self.measured, self.rivals = [], []

    async def evaluate(self, task, *, again=False, show_wait=None):
        turn = task.subject.turn
        self.measured.append(turn)
        self.rivals.append(task.rival)
        return StoredEvaluation(id=1, evaluation=self.left[turn].pop(0))

    def count(self, evaluation):
        return self.measured.count(evaluation.subject.turn)


@pytest.fixture
def search(tmp_path, evaluation_of):
    """Runs one sample; `speeds`: the measured speedups by turn (None: wrong values)."""

    def run(*speeds, strategy="optimise", programs=range(6), **options):
        manifest = RunManifest(
            run="r", suite="tiny", model="m", provider="openai", prompt="plain", language="cpp", samples=1,
            temperature=None, problems=("add",), created_at="2030-01-01T00:00:00+00:00", harness_version="0",
        )  # fmt: skip
        run_dir = tmp_path / "generated" / "r"
        write_manifest(run_dir, manifest)
        prompt = Prompt(name="plain", problem="add", language="cpp", text="Make it fast.")
        plan = Plan(run_dir=run_dir, manifest=manifest, prompts=(prompt,), samples=1, problems=(PROBLEM,))
        by_turn = {
            turn: [evaluation_of("correct" if speed else "wrong_value", speed, turn=turn) for speed in measured]
            for turn, measured in enumerate(speeds)
        }
        verdicts, answers = Verdicts(by_turn), Answers(programs)
        report = SessionReport(run="r", run_dir=run_dir, planned=1)
        session = Session(
            plan=plan, asker=Asker(plan, answers, report, concurrency=1, read_clock=lambda: ""),
            progress=SearchProgress(plan.list_keys()), problems={"add": PROBLEM}, prompt="plain", prompts_dir=PROMPTS,
            search=SearchOptions(**{"turns": len(speeds)} | options), strategy=find_strategy(strategy, is_timed=True),
            evaluations=verdicts,
        )  # fmt: skip
        (done,) = asyncio.run(follow_all(session))
        return done, verdicts, answers, read_search(run_dir, done.key)

    return run


def test_the_best_of_several_times_is_measured_again_and_that_number_counts(search):
    done, verdicts, _, record = search([1.0], [3.0, 2.5], [2.0])
    assert verdicts.measured == [0, 1, 2, 1]
    assert (done.history.best.number, done.history.best.result.speedup) == (1, 2.5)
    assert record["best"] == 1


def test_a_best_time_that_does_not_repeat_gives_way_to_the_next(search):
    done, verdicts, _, _ = search([2.0, 2.1], [3.0, 1.0], [1.5])
    assert verdicts.measured == [0, 1, 2, 1, 0]
    assert (done.history.best.number, done.history.best.result.speedup) == (0, 2.1)


def test_search_continues_after_an_unrepeatable_time(search):
    """As the same command would, which knows only what is stored."""
    done, verdicts, answers, _ = search([2.0], [3.0, 1.9], [2.5, 2.4], [2.5], [2.4], patience=2)
    assert verdicts.measured == [0, 1, 2, 3, 1, 4, 2]
    assert (len(answers.asked), done.history.best.number) == (5, 2)
    assert done.stopped == "2 turns without a gain"


def test_remeasured_program_is_compared_with_the_previous_best(search):
    _, verdicts, _, _ = search([1.0], [3.0, 2.5], [2.0])
    assert verdicts.measured == [0, 1, 2, 1]
    assert [rival and rival.turn for rival in verdicts.rivals] == [None, 0, 1, 0]
    assert verdicts.rivals[1].candidate.source == "class ModelNew:\n    turn = 0\n"
    assert 0.5 < verdicts.rivals[1].speedup_lows[""] < 1.0


def test_a_repeated_program_shares_the_second_measurement_too(search):
    done, verdicts, _, _ = search([2.0, 2.1], [3.0, 1.0], [], programs=(0, 1, 1))
    assert verdicts.measured == [0, 1, 1, 0]
    assert done.history.best.number == 0
    assert [turn.result.speedup for turn in done.history.turns] == [2.1, 1.0, 1.0]


def test_a_single_correct_program_is_not_measured_again(search):
    _, verdicts, _, _ = search([None], [2.0], [None])
    assert verdicts.measured == [0, 1, 2]


def test_optimise_asks_from_the_best_program_without_its_reasoning(search):
    _, _, answers, _ = search([3.0, 3.0], [1.0], [1.0])
    last = answers.asked[-1].prompt
    assert "turn = 0" in last.messages[1].text
    assert "turn 1: correct, 1.00x" in last.text
    assert "secret" not in "".join(one.text for one in last.messages)


def test_best_of_n_feeds_nothing_back(search):
    _, _, answers, _ = search([1.0], [2.0, 2.0], [1.0], strategy="best-of-n")
    assert {request.prompt.text for request in answers.asked} == {"Make it fast."}


def test_the_budget_ends_a_search_before_the_next_request(search):
    done, _, answers, record = search([None], [None], [None], budget_tokens=150)
    assert (len(answers.asked), done.history.tokens, record["tokens"]) == (2, 200, 200)
    assert done.stopped == "the budget of 150 tokens is spent"


def test_a_deadline_leaves_the_search_unfinished(search):
    done, _, answers, record = search([None], [None], deadline_s=0.0)
    assert (answers.asked, record) == ([], {})
    assert "deadline" in done.stopped


def test_a_failing_endpoint_keeps_the_turns_so_far(search):
    done, _, _, record = search([None], [None], [None], [None], [None], [None], patience=9)
    assert (done.failure, done.stopped, len(done.history.turns)) == (True, "the endpoint is down", 5)
    assert record == {}
