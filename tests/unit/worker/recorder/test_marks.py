"""Whose the time of a call is while several of its operations run."""

import pytest

from harness.protocol.device_memory import NO_FUNCTION
from harness.worker.recorder.marks import divide_time

OWN, MORE, THEIRS = 0, 1, 2


@pytest.mark.parametrize(
    ("intervals", "times_us"),
    [
        ([(OWN, 1.0, 4.0), (THEIRS, 5.0, 9.0)], {OWN: 3.0, THEIRS: 4.0}),
        ([(OWN, 0.0, 10.0), (THEIRS, 2.0, 5.0)], {OWN: 7.0, THEIRS: 3.0}),
        ([(THEIRS, 0.0, 10.0), (OWN, 2.0, 5.0)], {OWN: 0.0, THEIRS: 10.0}),
        ([(OWN, 0.0, 6.0), (NO_FUNCTION, 5.0, 8.0)], {OWN: 5.0, NO_FUNCTION: 3.0}),
        ([(OWN, 0.0, 4.0), (MORE, 2.0, 6.0)], {OWN: 3.0, MORE: 3.0}),
        ([(OWN, 0.0, 4.0), (OWN, 2.0, 6.0), (OWN, 6.0, 6.0)], {OWN: 6.0}),
        ([], {}),
    ],
    ids=["one after the other", "others within", "within others", "a copy", "two own ones", "one twice", "nothing"],
)
def test_time_in_which_others_work_is_theirs(intervals, times_us):
    assert divide_time(intervals, {OWN, MORE}) == times_us
