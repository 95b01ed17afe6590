"""Where the scratch folder of a worker lies, in real namespaces."""

import subprocess
import sys
import tempfile

import pytest

CODE = """
import os, sys
from pathlib import Path
from harness.worker.isolation import namespaces
if not namespaces.enter_namespaces():
    sys.exit(77)
child = os.fork()
if not child:
    namespaces.close_file_system()
    namespaces.mount_scratch(sys.argv[1], 1 << 20)
    Path(sys.argv[1], "file").write_text("written")
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("parent", ["/dev/shm", tempfile.gettempdir()])
def test_a_scratch_folder_can_be_written_to_wherever_it_lies(parent):
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        finished = subprocess.run(
            [sys.executable, "-c", CODE, folder], capture_output=True, text=True, timeout=60, check=False
        )
    if finished.returncode == 77:
        pytest.skip("needs user namespaces, which are refused here")
    assert finished.returncode == 0, finished.stderr
