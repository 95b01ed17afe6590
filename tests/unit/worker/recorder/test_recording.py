"""What the forwarding library records of a call."""

import subprocess

import pytest

LAUNCH = ["launch", 0, 0, [2, 3, 4], [5, 6, 7], 1024]
ARGUMENTS = b"12345678".hex() + b"abcd".hex()


def list_names(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in lines.stdout.splitlines() if line.split()[-1].startswith("cu")}


def test_a_recording_without_work_is_empty(run):
    found = run("answer = record()[0]")
    assert found == {
        "operations": [], "functions": [], "graphs": [], "images": {}, "globals": [], "streams": [], "memory": [],
        "unsupported": [], "has_fixed_addresses": False,
    }  # fmt: skip


def test_every_function_of_the_driver_is_forwarded(library, stand_in):
    assert list_names(library) == list_names(stand_in / "libcuda.so.1")


def test_a_function_without_a_hook_reaches_the_driver(run):
    assert (
        run("version = ctypes.c_int(); call('cuDriverGetVersion', ctypes.byref(version)); answer = version.value")
        == 13000
    )


@pytest.mark.parametrize(
    ("flags", "name", "stream"), [(0, "cuLaunchKernel", "legacy"), (2, "cuLaunchKernel_ptsz", "thread")]
)
def test_functions_found_by_address_are_recorded(run, flags, name, stream):
    streams, calls = run(f"""
        function = load()
        address = number()
        call("cuGetProcAddress_v2", b"cuLaunchKernel", ctypes.byref(address), 13000, {flags}, None)
        found = ctypes.CFUNCTYPE(ctypes.c_int)(address.value)
        list_calls()
        work = lambda: found(number(function), 2, 3, 4, 5, 6, 7, 0, None, point(b"12345678", b"abcd"), None)
        answer = [record(work)[0]["streams"], list_calls()]
    """)
    assert [one["legacy"] for one in streams] == [stream == "legacy"]
    assert calls[0].startswith(name + " ")


def test_a_launch_is_recorded_with_its_packed_arguments(run):
    found = run("""
        function = load()
        answer = record(lambda: launch(function, b"12345678", b"abcd"))[0]
    """)
    assert found["operations"] == [[*LAUNCH, ARGUMENTS, []]]
    (function,) = found["functions"]
    assert function["name"] == "k_8_4"
    assert function["parameters"] == [[0, 8], [8, 4]]
    assert function["dynamic_shared"] == 65536


def test_arguments_in_one_buffer_are_recorded(run):
    found = run("""
        function, packed = load(), b"12345678abcd"
        size = ctypes.c_size_t(len(packed))
        extra = (ctypes.c_void_p * 5)(1, point(packed)[0], 2, ctypes.addressof(size), 0)
        work = lambda: call("cuLaunchKernel", function, 2, 3, 4, 5, 6, 7, 1024, 0, None, extra)
        answer = record(work)[0]["operations"]
    """)
    assert found == [[*LAUNCH, ARGUMENTS, []]]


def test_a_launch_is_recorded_with_its_attributes(run):
    (found,) = run("""
        function = load()
        attributes = [(4, b"\\x02" + bytes(63)), (0, bytes(64))]
        work = lambda: launch_with(function, b"12345678", b"abcd", attributes=attributes)
        answer = record(work)[0]["operations"]
    """)
    assert found == [*LAUNCH, ARGUMENTS, [[4, "02" + 63 * "00"]]]


def test_a_cooperative_launch_is_recorded_as_one(run):
    (found,) = run("""
        function, sizes = load(), (2, 3, 4, 5, 6, 7, 1024)
        work = lambda: call("cuLaunchCooperativeKernel", function, *sizes, 0, point(b"12345678", b"abcd"))
        answer = record(work)[0]["operations"]
    """)
    assert found[:7] == [*LAUNCH, ARGUMENTS]
    assert [(number, value[:2]) for number, value in found[7]] == [(2, "01")]


