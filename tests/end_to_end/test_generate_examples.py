"""The worked examples of the prompts are real: they compile and pass the check script that the prompt shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.domain import Language, Problem
from harness.generate.prompting import read_host_facts, render_prompt

PROMPTS = Path(harness.__file__).resolve().parent.parent / "prompts"


def _run_check(folder: Path, language: Language) -> str:
    shutil.copy(PROMPTS / "_shared" / "example_reference.py", folder / "reference.py")
    shutil.copy(PROMPTS / "_shared" / f"example_{language}.py", folder / "answer.py")
    problem = Problem(name="example", suite="examples", source=(folder / "reference.py").read_text())
    host = read_host_facts()
    prompt = render_prompt(problem, prompt="script", language=language, gpu=None, host=host, prompts_dir=PROMPTS)
    check = next(
        one for one in re.findall(r"```python\n(.*?)```", prompt.text, re.DOTALL) if "all checks passed" in one
    )
    (folder / "check.py").write_text(check)
    done = subprocess.run(
        [sys.executable, "check.py"],
        cwd=folder,
        env={
            **os.environ,
            "TORCH_EXTENSIONS_DIR": str(folder / "built"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_cpp_example_passes_the_check_script(tmp_path: Path) -> None:
    assert _run_check(tmp_path, "cpp").endswith("all checks passed\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
def test_the_torch_example_passes_the_check_script(tmp_path: Path) -> None:
    assert _run_check(tmp_path, "torch").endswith("all checks passed\n")


@pytest.mark.gpu
@pytest.mark.slow
def test_the_cuda_example_passes_the_check_script(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU here")
    assert _run_check(tmp_path, "cuda").endswith("all checks passed\n")
