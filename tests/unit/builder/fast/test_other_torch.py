"""The strategies with another torch than that of the tests: HARNESS_TEST_PYTHON names an interpreter that has it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

INTERPRETER = "HARNESS_TEST_PYTHON"
TRY = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from harness.builder.toolchain import probe_toolchain
from harness.doctor.trials import try_strategies
toolchain = probe_toolchain()
trials = [asdict(trial) for trial in try_strategies(toolchain, Path(sys.argv[1]))]
print(json.dumps({"torch": toolchain.torch_version, "cuda": toolchain.can_build_cuda, "trials": trials}))
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_strategy_works_with_the_other_torch(tmp_path):
    python = os.environ.get(INTERPRETER)
    if python is None:
        pytest.skip(f"{INTERPRETER} names no interpreter with another torch")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[4])}
    finished = subprocess.run(
        [python, "-c", TRY, str(tmp_path)], env=environment, capture_output=True, text=True, check=False, timeout=3500
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(finished.stdout.splitlines()[-1])
    names = {trial["part"].removeprefix("build ") for trial in found["trials"]}
    assert {"cpp fast", "cpp plain"} | ({"cuda fast", "cuda plain"} if found["cuda"] else set()) <= names
    assert [trial for trial in found["trials"] if not trial["present"]] == [], found["torch"]
