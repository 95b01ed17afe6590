"""Every language has rules, and each program a language."""

from pathlib import Path
from typing import get_args

import pytest

import harness
from harness.domain import BuildRequest, Language, UsageError
from harness.hardware.host import list_gpus
from harness.languages import LANGUAGES, detect_language, find_devices, list_compiled_in_worker
from harness.languages.rules import explain_missing


def test_every_language_of_the_domain_has_rules():
    assert tuple(LANGUAGES) == get_args(Language)


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ('load_inline(name="x", cuda_sources="...")', "cuda"),
        ("__global__ void add(float* x) {}", "cuda"),
        ('load_inline(name="x", cpp_sources="...")', "cpp"),
        ("class ModelNew: ...", "cpp"),
        ("import triton\n@triton.jit\ndef add(x): ...", "triton"),
        ("from triton import jit\n@jit(debug=True)\ndef add(x): ...", "triton"),
        ("import triton\nkernel = triton.jit(add)", "triton"),
        ("@triton.autotune(configs=[], key=[])\n@triton.jit\ndef add(x): ...\nload_inline(cuda_sources='')", "triton"),
        ('import triton\nSOURCE = """\n@triton.jit\ndef add(x): ...\n"""\nexec(SOURCE)', "triton"),
        ("import helion\n@helion.kernel(config=C)\ndef add(x): ...", "helion"),
        ("import helion, triton\nadd = helion.kernel(plain)\n@triton.jit\ndef other(x): ...", "helion"),
        ("import cutlass\n@cute.kernel\ndef add(x): ...", "cute"),
        ("import tilelang\n@tilelang.jit\ndef make(n):\n    @T.prim_func\n    def add(x): ...", "tilelang"),
        ("import cutlass\nextension = load_inline(cuda_sources='')", "cuda"),
        ("# no helion.kernel\n@triton.jit\ndef add(x): ...", "triton"),
        ("# like triton.jit\nload_inline(cuda_sources='')", "cuda"),
        ("import torch\n@torch.compile\ndef add(x): ...", "cpp"),
        ("import torch\n@torch.jit.script\ndef add(x): ...", "cpp"),
    ],
)
def test_each_program_is_told_by_its_kernels(source, language):
    assert detect_language(source) == language


def test_triton_names_its_kernels_in_the_order_of_the_program():
    source = "@triton.jit\ndef first(x): ...\ndef host(): ...\n@triton.jit\ndef second(x): ..."
    assert LANGUAGES["triton"].list_kernels(source) == ("first", "second")
    assert LANGUAGES["cuda"].list_kernels(source) == ()


def test_helion_names_its_generated_kernels_and_triton_kernels():
    source = "@helion.kernel()\ndef first(x): ...\n@triton.jit\ndef second(x): ..."
    assert LANGUAGES["helion"].list_kernels(source) == ("_helion_first*", "second")


def test_cpp_refuses_extensions_with_cuda_sources_and_names_the_remedy():
    with_kernel = BuildRequest(name="add", cpp_sources=(), cuda_sources=("__global__ void add() {}",))
    without = BuildRequest(name="add", cpp_sources=("int add() { return 1; }",), cuda_sources=())
    assert "--language cuda" in LANGUAGES["cpp"].refuses(with_kernel)
    assert LANGUAGES["cpp"].refuses(without) is None
    assert LANGUAGES["cuda"].refuses(with_kernel) is None
    assert "plain PyTorch" in LANGUAGES["torch"].refuses(without)


def test_a_language_that_needs_a_package_says_how_to_install_it(tmp_path, monkeypatch):
    assert [LANGUAGES[name].find_missing(True) for name in ("cuda", "torch", "cpp")] == [None, None, None]
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert "pip install triton" in LANGUAGES["triton"].find_missing(False)
    assert "pip install -e '.[helion]' in the checkout" in LANGUAGES["helion"].find_missing(False)
    assert "pip install -e '.[cute]' in the checkout" in LANGUAGES["cute"].find_missing(True)
    assert "pip install -e '.[tilelang]' in the checkout" in LANGUAGES["tilelang"].find_missing(True)


def test_the_emulated_device_names_the_triton_that_it_needs(tmp_path, monkeypatch):
    (tmp_path / "triton-3.2.0.dist-info").mkdir()
    (tmp_path / "triton-3.2.0.dist-info" / "METADATA").write_text("Name: triton\nVersion: 3.2.0\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert LANGUAGES["triton"].find_missing(False) is None
    assert LANGUAGES["triton"].find_missing(True) == "the emulated device needs Triton 3.6 or newer, found 3.2.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "not installed"), ("x = 1", None), ("from json import nothing", "cannot import name 'nothing'")],
)
def test_a_package_that_is_missing_or_cannot_be_imported_is_explained(tmp_path, monkeypatch, text, expected):
    module = f"package_of_{tmp_path.name}"
    if text is not None:
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = explain_missing(module, "Some Language", "helion")
    assert found is None if expected is None else expected in found


def test_a_long_chain_of_calls_is_no_decorator():
    source = f"import triton\n# triton.jit\nx = y{'.b()' * 400}\nz = y{'.b' * 400}()\n"
    assert LANGUAGES["triton"].list_kernels(source) == ()


@pytest.mark.skipif(bool(list_gpus()), reason="this machine has a GPU")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_gpu_that_is_not_here_is_named_whatever_the_language(language, device):
    with pytest.raises(UsageError, match=f"{device} was requested with --device, but no NVIDIA GPU was found"):
        find_devices(device, language)


@pytest.mark.parametrize(
    ("source", "languages"),
    [
        ("import helion", ("triton", "helion")),
        ("import triton, helion", ("triton", "helion")),
        ("import cutlass.cute as cute, tilelang", ("cute", "tilelang")),
        ("#include <cutlass/gemm.h>", ()),
        ("torch.compile(model)", ()),
    ],
)
def test_a_worker_prepares_a_language_after_the_one_it_translates_to(source, languages):
    assert list_compiled_in_worker(source) == languages


def test_every_module_of_the_worker_for_a_language_is_named_as_one():
    folder = Path(harness.__file__).parent / "worker" / "languages"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} <= LANGUAGES.keys()
