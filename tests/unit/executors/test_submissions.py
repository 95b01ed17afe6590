"""Which tasks are submitted at once."""

from concurrent.futures import Future

from harness.domain import Candidate, Evaluation, Outcome, Problem
from harness.executors.executor import Origin, make_task, run_tasks


class BuildsLast:
    """Ends a build when no other task is left."""

    capacity = 2

    def __init__(self, others):
        self.others, self.most_builds, self.building, self.ended = others, 0, [], []

    def submit(self, task):
        future = Future()
        if task.builds_extensions:
            self.building.append((task, future))
            self.most_builds = max(self.most_builds, len(self.building))
        else:
            self.others -= 1
            self._end(task, future)
        while not self.others and self.building:
            self._end(*self.building.pop())
        return future

    def _end(self, task, future):
        self.ended.append(task.subject.sample)
        future.set_result(Evaluation(subject=task.subject, outcome=Outcome.WRONG_VALUE))


def make(sample, *, builds):
    source = "import torch.utils.cpp_extension" if builds else "import triton"
    candidate = Candidate(source=source, language="cuda", rule="file")
    return make_task(
        Problem(name="p", suite="s", source=""),
        candidate,
        Origin(run="r", model="m", sample=sample),
        language="cuda",
    )


def test_programs_without_extensions_do_not_wait_for_earlier_builds():
    executor, reported = BuildsLast(others=3), []
    tasks = [make(sample, builds=sample < 4) for sample in range(7)]
    run_tasks(executor, tasks, lambda task, _: reported.append(task.subject.sample))
    assert executor.ended[:3] == [4, 5, 6]
    assert sorted(reported) == list(range(7))
    assert executor.most_builds == executor.capacity
