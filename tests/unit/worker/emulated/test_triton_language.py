"""Every function of `triton.language` in the interpreter, over dtypes: `triton_cases` names and checks them.

A new version of Triton may bring functions: add a case, or name them in REVIEWED. What the interpreter lacks must end
as `uncovered`.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("triton") is None:
    pytest.skip("the emulated device runs Triton kernels in Triton's own interpreter", allow_module_level=True)

SCRIPT = Path(__file__).with_name("triton_language.py")


@pytest.mark.slow
def test_every_function_of_the_language_was_looked_at_and_gives_exact_results():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == {"wrong": [], "unknown": [], "missing": []}
