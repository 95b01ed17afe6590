import asyncio
import random
import sqlite3

from harness.client import Client
from harness.service.queue import Limits, NewTask, Submission, TaskQueue


def test_many_clients_with_duplicates_lose_nothing_and_evaluate_each_task_once(server, request_of):
    unique = [request_of(f"correct {number + 2}", task_id=f"t{number}") for number in range(70)]
    bodies = unique + random.Random(0).choices(unique, k=30)
    random.Random(1).shuffle(bodies)
    waiting, found = list(bodies), {}

    async def work(client):
        while waiting:
            body = waiting.pop()
            verdict = await client.evaluate_async(**body)
            found.setdefault(body["task_id"], set()).add(verdict["speedup"])

    async def run():
        with Client(server.url) as client:
            await asyncio.gather(*(work(client) for _ in range(20)))

    asyncio.run(run())
    assert found == {f"t{number}": {float(number + 2)} for number in range(70)}
    assert len(server.executor.evaluated) == 70


def test_running_tasks_are_queued_again_after_a_restart(tmp_path):
    queue = TaskQueue.open(tmp_path)
    tasks = [NewTask(client="a", task=f"t{n}", submission=Submission(candidate=f"x = {n}")) for n in range(3)]
    queue.add(tasks, Limits(queued=9, per_client=9))
    (first, _), (second, _) = queue.take(2)
    queue.finish(first.number, '{"outcome": "correct"}')
    queue.close()
    queue = TaskQueue.open(tmp_path)
    assert queue.count() == {"queued": 2, "running": 0, "done": 1, "failed": 0, "invalid": 0}
    assert queue.read_verdict(first.number) == '{"outcome": "correct"}'
    assert [entry.task for entry, _ in queue.take(9)] == [second.task, "t2"]
    queue.close()


def test_a_verdict_is_never_replaced(tmp_path):
    queue = TaskQueue.open(tmp_path)
    queue.add([NewTask(client="a", task="t", submission=Submission(candidate="x"))], Limits(queued=9, per_client=9))
    ((entry, _),) = queue.take(1)
    queue.finish(entry.number, "first")
    queue.finish(entry.number, "second")
    queue.fail(entry.number, "too late")
    found = queue.find("a", "t")
    assert (found.state, queue.read_verdict(entry.number)) == ("done", "first")
    queue.close()


def test_a_task_fails_with_a_message_that_is_no_unicode(tmp_path):
    queue = TaskQueue.open(tmp_path)
    queue.add([NewTask(client="a", task="t", submission=Submission(candidate="x"))], Limits(queued=9, per_client=9))
    (entry, _), *_ = queue.take(1)
    queue.fail(entry.number, "lone \udcff")
    assert queue.find("a", "t").error == "lone ?"
    queue.close()


def test_old_verdicts_are_deleted_and_waiting_tasks_stay(tmp_path):
    queue = TaskQueue.open(tmp_path)
    tasks = [NewTask(client="a", task=name, submission=Submission(candidate=name)) for name in ("old", "new")]
    queue.add(tasks, Limits(queued=9, per_client=9))
    ((entry, _),) = queue.take(1)
    queue.finish(entry.number, "verdict")
    assert queue.delete_finished(before=4e9) == 1
    assert queue.count()["queued"] == 1
    queue.close()
    with sqlite3.connect(tmp_path / "tasks.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
