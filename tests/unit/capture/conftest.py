"""Captures a model from a script, as `harness capture` does."""

import json
import textwrap

import pytest

from harness.cli.main import run_command
from harness.domain.files import replacing

HEADER = "import torch\nfrom torch import nn\n"


@pytest.fixture
def capture(tmp_path, monkeypatch, capsys, measured_peaks):
    """Write the script, capture `net`, and return exit code, record and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(measured_peaks))
    monkeypatch.delenv("HARNESS_CACHE_DIR", raising=False)

    def run(script, *options, model="net"):
        (tmp_path / "script.py").write_text(HEADER + textwrap.dedent(script))
        defaults = () if "--calls" in options else ("--calls", "4")
        code = run_command(["capture", "script.py", "--model", model, "--name", "net", "--json", *defaults, *options])
        output = capsys.readouterr()
        return code, json.loads(output.out) if output.out else None, output.err

    return run


@pytest.fixture(scope="session")
def measured_peaks(tmp_path_factory):
    """Of a machine whose peaks are known already, so that no test measures them."""
    from harness.evaluation.timing.roofline import FILE_NAME, name_device
    from harness.sandbox.devices import open_device

    folder = tmp_path_factory.mktemp("cache")
    record = {"hardware": "CPU", "bandwidth_gb_s": 1e4, "tflops_by_dtype": {"float32": 1e3}}
    with replacing(folder / "harness" / "builds" / "machine" / FILE_NAME) as partial:
        partial.write_text(json.dumps({name_device(open_device("cpu")): record}))
    return folder
