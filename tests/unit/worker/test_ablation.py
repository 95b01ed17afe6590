"""What a function leaves behind when it is called without its effect."""

import copy
import subprocess
import sys
from collections import namedtuple

import pytest
import torch

from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer, call_without_effect, poison
from harness.worker.languages import Preparation, prepare_languages

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)
OTHERS = (torch.int64, torch.int32, torch.uint8, torch.bool)


@pytest.mark.parametrize("dtype", FLOATS + OTHERS)
def test_poison_has_the_same_form_and_no_value_in_common(dtype):
    tensor = torch.arange(6).reshape(2, 3).t().to(dtype)
    wrong = poison(tensor)
    assert (wrong.shape, wrong.dtype) == (tensor.shape, tensor.dtype)
    assert not (wrong == tensor).any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_poison_times_zero_is_zero(dtype):
    assert not (poison(torch.ones(3, dtype=dtype)) * 0).any()


def test_a_returned_tensor_is_poisoned():
    a = torch.randn(4)
    result = call_without_effect(torch.add, (a, a), {})
    assert result.shape == a.shape
    assert not torch.isclose(result, a + a).any()


def test_tensors_inside_lists_and_tuples_are_poisoned_and_the_rest_is_kept():
    first, (second, number), none = call_without_effect(lambda x: [x + 1, (x + 2, 7), None], (torch.zeros(2),), {})
    assert first.min() > 1e30
    assert second.min() > 1e30
    assert (number, none) == (7, None)


class Descriptor:
    """As Triton's descriptors of tensors hold them."""

    def __init__(self, base):
        self.base = base


def test_tensors_in_descriptors_and_named_tuples_do_not_get_what_is_written():
    pair = namedtuple("pair", "out given")
    out, a = torch.zeros(4), torch.ones(4)
    call_without_effect(lambda to: to.base.copy_(a), (Descriptor(out),), {})
    assert out.min() > 1e30
    out = torch.zeros(4)
    call_without_effect(lambda both: both.out.copy_(both.given), (pair(out, a),), {})
    assert out.min() > 1e30
    assert torch.equal(a, torch.ones(4))


def test_disabled_function_fills_outputs_with_nan_and_keeps_other_arguments():
    out, a = torch.zeros(4), torch.randn(4)
    kept = a.clone()
    call_without_effect(torch.add, (a, 1.0), {"out": out})
    assert not torch.isclose(out, a + 1).any()
    assert torch.equal(a, kept)


def test_a_tensor_that_was_written_and_returned_keeps_no_right_value():
    out, a = torch.zeros(4), torch.ones(4)
    result = call_without_effect(torch.add, (a, a), {"out": out})
    assert not (result == 2).any()
    assert not (out == 2).any()


def test_a_view_with_gaps_keeps_its_strides_in_the_call():
    left, right = torch.randn(3, 8).chunk(2, 1)
    seen = []
    call_without_effect(lambda *tensors: seen.extend(tensors), (left, right), {})
    assert [tensor.stride() for tensor in seen] == [(8, 1), (8, 1)]
    assert torch.equal(seen[1], right)


def test_a_tensor_of_addresses_makes_the_ablation_inconclusive(tmp_path):
    observer, tensor = Observer("ablate", tmp_path), torch.zeros(4)
    addresses = torch.tensor([tensor.data_ptr()])
    assert observer.ablate(lambda a, b: a, (addresses, tensor), {}) is None
    assert not observer.ablates_everything()


def test_a_function_that_may_work_on_addresses_is_not_called(tmp_path):
    calls = []
    observer = Observer("ablate", tmp_path)
    tensor = torch.zeros(4)
    assert observer.ablate(calls.append, (tensor.data_ptr(),), {}) is None
    assert observer.ablate(calls.append, (tensor, tensor.data_ptr()), {}) is None
    assert calls == []
    assert not observer.ablates_everything()


def test_nothing_follows_from_a_function_that_fails_without_its_effect(tmp_path):
    observer = Observer("ablate", tmp_path)
    with pytest.raises(RuntimeError):
        observer.ablate(torch.mm, (torch.zeros(2, 3), torch.zeros(2, 3)), {})
    assert not observer.ablates_everything()


def test_functions_that_ran_without_effect_are_everything(tmp_path):
    observer = Observer("ablate", tmp_path)
    observer.ablate(torch.relu, (torch.zeros(3),), {})
    assert observer.ablates_everything()


def test_a_plain_worker_touches_nothing(tmp_path):
    extension = type(torch)("extension")
    extension.relu = torch.relu
    assert Observer("plain", tmp_path).watch(lambda: extension) is extension
    assert extension.relu is torch.relu


COMPILED_AHEAD = """
import importlib.util, sys
from pathlib import Path
import torch
from harness.worker.emulated.cuda import install as install_cuda
from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer
from harness.worker.languages import Preparation, prepare_languages

how, path = sys.argv[1:]
target = {"name": "H100", "major": 9, "minor": 0, "total_memory": 1 << 30, "multi_processor_count": 132,
          "warp_size": 32, "max_threads_per_block": 1024, "regs_per_multiprocessor": 65536,
          "shared_memory_per_block_optin": 232448, "clock_rate": 1410000}
install_cuda(target)
observer = Observer("ablate", Path(path))
prepare_languages(["triton"], Preparation(
    observer=observer, link=EmulatorLink(), target=target, compiles=how != "interpreted"))

import triton
import triton.language as tl

source = Path(path) / "kernel.py"
source.write_text("import triton\\nimport triton.language as tl\\n@triton.jit\\n"
    "def twice(x, out, size: tl.constexpr):\\n"
    "    tl.store(out + tl.arange(0, size), tl.load(x + tl.arange(0, size)) * 2)\\n")
spec = importlib.util.spec_from_file_location("kernel", source)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

def launch(*args):  # instead of a GPU
    x, out = (one for one in args if isinstance(one, torch.Tensor))
    out.copy_(x * 2)

triton.runtime.driver.active.launcher_cls = lambda *_: launch
x, out = torch.randn(16).cuda(), torch.zeros(16).cuda()
compiled = module.twice.warmup(torch.float32, torch.float32, 16, grid=(1,))
if how == "by address":
    compiled.run(1, 1, 1, 0, 1 << 40, None, None, None, None, x, out, 16)
else:
    compiled[(1, 1, 1)](x, out, 16)
print("kept" if torch.equal(out, x * 2) else "ablated", observer.ablates_everything())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "told"), [("interpreted", "ablated True"), ("compiled", "ablated True"), ("by address", "ablated False")]
)
def test_a_triton_kernel_compiled_ahead_has_no_effect_where_it_is_launched(how, told, tmp_path):
    pytest.importorskip("triton", reason="the language whose kernels are compiled ahead")
    command = [sys.executable, "-c", COMPILED_AHEAD, how, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.splitlines()[-1] == told


@pytest.mark.parametrize("mode", ["profile", "ablate"])
def test_a_wrapped_function_does_not_become_a_method(mode, tmp_path):
    extension = type(torch)("extension")
    extension.relu = torch.relu
    Observer(mode, tmp_path).watch(lambda: extension)
    holder = type("Holder", (), {"kernel": extension.relu})()
    assert holder.kernel(torch.ones(2)).shape == (2,)
    assert holder.kernel.__name__ == "relu"
    assert copy.deepcopy(extension.relu) is extension.relu
    assert copy.copy(extension.relu)(torch.ones(2)).shape == (2,)


def test_a_language_without_a_module_in_the_worker_needs_none(tmp_path):
    prepare_languages(["cpp"], Preparation(observer=Observer("ablate", tmp_path), link=EmulatorLink()))
