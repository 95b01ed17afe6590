"""What torch's two functions become: a request on the line to the evaluator, checked by the evaluator's own reader."""

import inspect
import os
import sysconfig
import threading
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import WorkerLost
from harness.protocol import Channel, make_pair
from harness.sandbox.exchange import parse_build_request
from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer
from harness.worker.load_inline_hook import _CARRIED, _WITHOUT_EFFECT, LoadInlineHook

REFUSED = {"sycl_sources": "void f();", "with_sycl": True, "is_standalone": True}
# Signatures of older versions of torch, which the recorder meets on other machines.
OLDER_LOAD_INLINE = (
    "name", "cpp_sources", "cuda_sources", "sycl_sources", "functions", "extra_cflags", "extra_cuda_cflags",
    "extra_sycl_cflags", "extra_ldflags", "extra_include_paths", "build_directory", "verbose", "with_cuda", "with_sycl",
    "is_python_module", "with_pytorch_error_handling", "keep_intermediates", "use_pch", "no_implicit_headers",
)  # fmt: skip
MODULE = """
#include <Python.h>
#define JOIN(a, b) a##b
#define INIT(name) JOIN(PyInit_, name)
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "twin", "", -1, methods};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder that is a worker's home and the one it works in."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def refuse_all(request):
    return None


@pytest.fixture
def start_recorder(scratch):
    """A recorder whose evaluator is a thread: (recorder, the requests that came)."""
    lines, threads = [], []

    def start(find_library=refuse_all):
        ours, theirs = (Channel(end) for end in make_pair())
        requests = []

        def answer_all():
            try:
                while True:
                    request = parse_build_request(theirs.receive()[0]["request"])
                    requests.append(request)
                    library = find_library(request)
                    if library is None:
                        theirs.send({"kind": "built", "ok": False, "log": "not built"})
                        continue
                    with Path(library).open("rb") as file:
                        theirs.send({"kind": "built", "ok": True, "log": ""}, (file.fileno(),))
            except WorkerLost:
                return

        lines.extend([ours, theirs])
        threads.append(threading.Thread(target=answer_all))
        threads[-1].start()
        return LoadInlineHook(ours, scratch, Observer("plain", scratch), EmulatorLink()), requests

    yield start
    for line in lines[::2]:
        line.close()
    for thread in threads:
        thread.join(10)
    for line in lines[1::2]:
        line.close()


@pytest.fixture
def request_of(start_recorder):
    """The one request that a call of load_inline or load sends."""
    recorder, requests = start_recorder()

    def ask(function="load_inline", /, *args, **kwargs):
        with pytest.raises(RuntimeError, match=r"Error building extension 'ext(_v\d)?': not built"):
            getattr(recorder, function)(*args, **kwargs)
        return requests.pop()

    return ask


@pytest.mark.parametrize("function", ["load_inline", "load"])
def test_every_keyword_of_torchs_functions_is_carried_refused_or_without_effect(function):
    names = set(inspect.signature(getattr(cpp_extension, function)).parameters) | set(OLDER_LOAD_INLINE)
    assert names <= _CARRIED | _WITHOUT_EFFECT | set(REFUSED)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_unsupported_keyword_is_refused_by_name(start_recorder, name):
    recorder, requests = start_recorder()
    function = recorder.load if name == "is_standalone" else recorder.load_inline
    sources = {"sources": []} if name == "is_standalone" else {"cpp_sources": ""}
    with pytest.raises(RuntimeError, match=f"{name}=.* is not supported"):
        function("ext", **sources, **{name: REFUSED[name]})
    assert requests == []


def test_keywords_that_change_no_result_are_accepted(request_of, scratch):
    known = set(inspect.signature(cpp_extension.load_inline).parameters)
    values = {
        "build_directory": str(scratch), "verbose": True, "keep_intermediates": False, "use_pch": True,
        "gil_not_used": True, "extra_sycl_cflags": ["-O3"], "sycl_sources": None, "with_sycl": False,
    }  # fmt: skip
    plain = request_of("load_inline", "ext", "int f();")
    assert request_of("load_inline", "ext", "int f();", **{k: v for k, v in values.items() if k in known}) == plain


def test_a_keyword_that_torch_does_not_have_is_a_type_error(start_recorder):
    with pytest.raises(TypeError, match="no_such_keyword"):
        start_recorder()[0].load_inline("ext", "int f();", no_such_keyword=1)


def test_a_recorder_follows_the_signature_of_the_torch_that_is_there(start_recorder, monkeypatch):
    parameters = [inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [parameters[0].replace(name=name, default=None) for name in OLDER_LOAD_INLINE[1:]]

    def older(*args, **kwargs):
        raise AssertionError("torch's own function is not called")

    older.__signature__ = inspect.Signature(parameters)
    monkeypatch.setattr(cpp_extension, "load_inline", older)
    recorder, requests = start_recorder()
    with pytest.raises(TypeError, match="gil_not_used"):
        recorder.load_inline("ext", "int f();", gil_not_used=True)
    with pytest.raises(RuntimeError, match="not built"):
        recorder.load_inline("ext", "int f();", "__global__ void k();", None, ["f"], use_pch=True)
    assert (requests[0].cuda_sources, requests[0].functions) == (("__global__ void k();",), (("f", "f"),))


@pytest.mark.parametrize(
    ("given", "functions"),
    [("f", (("f", "f"),)), (["f", "g"], (("f", "f"), ("g", "g"))), ({"f": "Adds."}, (("f", "Adds."),)), (None, None)],
)
def test_functions_are_a_name_a_list_or_a_dict(request_of, given, functions):
    assert request_of("load_inline", "ext", ["int f();", "int g();"], functions=given).functions == functions


def test_functions_of_another_kind_are_torchs_own_error(start_recorder):
    with pytest.raises(ValueError, match="Expected 'functions' to be a list or dict"):
        start_recorder()[0].load_inline("ext", "int f();", functions=("f",))


def test_options_are_carried(request_of):
    request = request_of(
        "load_inline", name="ext", cpp_sources=["int f();"], cuda_sources="__global__ void k();",
        extra_cflags=["-O3", "-fopenmp"], extra_cuda_cflags=["--use_fast_math"], extra_ldflags=["-lgomp"],
        with_cuda=True, is_python_module=False, with_pytorch_error_handling=False, no_implicit_headers=True,
    )  # fmt: skip
    assert (request.cpp_sources, request.cuda_sources) == (("int f();",), ("__global__ void k();",))
    assert request.extra_cflags == ("-O3", "-fopenmp")
    assert (request.extra_cuda_cflags, request.extra_ldflags) == (("--use_fast_math",), ("-lgomp",))
    assert (request.with_cuda, request.is_python_module) == (True, False)
    assert (request.with_pytorch_error_handling, request.no_implicit_headers) == (False, True)


def test_string_as_a_list_of_flags_is_split_as_in_torch(request_of):
    assert request_of("load_inline", "ext", "int f();", extra_cflags="-O3").extra_cflags == ("-", "O", "3")


@pytest.mark.parametrize("way", ["extra_include_paths", "build_directory", "flag"])
def test_headers_that_the_candidate_wrote_go_along(request_of, scratch, way):
    folder = scratch / "mine"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "own.cuh").write_text("// own")
    (folder / "notes.bin").write_bytes(b"\xff")
    options = {
        "extra_include_paths": {"extra_include_paths": [str(folder)]},
        "build_directory": {"build_directory": str(folder)},
        "flag": {"extra_cuda_cflags": ["-I mine"]},
    }[way]
    assert request_of("load_inline", "ext", "int f();", **options).headers == (("deep/own.cuh", "// own"),)


def test_first_of_two_headers_with_one_name_is_used(request_of, scratch):
    for name in ("b", "a"):
        (scratch / name).mkdir()
        (scratch / name / "same.h").write_text(name)
    request = request_of("load_inline", "ext", "int f();", extra_include_paths=["b", "a"])
    assert request.headers == (("same.h", "b"),)


def test_system_folder_is_searched_by_the_compiler_and_not_sent(request_of):
    folder = sysconfig.get_path("include")
    request = request_of("load_inline", "ext", "int f();", extra_include_paths=[folder])
    assert request.headers == ()
    assert request.extra_cflags == request.extra_cuda_cflags == (f"-I{os.path.realpath(folder)}",)


def test_load_sends_its_files_and_the_headers_beside_them(request_of, scratch):
    (scratch / "add.cpp").write_text('#include "add.h"\n')
    (scratch / "add.h").write_text("int add(int, int);\n")
    request = request_of("load", "ext", ["add.cpp"])
    assert request.files == (("add.cpp", '#include "add.h"\n'),)
    assert ("add.h", "int add(int, int);\n") in request.headers


def test_source_file_with_an_unsendable_name_raises(start_recorder, scratch):
    (scratch / "my kernel.cpp").write_text("")
    with pytest.raises(RuntimeError, match=r"'my kernel\.cpp' must have a name of"):
        start_recorder()[0].load("ext", ["my kernel.cpp"])


def test_headers_without_end_are_refused(start_recorder, scratch):
    (scratch / "huge.h").write_text("x" * (4 * 1024 * 1024 + 1))
    with pytest.raises(RuntimeError, match=r"headers below .* exceed"):
        start_recorder()[0].load_inline("ext", "", build_directory=".")


def test_different_requests_of_one_name_get_unused_versions(start_recorder):
    recorder, requests = start_recorder()
    flags = {"extra_cflags": ["-O3"]}
    for name, source, options in [
        ("step_v1", "a", {}), ("step", "a", {}), ("step", "b", {}), ("step", "b", flags), ("step", "a", {}),
        ("step_v1", "b", {}), ("step_v2", "a", {}),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match="not built"):
            recorder.load_inline(name, source, **options)
    names = ["step_v1", "step", "step_v2", "step_v3", "step", "step_v1_v1", "step_v2_v1"]
    assert [request.name for request in requests] == names


@pytest.fixture
def load_twin(start_recorder, build_cache):
    """A function that builds and loads `twin`, whose `answer` is the given number; and the requests."""

    def run_plainly(command, *, readable, writable):
        return list(command)

    builder = Builder(
        cache=build_cache, toolchain=probe_toolchain(), wrap=run_plainly, environment=lambda: dict(os.environ)
    )
    recorder, requests = start_recorder(lambda request: builder.build(request).extension)

    def load(answer, function="load_inline", **options):
        if function == "load_inline":
            source = MODULE.replace("ANSWER", str(answer))
            return recorder.load_inline("twin", source, no_implicit_headers=True, **options)
        Path("twin.cpp").write_text(MODULE.replace("ANSWER", str(answer)))
        return recorder.load("twin", ["twin.cpp"], **options)

    return load, requests


@pytest.mark.usefixtures("needs_compiler")
def test_extensions_of_one_name_are_all_there_and_equal_ones_are_one(load_twin):
    load, requests = load_twin
    modules = [load(1), load(2), load(3, "load"), load(1), load(3, "load")]
    assert [module.answer() for module in modules] == [1, 2, 3, 1, 3]
    assert [module.__spec__.name for module in modules] == ["twin", "twin_v1", "twin_v2", "twin", "twin_v2"]
    assert (modules[3] is modules[0], modules[4] is modules[2]) == (True, True)
    assert len(requests) == 3


@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.slow
def test_a_library_of_operators_that_is_requested_again_is_loaded_once(load_twin):
    load, requests = load_twin
    paths = [load(number, is_python_module=False) for number in (1, 2, 1)]
    assert [Path(path).name for path in paths] == ["twin.so", "twin_v1.so", "twin.so"]
    assert len(requests) == 2


CUDA_80, CUDA_90 = ("-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90")


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        ("9.0", (CUDA_90,)),
        ("8.0;9.0", (CUDA_80, CUDA_90)),
        ("8.0 9.0", (CUDA_80, CUDA_90)),
        ("9.0a", ("-gencode=arch=compute_90a,code=sm_90a",)),
        ("Hopper", ("-gencode=arch=compute_90,code=compute_90", CUDA_90)),
        ("native", ()),
        ("", ()),
    ],
)
def test_targets_that_the_program_sets_are_carried_as_flags(request_of, monkeypatch, value, flags):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", value)
    assert request_of("load_inline", "ext", "", "__global__ void k();").extra_cuda_cflags == flags
    assert request_of("load_inline", "ext", "int f();").extra_cuda_cflags == ()


def test_targets_of_load_are_carried_unless_flags_name_some(request_of, scratch, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    (scratch / "k.cu").write_text("")
    assert request_of("load", "ext", ["k.cu"], extra_cuda_cflags=["-O3"]).extra_cuda_cflags == (CUDA_80, "-O3")
    assert request_of("load", "ext", ["k.cu"], extra_cuda_cflags=[CUDA_90]).extra_cuda_cflags == (CUDA_90,)


def test_a_target_that_torch_does_not_know_is_torchs_own_error(start_recorder, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "sm_90")
    with pytest.raises(ValueError, match="sm_90"):
        start_recorder()[0].load_inline("ext", "", "__global__ void k();")
