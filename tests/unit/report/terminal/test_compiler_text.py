"""Tracebacks of candidates in a terminal."""

from harness.report.terminal.sources import drop_installed_frames


def test_frames_of_installed_packages_are_left_out():
    own = '  File "/tmp/x/candidate.py", line 9, in forward\n    kernel[grid](x)\n'
    theirs = '  File "/v/lib/python3.12/site-packages/triton/jit.py", line 1, in run\n    return f(\n    ^^^^^\n'
    text = f"Traceback (most recent call last):\n{own}{theirs}{theirs}ValueError: no\n"
    note = "  (2 frames of installed packages)\n"
    assert drop_installed_frames(text) == f"Traceback (most recent call last):\n{own}{note}ValueError: no\n"
    assert drop_installed_frames("cuda.cu:3: error: x\n    y = x;\n") == "cuda.cu:3: error: x\n    y = x;\n"