@pytest.mark.parametrize("number", [7, 12, 13])
def test_a_launch_with_a_handle_of_its_process_is_refused(run, number):
    found = run(f"""
        function = load()
        work = lambda: launch_with(function, b"12345678", b"abcd", attributes=[({number}, bytes(64))])
        answer = record(work)[0]["unsupported"]
    """)
    assert found == [f"a launch with attribute {number}, which another process cannot use"]


def test_a_kernel_of_a_library_has_its_code(run):
    found = run("""
        code = b".version 8.0 // library"
        owner = make("cuLibraryLoadData", code, None, None, 0, None, None, 0)
        kernel = make("cuLibraryGetKernel", owner, b"k_8")
        function = make("cuKernelGetFunction", kernel)
        def work():
            launch(kernel, b"12345678")
            launch(function, b"12345678")
        recording, blob = record(work)
        answer = [recording["functions"], recording["images"], blob.decode()]
    """)
    functions, images, blob = found
    assert [(one["image"], one["name"]) for one in functions] == [(0, "k_8")] * 2
    assert images == {"0": {"path": "", "offset": 0, "size": 24}}
    assert blob == ".version 8.0 // library\0"


def test_each_stream_has_its_own_id(run):
    operations, streams = run("""
        function, packed = load(), (b"12345678", b"abcd")
        own = make("cuStreamCreateWithPriority", 1, -3)
        def work():
            for name, stream in (
                ("cuLaunchKernel", 0), ("cuLaunchKernel", LEGACY), ("cuLaunchKernel_ptsz", 0),
                ("cuLaunchKernel", THREAD), ("cuLaunchKernel_ptsz", LEGACY), ("cuLaunchKernel", own),
                ("cuLaunchKernel_ptsz", own),
            ):
                launch(function, *packed, stream=stream, name=name)
        recording = record(work)[0]
        answer = [[row[1] for row in recording["operations"]], recording["streams"]]
    """)
    assert operations == [0, 0, 1, 1, 0, 2, 2]
    assert streams == [
        {"legacy": True, "blocking": True, "priority": 0},
        {"legacy": False, "blocking": True, "priority": 0},
        {"legacy": False, "blocking": False, "priority": -3},
    ]


def test_a_stream_that_ends_with_the_call_is_described_as_it_was(run):
    streams = run("""
        target = allocate()
        def work():
            stream = make("cuStreamCreateWithPriority", 1, -2)
            call("cuMemsetD8Async", target, 0, 16, stream)
            call("cuStreamDestroy_v2", stream)
        answer = record(work)[0]["streams"]
    """)
    assert streams == [{"legacy": False, "blocking": False, "priority": -2}]


def test_a_launch_of_a_graph_is_recorded_and_its_capture_is_not(run):
    found = run("""
        function, target, stream = load(), allocate(), make("cuStreamCreate", 1)
        def work():
            call("cuStreamBeginCapture_v2", stream, 2)
            launch(function, b"12345678", b"abcd", stream=stream)
            call("cuMemsetD8Async", target, 5, 16, stream)
            call("cuMemcpyDtoDAsync_v2", target + 64, target, 16, stream)
            graph = number()
            call("cuStreamEndCapture", stream, ctypes.byref(graph))
            executable = make("cuGraphInstantiateWithFlags", graph.value, 0)
            call("cuGraphLaunch", executable, stream)
            call("cuGraphLaunch", executable, stream)
        answer = [record(work)[0], target]
    """)
    recording, target = found
    assert recording["operations"] == [["graph", 0, 0]] * 2
    assert recording["unsupported"] == []
    (graph,) = recording["graphs"]
    launch, fill, copy = graph["nodes"]
    assert launch == [*LAUNCH, ARGUMENTS, []]
    assert fill == ["set", 0, target, 0, 1, 5, 16, 1]
    assert copy[0] == "copy3d"
    assert graph["edges"] == [[0, 1, 0, 0, 0], [1, 2, 0, 0, 0]]


