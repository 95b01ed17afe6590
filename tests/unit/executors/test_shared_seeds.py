"""Tasks of one problem in one command get the same seed."""

from concurrent.futures import Future

from harness.domain import Candidate, Problem
from harness.executors.executor import Origin, make_task, run_tasks


class Recorder:
    """Keeps what is submitted."""

    capacity = 2

    def __init__(self):
        self.submitted = []

    def submit(self, task):
        self.submitted.append(task)
        done = Future()
        done.set_result(None)
        return done


def make(problem, sample, seed=None):
    candidate = Candidate(source=f"# {sample}", language="cpp", rule="file")
    return make_task(
        Problem(name=problem, suite="s", source=f"# {problem}"),
        candidate,
        Origin(run="r", model="m", sample=sample),
        language="cpp",
        seed=seed,
    )


def run(tasks):
    executor, reported = Recorder(), []
    run_tasks(executor, tasks, lambda task, _: reported.append(task))
    assert sorted(map(id, reported)) == sorted(map(id, tasks))
    return [task.seed for task in executor.submitted]


def test_seed_is_shared_by_candidates_of_one_problem_and_command_only():
    tasks = [make("a", 0), make("b", 0), make("a", 1)]
    first, other, second = run(tasks)
    assert first == second != other
    assert first not in run(tasks)


def test_a_seed_of_an_evaluation_to_repeat_stays():
    assert run([make("a", 0), make("a", 1, seed=7)])[1] == 7
