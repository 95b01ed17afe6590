"""Host C++ in both lanes, through the builder: the programs of a corpus give the same bits or the same error, and what
does not compile is told in the same words. Many programs share one source, as the lanes differ in a header alone."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from host_corpus import list_host_bodies, write_host_source

from harness.builder.error_excerpt import shorten_log
from harness.domain import BuildRequest

pytestmark = pytest.mark.usefixtures("needs_compiler")
PARTS = 2  # so that two test processes share them: reading torch's headers takes longer than the programs
RUN_ALL = r"""
import importlib.util, re, sys
import torch

def load(path):
    spec = importlib.util.spec_from_file_location("corpus", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def run(module, number):
    torch.manual_seed(0)
    x = torch.randn(6, 8)
    try:
        y = module.run_program(number, x)
        return str(y.dtype), tuple(y.shape), y.contiguous().reshape(-1).view(torch.uint8).tolist(), x.tolist()
    except Exception as error:
        # A failed CHECK begins with the moment it failed.
        return type(error).__name__, re.sub(r"^\[\w+ [\d:.]+ ", "", str(error).partition("Exception raised from")[0])

modules = [load(path) for path in sys.argv[2:]]
for number in range(int(sys.argv[1])):
    found = [run(module, number) for module in modules]
    word = "differs" if found[0] != found[1] else "raises" if len(found[0]) == 2 else "agrees"
    print(number, word, repr(found[0])[:200])
"""


@pytest.fixture
def builders(fast, plain):
    return {"fast": fast, "plain": plain}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_host_program_gives_the_same_bits_or_the_same_error(builders, part):
    bodies = list_host_bodies()[part::PARTS]
    request = BuildRequest(
        name="corpus", cpp_sources=(write_host_source(bodies),), functions=(("run_program", "Runs one."),)
    )
    results = {lane: builder.build(request) for lane, builder in builders.items()}
    assert {lane: (result.status, result.lane) for lane, result in results.items()} == {
        lane: ("built", lane) for lane in builders
    }, results["plain"].log[-3000:]
    libraries = [result.extension for result in results.values()]
    command = [sys.executable, "-c", RUN_ALL, str(len(bodies)), *libraries]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in lines if line.split()[1] not in ("agrees", "raises")] == []
    assert sum(line.split()[1] == "agrees" for line in lines) > len(bodies) // 2
    assert len(lines) == len(bodies)


@pytest.mark.slow
def test_a_source_that_includes_torchs_header_itself_is_built_in_the_fast_lane(builders):
    source = "#include <torch/extension.h>\n#include <vector>\nat::Tensor f(at::Tensor x) { return x + 1; }"
    request = BuildRequest(name="included", cpp_sources=(source,), functions=(("f", ""),))
    result = builders["fast"].build(request)
    assert (result.status, result.lane) == ("built", "fast"), result.log[-2000:]


WRONG = (
    "at::Tensor function(at::Tensor x) { return missing(x); }",
    "at::Tensor member(at::Tensor x) { return x.no_such_method(); }",
    "at::Tensor arguments(at::Tensor x) { return at::matmul(x); }",
    "at::Tensor type(at::Tensor x) { float v = x; return x; }",
    "template <typename T> T g(T v) { return v.none(); } at::Tensor of_template(at::Tensor x) { return x * g(1); }",
    "at::Tensor syntax(at::Tensor x) { return x +; }",
)
BROKEN = {
    "many": "\n".join(WRONG),  # and no f to bind
    "unbalanced": "at::Tensor f(at::Tensor x) { return x;",
    "header": '#include "no_such_header.h"\nat::Tensor f(at::Tensor x) { return x; }',
}


def read_errors(result):
    """The compiler's errors with their places, without folders."""
    return re.findall(r"^(?:\S*/)?(main\.cpp:\d+:\d+: (?:fatal )?error: .*)$", result.log, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_compile_is_told_by_the_fast_lane_in_the_plain_lanes_words(builders, name):
    request = BuildRequest(name="broken", cpp_sources=(BROKEN[name],), functions=(("f", ""),))
    fast, plain = (builders[lane].build(request) for lane in ("fast", "plain"))
    assert [(result.status, result.lane) for result in (fast, plain)] == [("failed", "fast"), ("failed", "plain")]
    assert read_errors(fast) == read_errors(plain) != []
    if name == "many":
        lines = {error.split(":")[1] for error in read_errors(plain)}
        assert len(lines) == len(WRONG) + 1, "an error in each line and in the binding"
    assert shorten_log(fast.log).splitlines()[0] == shorten_log(plain.log).splitlines()[0]


@pytest.mark.slow
def test_a_missing_library_is_told_by_the_fast_lane(builders):
    request = BuildRequest(name="unlinked", cpp_sources=("int f() { return 1; }",), functions=(("f", ""),))
    result = builders["fast"].build(replace(request, extra_ldflags=("-lno_such_library",)))
    assert (result.status, result.lane) == ("failed", "fast")
    assert "no_such_library" in result.log
