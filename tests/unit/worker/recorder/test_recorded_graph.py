"""Graphs of a recording: as it was, with the time of each kernel, without some kernels. The driver only notes calls."""

import ctypes

import pytest

from harness.protocol.device_memory import FIRST_ADDRESS
from harness.worker.recorder.driver_calls import DriverError
from harness.worker.recorder.replayer import RecordedGraph

PROGRAMMATIC = [6, "01" + "00" * 63]


class Driver:
    """A graph has as many nodes as there were launches, copies and events since its capture began."""

    def __init__(self):
        self.names, self.nodes, self.handles, self.edges = [], 0, 0, []

    def pointer(self, name, *arguments):
        self.handles += 1
        self.names.append(name)
        self.nodes += name == "cuGraphAddKernelNode_v2"
        return self.handles

    def cuStreamBeginCapture_v2(self, stream, mode):  # noqa: N802
        self.names, self.nodes = [], 0

    def cuGraphGetNodes(self, graph, nodes, count):  # noqa: N802
        assert nodes is None or self.nodes, "the driver takes no empty list"
        ctypes.cast(count, ctypes.POINTER(ctypes.c_size_t))[0] = self.nodes

    def cuGraphAddDependencies_v2(self, graph, sources, targets, data, count):  # noqa: N802
        self.edges.append([(*ends, one.type) for *ends, one in zip(sources, targets, data, strict=True)])

    def __getattr__(self, name):
        def call(*arguments):
            self.names.append(name)
            self.nodes += name in ("cuLaunchKernelEx", "cuMemcpyDtoDAsync_v2", "cuEventRecordWithFlags")

        return call

    def count(self, name):
        return self.names.count(name)


def launch(function, *attributes):
    return ["launch", 0, function, [1, 1, 1], [32, 1, 1], 0, "00" * 8, list(attributes)]


def record(*operations, graphs=(), parameters=((0, 8),)):
    facts = {"image": 0, "dynamic_shared": 0, "carveout": -1, "non_portable_cluster": 0, "parameters": parameters}
    recording = {
        "operations": operations,
        "functions": [facts | {"name": name} for name in ("mine", "theirs")],
        "images": {"0": {"path": "", "offset": 0, "size": 4}},
        "graphs": list(graphs),
        "globals": [],
        "streams": [{"legacy": True, "blocking": True, "priority": 0}],
    }
    driver = Driver()
    return RecordedGraph(recording, b"\x7fELF", driver), driver


COPY = ["copy", 0, FIRST_ADDRESS, FIRST_ADDRESS + 64, 64]


def test_each_operation_has_events_around_it_on_streams_and_in_graphs():
    inner = {"nodes": [launch(1), ["empty"], launch(0)], "edges": [[2, 1, 0, 0, 0], [1, 0, 0, 0, 0]]}
    recorded, driver = record(launch(0), ["sync"], COPY, ["graph", 0, 0], graphs=[inner])
    _, marks = recorded.capture_with_marks()
    assert [function for function, *_ in marks.measure()] == [0, -1, 1, 0]
    assert driver.count("cuEventRecordWithFlags") == 5  # one before all work
    assert driver.count("cuGraphAddEventRecordNode") == 4
    assert (driver.count("cuLaunchKernelEx"), driver.count("cuGraphAddKernelNode_v2")) == (1, 2)


def test_a_graphs_nodes_follow_events_after_those_before_them():
    inner = {"nodes": [launch(0), launch(1)], "edges": [[0, 1, 1, 0, 1], [0, 1, 0, 0, 0]]}
    recorded, driver = record(["graph", 0, 0], graphs=[inner])
    (added,) = driver.edges
    assert [kind for *_, kind in added] == [1, 0]  # programmatic, and full
    recorded.capture_with_marks()
    edges = driver.edges[-1]
    assert [kind for *_, kind in edges] == [0] * 5
    following = {source: target for source, target, _ in edges}
    first = next(source for source in following if source not in following.values())
    order = [first]
    while order[-1] in following:
        order.append(following[order[-1]])
    assert len(order) == 6  # event, kernel, event, event, kernel, event


def test_kernels_are_left_out_on_streams_and_in_graphs():
    inner = {"nodes": [launch(0), launch(1)], "edges": [[0, 1, 0, 0, 0]]}
    recorded, driver = record(launch(0), launch(1), ["graph", 0, 0], graphs=[inner])
    recorded.capture_without([0])
    assert driver.count("cuLaunchKernelEx") == 1
    assert (driver.count("cuGraphAddKernelNode_v2"), driver.count("cuGraphAddEmptyNode")) == (1, 1)
    recorded.capture_with_marks()
    assert driver.count("cuLaunchKernelEx") == 2


def test_the_end_of_a_graph_waits_for_all_kernels_of_programmatic_launches():
    recorded, driver = record(launch(0), launch(1, PROGRAMMATIC))
    assert driver.count("cuGraphAddEmptyNode") == 1
    recorded.capture_with_marks()  # each waits for the event before it
    assert driver.count("cuGraphAddEmptyNode") == 0
    recorded.capture_without([0, 1])
    assert driver.count("cuGraphAddEmptyNode") == 0
    recorded.capture_without([0])
    assert driver.count("cuGraphAddEmptyNode") == 1
    _, driver = record(launch(0), launch(1))
    assert driver.count("cuGraphAddEmptyNode") == 0


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        (["copy", 0, 0x7FFD00001000, FIRST_ADDRESS, 64], ((0, 8),)),
        (["copy", 0, FIRST_ADDRESS, FIRST_ADDRESS, -1], ((0, 8),)),
        (["write", 0, FIRST_ADDRESS, 1 << 40, 64], ((0, 8),)),
        (["set", 0, 0x1000, 0, 1, 0, 64, 1], ((0, 8),)),
        (launch(0, [7, "00" * 64]), ((0, 8),)),
        (launch(0), ((0, 16),)),
        (launch(0), ((-8, 8),)),
    ],
)
def test_operations_on_other_memory_are_refused(operation, parameters):
    with pytest.raises(DriverError):
        record(launch(1), operation, parameters=parameters)
