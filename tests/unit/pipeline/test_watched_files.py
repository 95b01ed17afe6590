"""Changes of watched files are found by their contents; the latest version of each is checked whole."""

from __future__ import annotations

import asyncio
import os

import pytest

from harness.domain import UsageError
from harness.pipeline.files import Contents, Version, WatchEvent, WholeChecks


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in paths:
        path.write_text("first")
    return paths


def find(contents):
    return contents.find_changes() or contents.find_changes()


def test_all_files_are_reported_first_and_then_those_with_another_content(files):
    contents, (a, b) = Contents(files), files
    assert find(contents) == [a, b]
    os.utime(a, (1, 1))
    b.write_text("second")
    assert find(contents) == [b]
    assert not contents.has_changed(a)


def test_another_content_of_equal_size_and_time_is_a_change(files):
    contents, (a, _) = Contents(files), files
    find(contents)
    before = a.stat()
    a.write_text("other")
    os.utime(a, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents.has_changed(a)
    assert find(contents) == [a]


def test_a_file_that_disappears_and_comes_back_is_reported_twice(files):
    contents, (a, _) = Contents(files), files
    find(contents)
    a.unlink()
    assert find(contents) == [a]
    a.write_text("first")
    assert find(contents) == [a]


def test_a_change_during_an_evaluation_is_reported_after_it(files):
    contents, (a, b) = Contents(files), files
    find(contents)
    a.write_text("one")
    a.write_text("two")
    b.write_text("two")
    assert find(contents) == [a, b]


def test_a_file_is_reported_once_it_stays_the_same(files):
    contents, (a, _) = Contents(files), files
    find(contents)
    a.write_text("one")
    assert contents.find_changes() == []
    a.write_text("two")
    assert contents.find_changes() == []
    assert contents.find_changes() == [a]


def version_of(file, task):
    return Version(event=WatchEvent(file=file), task=task, began_s=0.0)


async def collect(checks, wanted, has_changed=lambda file: False):
    """Return the first `wanted` events."""
    found = []
    while len(found) < wanted:
        await asyncio.sleep(0)
        found += checks.take_ended()
        checks.begin(has_changed)
    return [one.stored or one.reason for one in found]


def test_a_later_version_is_taken_up_while_an_earlier_one_is_checked(files):
    async def check():
        started, may_end = [], asyncio.Event()

        async def evaluate(task):
            started.append(task)
            await may_end.wait()
            return f"verdict on {task}"

        checks = WholeChecks(evaluate)
        for task in ("first", "second", "third"):
            checks.forget(files[0])
            checks.add(version_of(files[0], task))
            assert checks.take_ended() == []
            checks.begin()
            await asyncio.sleep(0)
        may_end.set()
        return await collect(checks, 1), started

    # The first is stored when it ends, without a word of it; the second never begins.
    assert asyncio.run(check()) == (["verdict on third"], ["first", "third"])


def test_a_file_that_has_changed_is_not_checked_and_another_one_is(files):
    async def check():
        async def evaluate(task):
            if task == "b":
                raise UsageError("no workload")
            return task

        checks = WholeChecks(evaluate)
        checks.add(version_of(files[0], "a"))
        checks.add(version_of(files[1], "b"))
        return await collect(checks, 1, lambda file: file == files[0]), await collect(checks, 1)

    assert asyncio.run(check()) == (["no workload"], ["a"])


def test_a_version_that_has_ended_is_known_until_its_event_is_taken(files):
    async def check():
        async def evaluate(task):
            return task

        checks, version = WholeChecks(evaluate), version_of(files[0], "a")
        checks.add(version)
        checks.begin()
        before = checks.has_ended(version)
        await asyncio.sleep(0)
        return before, checks.has_ended(version), len(checks.take_ended()), checks.has_ended(version)

    assert asyncio.run(check()) == (False, True, 1, False)
