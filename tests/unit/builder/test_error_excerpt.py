from hypothesis import given
from hypothesis import strategies as st

from harness.builder.error_excerpt import shorten_log

COMPILER_LOG = """[1/2] c++ -MMD -DTORCH_EXTENSION_NAME=ext -fPIC -O3 -c main.cpp -o main.o
FAILED: main.o
c++ -MMD -DTORCH_EXTENSION_NAME=ext -fPIC -O3 -c main.cpp -o main.o
In file included from torch.h:3,
                 from main.cpp:1:
main.cpp: In function 'int f()':
main.cpp:3:10: error: 'missing' was not declared in this scope
    3 |   return missing;
      |          ^~~~~~~
ninja: build stopped: subcommand failed.
"""


def test_the_error_is_kept_with_file_line_and_source():
    short = shorten_log(COMPILER_LOG)
    assert "main.cpp:3:10: error: 'missing' was not declared" in short
    assert "return missing;" in short


def test_commands_and_progress_are_left_out():
    short = shorten_log(COMPILER_LOG)
    assert "ninja" not in short
    assert "TORCH_EXTENSION_NAME" not in short
    assert "FAILED" not in short


def test_an_error_of_the_linker_is_kept():
    log = "[2/2] c++ main.o -shared -o ext.so\nmain.o: undefined reference to `helper()'\ncollect2: ld returned 1\n"
    assert "undefined reference to `helper()'" in shorten_log(log)


def test_without_an_error_the_end_is_kept():
    log = "\n".join(f"line {number}" for number in range(100))
    assert shorten_log(log).splitlines()[-1] == "line 99"


def test_the_first_of_many_errors_are_kept():
    log = "\n".join(f"main.cpp:{number}:1: error: no {number}" for number in range(1000))
    assert "error: no 0" in shorten_log(log)
    assert "error: no 999" not in shorten_log(log)


@given(st.text(), st.integers(1, 30), st.integers(1, 3000))
def test_a_shortened_log_is_never_longer_than_asked_for(log, lines, characters):
    short = shorten_log(log, max_lines=lines, max_characters=characters)
    assert len(short) <= characters
    assert len(short.splitlines()) <= lines or "\r" in short or any(c in short for c in "\x0b\x0c\x1c\x1d\x1e\x85")
