"""Host C++ in both strategies, through the builder: the programs of a corpus give the same bits or the same error, and
what does not compile is told in the same words. Many programs share one source, as the strategies differ in headers and
binding alone."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

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


def is_bound_by_our_object(result):
    return b"harness_open" in Path(result.extension).read_bytes()


def select_bodies(part):
    """Those of torch::nn need all of torch/extension.h."""
    kinds = [[], []]
    for body in list_host_bodies():
        kinds["torch::nn" in body].append(body)
    return kinds[1] if part == "modules" else kinds[0][part::PARTS]


@pytest.mark.slow
@pytest.mark.usefixtures("precompiled")
@pytest.mark.parametrize("part", [*range(PARTS), "modules"])
def test_every_host_program_gives_the_same_bits_or_the_same_error(builders, part):
    bodies = select_bodies(part)
    request = BuildRequest(
        name="corpus", cpp_sources=(write_host_source(bodies),), functions=(("run_program", "Runs one."),)
    )
    results = {strategy: builder.build(request) for strategy, builder in builders.items()}
    assert {strategy: (result.status, result.strategy) for strategy, result in results.items()} == {
        strategy: ("built", strategy) for strategy in builders
    }, results["plain"].log[-3000:]
    assert is_bound_by_our_object(results["fast"]) == (part != "modules")
    libraries = [result.extension for result in results.values()]
    command = [sys.executable, "-c", RUN_ALL, str(len(bodies)), *libraries]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in lines if line.split()[1] not in ("agrees", "raises")] == []
    assert sum(line.split()[1] == "agrees" for line in lines) > len(bodies) // 2
    assert len(lines) == len(bodies)


BOUND = """
#include <torch/torch.h>
static at::Tensor by_value(at::Tensor x) { return x.add_(1); }
at::Tensor by_reference(torch::Tensor& x, const torch::Tensor& y) { x = x + y; return x; }
inline double numbers(int64_t a, int b, double c, float d, bool e) { return a * 1e3 + b * 1e2 + c * 10 + d + e / 2.0; }
float narrow(const float x) { return x / 3; }
bool flip(bool x) { return !x; }
int whole(long x) { return static_cast<int>(x); }
int64_t count(const at::Tensor& x) { return x.numel(); }
std::vector<torch::Tensor> several(const at::Tensor& x) { return {x, x.sum(0)}; }
int64_t some(std::optional<torch::Tensor> x, const c10::optional<at::Tensor>& y) {
  return (x ? x->use_count() : -1) * 10 + (y.has_value() ? y->numel() : -1);
}
int64_t lists(std::vector<int64_t> sizes, const std::vector<int64_t>& more) { return sizes.size() * 10 + more.size(); }
at::Tensor joined(std::vector<at::Tensor> some, const std::vector<torch::Tensor>& more) {
  return torch::cat(some) + torch::cat(more);
}
void nothing() {}
void raises(int64_t kind) { if (kind) throw std::out_of_range("mine"); TORCH_CHECK_TYPE(false, "torch's"); }
namespace inner { at::Tensor undefined() { return {}; } }
using inner::undefined;
"""
NAMES = (
    "by_value", "by_reference", "numbers", "narrow", "flip", "whole", "count", "several", "nothing", "raises",
    "undefined", "some", "lists", "joined",
)  # fmt: skip
BOUND_CALLS = (
    "m.by_value(x)", "m.by_value(None)", "m.by_value(3)", "m.by_value(x=x)",
    "m.by_reference(x, x)", "m.by_reference(x)", "m.numbers(1, 2, 3.5, 4.25, True)",
    "m.numbers(1.0, 2, 3, 4, True)", "m.numbers(True, 2, 3, 4, 0)",
    "m.numbers(1, 2**31, 3, 4, True)", "m.numbers(2**63, 2, 3, 4, True)", "m.numbers(1, 2, 'a', 4, True)",
    "m.numbers(torch.tensor(1), torch.tensor(2), torch.tensor(3.0), 4, True)", "m.narrow(1)", "m.narrow(1e300)",
    "m.flip(False)", "m.flip(None)", "m.flip(1)", "m.whole(-5)", "m.whole(2**40)", "m.count(x)", "m.several(x)",
    "m.some(None, None)", "m.some(x, x)", "m.some(3, x)", "m.some(x)", "m.lists([1, 2], (3,))", "m.lists([1.5], [])",
    "m.lists(x, x)", "m.joined([x, x], [x, x])", "m.joined(x, x)", "m.joined([None], [3])", "m.joined([], [])",
    "m.nothing()", "m.nothing(1)", "m.raises(0)", "m.raises(1)", "m.undefined()", "x",
    *(f"m.{name}.__{what}__" for name in NAMES for what in ("doc", "name")), "sorted(dir(m))", "m.__name__",
)  # fmt: skip
CALL = """
import importlib.util, json, sys
import torch
spec = importlib.util.spec_from_file_location("bound", sys.argv[1])
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
x = torch.arange(12.0).view(3, 4)
for call in json.loads(sys.argv[2]):
    try:
        value = eval(call)
        print(call, "->", type(value).__name__, repr(value))
    except Exception as error:
        print(call, "!!", type(error).__name__, str(error).partition("Exception raised from")[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O1",), ()], ids=["compiled as text", "precompiled"])
@pytest.mark.usefixtures("precompiled")
def test_every_plain_type_is_passed_and_documented_as_by_pybind11(builders, flags):
    functions = tuple((name, f"{name}: doc") for name in NAMES)
    request = BuildRequest(name="bound", cpp_sources=(BOUND,), functions=functions, extra_cflags=flags)
    results = [builder.build(request) for builder in builders.values()]
    assert [(result.status, result.strategy) for result in results] == [("built", "fast"), ("built", "plain")]
    assert [is_bound_by_our_object(result) for result in results] == [True, False]
    printed = [
        subprocess.run([sys.executable, "-c", CALL, result.extension, json.dumps(BOUND_CALLS)], capture_output=True,
                       text=True, check=True).stdout
        for result in results
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert sum(" -> " in line for line in printed[1].splitlines()) > len(NAMES)


LOAD_BOTH = """
import importlib.util, sys
import torch
modules = []
for name, path in zip(("first", "second"), sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(name, path)
    modules.append(importlib.util.module_from_spec(spec))
    spec.loader.exec_module(modules[-1])
print([type(module.run(torch.ones(3))).__name__ for module in modules])
"""


@pytest.mark.slow
def test_functions_of_one_name_in_two_extensions_have_results_of_their_own(fast):
    """Their parameters are the same: the name of a C++ function does not contain its result."""
    sources = ("int64_t run(at::Tensor x) { return x.numel(); }", "at::Tensor run(at::Tensor x) { return x * 2; }")
    requests = [
        BuildRequest(name=name, cpp_sources=(source,), functions=(("run", ""),))
        for name, source in zip(("first", "second"), sources, strict=True)
    ]
    results = [fast.build(request) for request in requests]
    assert all(is_bound_by_our_object(result) for result in results)
    command = [sys.executable, "-c", LOAD_BOTH, *(result.extension for result in results)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "['int', 'Tensor']\n"


WIDER = {
    "a macro of Python's headers": "int f() {\n#ifdef va_end\n  return 1;\n#else\n  return 2;\n#endif\n}",
    "an optional argument": "int f() { return 1; }\nint g(c10::optional<int64_t> n) { return n.value_or(3); }",
    "an overloaded name that is not bound": "int g(int n) { return n; }\nint f() { return g(1); }",
}


@pytest.mark.slow
@pytest.mark.usefixtures("precompiled")
@pytest.mark.parametrize("name", WIDER)
def test_source_that_needs_the_whole_torch_header_gets_it(builders, name):
    functions = (("f", ""), ("g", "")) if "optional" in name else (("f", ""),)
    result = builders["fast"].build(BuildRequest(name="wider", cpp_sources=(WIDER[name],), functions=functions))
    assert (result.status, result.strategy) == ("built", "fast"), result.log[-2000:]
    assert is_bound_by_our_object(result) == ("overloaded" in name)
    script = "import importlib.util as u, torch, sys; s = u.spec_from_file_location('wider', sys.argv[1]); "
    script += "m = u.module_from_spec(s); s.loader.exec_module(m); print(m.f())"
    printed = subprocess.run(
        [sys.executable, "-c", script, result.extension], capture_output=True, text=True, check=True
    )
    assert printed.stdout == "1\n"


@pytest.mark.slow
def test_source_including_the_torch_header_is_built_by_the_fast_strategy(builders):
    source = "#include <torch/extension.h>\n#include <vector>\nat::Tensor f(at::Tensor x) { return x + 1; }"
    request = BuildRequest(name="included", cpp_sources=(source,), functions=(("f", ""),))
    result = builders["fast"].build(request)
    assert (result.status, result.strategy) == ("built", "fast"), result.log[-2000:]


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
@pytest.mark.usefixtures("precompiled")
@pytest.mark.parametrize("name", BROKEN)
def test_both_strategies_report_the_same_compile_error(builders, name):
    request = BuildRequest(name="broken", cpp_sources=(BROKEN[name],), functions=(("f", ""),))
    fast, plain = (builders[strategy].build(request) for strategy in ("fast", "plain"))
    assert [(result.status, result.strategy) for result in (fast, plain)] == [("failed", "fast"), ("failed", "plain")]
    assert read_errors(fast) == read_errors(plain) != []
    if name == "many":
        lines = {error.split(":")[1] for error in read_errors(plain)}
        assert len(lines) == len(WRONG) + 1, "an error in each line and in the binding"
    assert shorten_log(fast.log).splitlines()[0] == shorten_log(plain.log).splitlines()[0]


@pytest.mark.slow
def test_a_missing_library_is_told_by_the_fast_strategy(builders):
    request = BuildRequest(name="unlinked", cpp_sources=("int f() { return 1; }",), functions=(("f", ""),))
    result = builders["fast"].build(replace(request, extra_ldflags=("-lno_such_library",)))
    assert (result.status, result.strategy) == ("failed", "fast")
    assert "no_such_library" in result.log
