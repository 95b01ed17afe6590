import pytest

from harness.domain import UsageError
from harness.executors.settings import LocalSettings
from harness.pipeline.options import EvaluateOptions


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "emulated"])
def test_an_unknown_gpu_is_wrong_usage_on_every_device(device):
    with pytest.raises(UsageError, match="unknown GPU 'H1000'; did you mean H100"):
        EvaluateOptions(device=device, gpu="H1000")
    assert LocalSettings(device=device, gpu="h 100").gpu == "h 100"
