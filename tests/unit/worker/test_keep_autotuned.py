"""What Triton's autotuning measured in one worker is taken by the next, and noted. Triton's own code writes and reads
the files; the times are made up, since nothing is launched."""

import json
import subprocess
import sys
from base64 import b64encode

import pytest

from harness.evaluation.model_workers import MOST_CHARACTERS, note_autotuned
from harness.worker import compiled_files

TUNE = """
import json, runpy, sys
from pathlib import Path
from harness.worker import compiled_files
from harness.worker.languages.triton import keep_autotuned

compiled_files.place(Path("compiled"), {})
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Driver:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

driver.set_active(Driver())
keep_autotuned()
key = 1024, "torch.float32"

def tune(file):
    tuner, measured = runpy.run_path(file)["scale"], []

    def measure():
        measured.append(file)
        tuner.configs_timings = {config: [10.0 - index, 9.0, 11.0] for index, config in enumerate(tuner.configs)}
        tuner.cache[key] = tuner.configs[-1]

    tuner.check_disk_cache(key, tuner.configs, measure)
    return len(measured), tuner.cache[key].kwargs["BLOCK"]

print(json.dumps([tune(file) for file in sys.argv[1:]]))
"""
KERNEL = """
import triton
import triton.language as tl

@triton.autotune([triton.Config({MORE"BLOCK": size}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    pass
"""


@pytest.mark.slow
def test_later_workers_choose_what_the_first_measured_unless_it_cannot_be_written(tmp_path):
    """Each file is run twice, as two workers do."""
    pytest.importorskip("triton", reason="Triton is not installed")
    (tmp_path / "plain.py").write_text(KERNEL.replace("MORE", ""))
    (tmp_path / "typed.py").write_text(KERNEL.replace("MORE", '"TYPE": tl.float32, '))
    command = [sys.executable, "-c", TUNE, *["plain.py"] * 2, *["typed.py"] * 2]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[1, 512], [0, 512], [1, 512], [1, 512]]
    (note,) = note_autotuned(compiled_files.read(tmp_path / "compiled"))
    assert note.check == "autotuned"
    assert (
        note.message == "scale for (1024, 'torch.float32'): BLOCK 512, num_warps 8, num_stages 3, of 2 configurations"
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b'{"configs_timings": []}', b'{"key": 1, "configs_timings": [[{}, 1]]}', b"\xff",
     b"[" * 100_000,
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
