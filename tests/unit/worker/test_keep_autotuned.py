"""What Triton's autotuning measured in one worker is taken by the next, and noted. Triton's own code writes and reads
the files; the times are made up, since nothing is launched."""

import subprocess
import sys
from base64 import b64encode

import pytest

from harness.evaluation.autotuned import MOST_CHARACTERS, note_autotuned
from harness.worker import compiled_files

TUNE = """
import sys
from pathlib import Path
from harness.worker import compiled_files
from harness.worker.jit_languages import keep_autotuned

compiled_files.place(Path(sys.argv[1]), {})
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

driver.set_active(Driver())
keep_autotuned()
sys.path.insert(0, ".")
from kernels import scale
tuner = scale
measured = []

def measure():
    measured.append(1)
    tuner.configs_timings = {config: [10.0 + index, 9.0, 11.0] for index, config in enumerate(reversed(tuner.configs))}
    tuner.cache[(1024, "torch.float32")] = tuner.configs[-1]

tuner.check_disk_cache((1024, "torch.float32"), tuner.configs, measure)
print(len(measured), tuner.cache[(1024, "torch.float32")].kwargs["BLOCK"])
"""
KERNEL = """
import triton
import triton.language as tl

@triton.autotune([triton.Config(MORE | {{"BLOCK": size}}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    pass
"""


def tune(folder, more="{}"):
    (folder / "kernels.py").write_text(KERNEL.replace("{{", "{").replace("}}", "}").replace("MORE", more))
    command = [sys.executable, "-c", TUNE, str(folder / "compiled")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(autouse=True)
def _need_triton():
    pytest.importorskip("triton", reason="Triton is not installed")


def test_the_second_worker_measures_nothing_and_chooses_the_same(tmp_path):
    assert tune(tmp_path) == ["1", "512"]
    assert tune(tmp_path) == ["0", "512"]
    (note,) = note_autotuned(compiled_files.read(tmp_path / "compiled"))
    assert note.check == "autotuned"
    assert note.message == (
        "scale for (1024, 'torch.float32'): BLOCK 512, num_warps 8, num_stages 3, of 2 configurations"
    )


def test_values_that_cannot_be_written_are_measured_by_each_worker(tmp_path):
    for _ in range(2):
        assert tune(tmp_path, more='{"TYPE": tl.float32}') == ["1", "512"]
    assert note_autotuned(compiled_files.read(tmp_path / "compiled")) == ()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b'{"configs_timings": []}', b'{"key": 1, "configs_timings": [[{}, 1]]}', b"\xff",
     b'{"key": [], "configs_timings": [[{"kwargs": {}, "num_warps": 1, "num_stages": 1}, "x"], [{}, 1]]}'],
)  # fmt: skip
def test_other_files_of_that_name_are_left_out(content):
    assert note_autotuned({"triton/k.autotune.json": b64encode(content).decode()}) == ()


def test_a_note_is_short():
    content = b'{"key": [], "configs_timings": [[{"kwargs": {"%s": 1}, "num_warps": 1, "num_stages": 1}, 1]]}' % (
        b"x" * 999
    )
    (note,) = note_autotuned({"triton/k.autotune.json": b64encode(content).decode()})
    assert len(note.message) == MOST_CHARACTERS
