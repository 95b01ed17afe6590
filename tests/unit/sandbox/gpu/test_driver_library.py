"""Stubs of the forwarding driver library: one for each function, notes only where work would be missed."""

import pytest

from harness.sandbox.gpu.driver_library import write_stubs


def list_notes(*names):
    """Names whose stub notes the call."""
    stubs = write_stubs(names).partition(".section")[0].split(".globl ")
    return [stub.split()[0] for stub in stubs if "call harness_note" in stub]


def test_each_function_jumps_to_its_own_slot():
    stubs = write_stubs(["cuInit", "cuCtxCreate", "cuMemFree"])
    assert [f"harness_slots+{8 * slot}(%rip)" in stubs for slot in range(4)] == [True, True, True, False]
    assert "harness_count: .long 3" in stubs


@pytest.mark.parametrize(
    "name",
    [
        "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuLaunchGrid", "cuMemcpyPeerAsync", "cuMemcpy3DBatchAsync_v2",
        "cuMemcpyHtoAAsync_v2", "cuMemsetD2D16Async", "cuStreamBatchMemOp_v2", "cuStreamWriteValue32",
        "cuMemPrefetchAsync", "cuMemDiscardBatchAsync", "cuMemBatchDecompressAsync", "cuSignalExternalSemaphoresAsync",
        "cuTexObjectCreate",
        "cuStreamBeginCapture", "cuGraphNodeSetEnabled", "cuGraphExecUpdate", "cuGraphExecHostNodeSetParams",
    ],
)  # fmt: skip
def test_work_and_changes_of_graphs_are_noted(name):
    assert list_notes("cuInit", name) == [name]


@pytest.mark.parametrize(
    "name",
    ["cuInit", "cuStreamCreate", "cuStreamQuery", "cuMemGetInfo_v2", "cuGraphExecDestroy", "cuGraphExecGetFlags"],
)
def test_other_functions_are_not_noted(name):
    assert list_notes(name) == []
