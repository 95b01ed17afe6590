"""Which strategies are tried; `test_cli_regress_and_doctor.py` and `test_other_torch.py` try them."""

from dataclasses import replace

import pytest

from harness.builder.toolchain import probe_toolchain
from harness.doctor.trials import _list_strategies


@pytest.mark.parametrize(("nvcc", "more"), [(None, ()), ("13.0.48", ("cuda fast", "cuda plain"))])
def test_both_strategies_of_cuda_are_tried_where_there_is_nvcc(nvcc, more):
    toolchain = replace(probe_toolchain(), compiler_version="12.2", nvcc_version=nvcc, torch_cuda="13.0")
    strategies = [f"{one.language} {one.name}" for one in _list_strategies(toolchain)]
    assert strategies == [*more, "cuda emulated", "cpp fast", "cpp plain"]
