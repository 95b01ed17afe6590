"""Output of compilers and interpreters at the width of a terminal."""

from rich.console import Console

from harness.report.terminal.sources import CompilerText, drop_installed_frames, fit_carets


def test_carets_stay_below_what_they_point_at_when_a_line_is_cut():
    quoted = "  12 |     " + "a = b; " * 20 + "missing_name(x);" + " c = d;" * 20
    carets = "     |" + " " * (quoted.index("missing_name") - 6) + "^" + "~" * 11
    fitted = fit_carets(["main.cpp:12:150: error: 'missing_name' was not declared", quoted, carets], 80)
    assert max(map(len, fitted)) <= 80
    at = fitted[2].index("^")
    assert fitted[1][at : at + 12] == "missing_name"
    assert (fitted[1][:7], fitted[2][:6]) == ("  12 | ", "     |")


def test_short_lines_and_long_messages_stay_whole():
    lines = ["main.cu(3): error: " + "word " * 40, "    y = x;", "        ^"]
    assert fit_carets(lines, 80) == lines
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(CompilerText("\n".join(lines)))
    console.file.close()
    assert " ".join(console.export_text().split()) == " ".join("\n".join(lines).split())


def test_frames_of_installed_packages_are_left_out():
    own = '  File "/tmp/x/candidate.py", line 9, in forward\n    kernel[grid](x)\n'
    theirs = '  File "/v/lib/python3.12/site-packages/triton/jit.py", line 1, in run\n    return f(\n    ^^^^^\n'
    text = f"Traceback (most recent call last):\n{own}{theirs}{theirs}ValueError: no\n"
    note = "  (2 frames of installed packages)\n"
    assert drop_installed_frames(text) == f"Traceback (most recent call last):\n{own}{note}ValueError: no\n"
    assert drop_installed_frames("cuda.cu:3: error: x\n    y = x;\n") == "cuda.cu:3: error: x\n    y = x;\n"
