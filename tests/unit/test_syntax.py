"""Parsing in several threads."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.syntax import parse_python

SOURCE = "\n".join(f"def f{index}(x):\n    return [x + {index}, {{'a': (x, {index})}}]" for index in range(300))


@pytest.fixture
def other_threads_run_during_collections():
    def let_others_run(*_):
        time.sleep(0)

    gc.callbacks.append(let_others_run)
    yield
    gc.callbacks.remove(let_others_run)


@pytest.mark.usefixtures("other_threads_run_during_collections")
@pytest.mark.slow
def test_threads_parse_at_the_same_time():
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(parse_python, [SOURCE] * 64))
    assert len({ast.unparse(tree) for tree in trees}) == 1


def test_the_file_of_a_syntax_error_is_named():
    with pytest.raises(SyntaxError) as raised:
        parse_python("def", "k.py")
    assert raised.value.filename == "k.py"


def test_a_byte_order_mark_is_no_part_of_the_source():
    assert ast.unparse(parse_python("\ufeffx = 1\n")) == "x = 1"