CHANGES = {
    "cuGraphExecMemsetNodeSetParams": (16, None, None), "cuGraphExecKernelNodeSetParams_v2": (16, None),
    "cuGraphNodeSetEnabled": (16, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_graph_whose_nodes_are_changed_is_refused(run, name):
    unsupported = run(f"""
        stream, graph = make("cuStreamCreate", 1), number()
        call("cuStreamBeginCapture_v2", stream, 2)
        call("cuStreamEndCapture", stream, ctypes.byref(graph))
        executable = make("cuGraphInstantiateWithFlags", graph.value, 0)
        call("{name}", executable, *{CHANGES[name]})
        answer = record(lambda: call("cuGraphLaunch", executable, stream))[0]["unsupported"]
    """)
    assert unsupported == ["a graph that cannot be read, such as one with memory nodes or changed parameters"]


def test_a_graph_with_host_code_is_refused(run):
    unsupported = run("""
        stream, graph = make("cuStreamCreate", 1), number()
        call("cuStreamBeginCapture_v2", stream, 2)
        call("cuLaunchHostFunc", stream, 16, None)
        call("cuStreamEndCapture", stream, ctypes.byref(graph))
        executable = make("cuGraphInstantiateWithFlags", graph.value, 0)
        answer = record(lambda: call("cuGraphLaunch", executable, stream))[0]["unsupported"]
    """)
    assert "a graph has a node of kind 3" in unsupported


def test_small_copies_from_the_host_are_kept(run):
    operations, blob, target = run("""
        target, data = allocate(8192), bytes(range(256)) * 8
        def work():
            call("cuMemcpyHtoDAsync_v2", target, data, 2048, 0)
            call("cuMemcpyHtoDAsync_v2", target + 2048, data, 2048, 0)
        recording, blob = record(work)
        answer = [recording["operations"], blob.hex(), target]
    """)
    assert operations == [["write", 0, target, 0, 2048], ["write", 0, target + 2048, 2048, 2048]]
    assert bytes.fromhex(blob) == bytes(range(256)) * 16


def test_larger_copies_from_the_host_are_refused(run):
    unsupported = run("""
        target, data = allocate(8192), bytes(4097)
        answer = record(lambda: call("cuMemcpyHtoDAsync_v2", target, data, 4097, 0))[0]["unsupported"]
    """)
    assert unsupported == ["data is copied from the host"]


def test_work_after_a_synchronous_copy_is_ordered_behind_it(run):
    operations = run("""
        target, stream = allocate(), make("cuStreamCreate", 1)
        def work():
            call("cuMemcpyHtoD_v2", target, b"data", 4)
            call("cuMemsetD8Async", target, 0, 16, stream)
        answer = [row[0] for row in record(work)[0]["operations"]]
    """)
    assert operations == ["write", "sync", "set"]


@pytest.mark.parametrize("name", ["cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpy", "cuMemcpyDtoHAsync_v2"])
def test_copies_to_the_host_are_refused(run, name):
    unsupported = run(f"""
        source, target = allocate(), ctypes.create_string_buffer(64)
        place = number(ctypes.addressof(target))
        answer = record(lambda: call("{name}", place, source, 64, 0))[0]["unsupported"]
    """)
    assert unsupported == ["device memory is read back to the host"]


def test_a_copy_that_fails_is_not_recorded(run):
    operations = run("""
        source = allocate()
        answer = record(lambda: ask("cuMemcpyDtoDAsync_v2", 0, source, 16, 0))[0]["operations"]
    """)
    assert operations == []


@pytest.mark.parametrize("name", ["cuMemcpyOfTomorrowAsync", "cuMemcpyOfTomorrowAsync_ptsz"])
def test_unhooked_work_is_named_and_reaches_the_driver_unchanged(run, name):
    unsupported, calls = run(f"""
        list_calls()
        work = lambda: call("{name}", 11, 12, 13, 14, 15, 16, 17, 18, 19)
        answer = [record(work)[0]["unsupported"], list_calls()]
    """)
    assert unsupported == [f"the call {name} is not recorded"]
    assert calls[0] == f"{name} 11 12 13 14 15 16 17 18 19"


def test_refused_work_found_by_address_is_named(run):
    unsupported = run("""
        address = number()
        call("cuGetProcAddress_v2", b"cuLaunchHostFunc", ctypes.byref(address), 13000, 0, None)
        found = ctypes.CFUNCTYPE(ctypes.c_int)(address.value)
        answer = record(lambda: found(None, number(16), None))[0]["unsupported"]
    """)
    assert unsupported == ["the call cuLaunchHostFunc is not recorded"]


def test_recorded_work_is_not_refused(run):
    assert run("t = allocate(); answer = record(lambda: call('cuMemsetD8Async', t, 0, 4, 0))[0]['unsupported']") == []


IMAGE = """
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    descriptor = os.open(arguments[0], os.O_RDONLY)
    place = libc.mmap(None, ctypes.c_size_t(8192), {access}, 2, descriptor, ctypes.c_long(0))
    function = make("cuModuleGetFunction", make("cuModuleLoadData", number(place + 4096)), b"k")
    recording, blob = record(lambda: launch(function), private=arguments[1])
    answer = [recording["images"]["0"], blob.decode()]
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "code.so"
    path.write_bytes(bytes(4096) + b".version 8.0 // in a file\0" + bytes(5000))
    return path


def test_code_in_a_file_is_named_by_path_and_offset(run, code):
    image, blob = run(IMAGE.format(access=1), code, "/elsewhere/")
    assert image == {"path": str(code), "offset": 4096, "size": 26}
    assert blob == ""


@pytest.mark.parametrize(("access", "private"), [(3, "/elsewhere/"), (1, None)])
def test_code_of_private_files_and_in_writable_memory_is_copied(run, code, access, private):
    image, blob = run(IMAGE.format(access=access), code, private or code.parent)
    assert image == {"path": "", "offset": 0, "size": 26}
    assert blob == ".version 8.0 // in a file\0"


def test_names_of_any_bytes_are_valid_json(run):
    (function,) = run("""
        odd = make("cuModuleGetFunction", make("cuModuleLoadData", b".code"), bytes(range(1, 256)))
        answer = record(lambda: launch(odd))[0]["functions"]
    """)
    assert function["name"] == bytes(range(1, 256)).decode("latin-1")


def test_variables_of_used_code_are_kept(run):
    found, blob = run("""
        module = make("cuModuleLoadData", b".code")
        call("cuModuleGetGlobal_v2", None, None, module, b"variable")
        function = make("cuModuleGetFunction", module, b"k")
        recording, blob = record(lambda: launch(function))
        answer = [recording["globals"], blob.hex()]
    """)
    (variable,) = found
    assert variable["name"] == "variable"
    assert bytes.fromhex(blob)[variable["offset"] :][: variable["size"]].hex() == "01efcdab"


def test_events_recorded_before_the_call_are_not_waited_for(run):
    operations = run("""
        before, within = make("cuEventCreate", 0), make("cuEventCreate", 0)
        streams = [make("cuStreamCreate", 1) for _ in range(2)]
        call("cuEventRecord", before, streams[0])
        def work():
            call("cuStreamWaitEvent", streams[1], before, 0)
            call("cuEventRecord", within, streams[0])
            call("cuStreamWaitEvent", streams[1], within, 0)
        answer = record(work)[0]["operations"]
    """)
    assert operations == [["record", 0, 0], ["wait", 1, 0]]


def test_more_operations_than_a_recording_holds_are_refused(run):
    count, unsupported = run("""
        target, zero, size = number(allocate()), 0, ctypes.c_size_t(4)
        fill = library.cuMemsetD8Async
        recording = record(lambda: [fill(target, 0, size, None) for _ in range(200_001)])[0]
        answer = [len(recording["operations"]), recording["unsupported"]]
    """)
    assert count == 200_000
    assert unsupported == ["more than 200000 operations in one call"]
