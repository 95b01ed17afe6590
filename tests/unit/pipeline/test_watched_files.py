"""Changes of watched files are found by their contents."""

from __future__ import annotations

import os

import pytest

from harness.pipeline.files import Contents


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in paths:
        path.write_text("first")
    return paths


def test_all_files_are_reported_first_and_then_those_with_another_content(files):
    contents, (a, b) = Contents(files), files
    assert contents.wait_for_changes() == [a, b]
    os.utime(a, (1, 1))
    b.write_text("second")
    assert contents.wait_for_changes() == [b]
    assert not contents.has_changed(a)


def test_another_content_of_equal_size_and_time_is_a_change(files):
    contents, (a, _) = Contents(files), files
    contents.wait_for_changes()
    before = a.stat()
    a.write_text("other")
    os.utime(a, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents.has_changed(a)
    assert contents.wait_for_changes() == [a]


def test_a_file_that_disappears_and_comes_back_is_reported_twice(files):
    contents, (a, _) = Contents(files), files
    contents.wait_for_changes()
    a.unlink()
    assert contents.wait_for_changes() == [a]
    a.write_text("first")
    assert contents.wait_for_changes() == [a]


def test_a_change_during_an_evaluation_is_reported_after_it(files):
    contents, (a, b) = Contents(files), files
    contents.wait_for_changes()
    a.write_text("one")
    a.write_text("two")
    b.write_text("two")
    assert contents.wait_for_changes() == [a, b]
