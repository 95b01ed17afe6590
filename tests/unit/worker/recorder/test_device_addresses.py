"""Device memory of the forwarding library: served out of one range of addresses."""

from harness.protocol.device_memory import FIRST_ADDRESS, RANGE_BYTES

MEGABYTE = 1 << 20


def test_allocations_lie_in_the_fixed_range_and_are_aligned(run):
    addresses = run("answer = [allocate(size) for size in (1, 513, 4096, 3 << 20, 1 << 20)]")
    assert all(FIRST_ADDRESS <= one < FIRST_ADDRESS + RANGE_BYTES and one % 512 == 0 for one in addresses)
    assert len(set(addresses)) == 5


def test_freed_memory_is_used_again(run):
    found = run("""
        answer = []
        for size in (700, 3 << 20):
            one = allocate(size)
            call("cuMemFree_v2", one)
            answer.append([one, allocate(size)])
    """)
    assert all(before == after for before, after in found)


def test_freed_neighbours_join(run):
    first, wide = run("""
        blocks = [allocate(2 << 20) for _ in range(3)]
        for block in (blocks[0], blocks[2], blocks[1]):
            call("cuMemFree_v2", block)
        answer = [blocks[0], allocate(6 << 20)]
    """)
    assert first == wide


def test_allocations_in_the_order_of_a_stream_lie_in_the_range(run):
    found = run("""
        answer = [make("cuMemAllocAsync" + suffix, 4096, 0) for suffix in ("", "_ptsz")]
    """)
    assert all(FIRST_ADDRESS <= one < FIRST_ADDRESS + RANGE_BYTES for one in found)


def test_memory_of_the_device_can_be_exported(run):
    calls = run("allocate(); answer = list_calls()")
    assert f"cuMemCreate {2 * MEGABYTE} 1" in calls  # a file descriptor


def test_sizes_beyond_the_range_are_refused_and_leave_it_usable(run):
    statuses, address = run("""
        out, pitch = number(), number()
        sizes = (1 << 64) - 1, (1 << 64) - (1 << 20), 1 << 43
        answer = [[ask("cuMemAlloc_v2", ctypes.byref(out), size) for size in sizes], 0]
        answer[0] += [ask("cuMemAddressReserve", ctypes.byref(out), (1 << 64) - 1, 0, 0, 0)]
        answer[0] += [ask("cuMemAllocPitch_v2", ctypes.byref(out), ctypes.byref(pitch), 1 << 60, 1 << 20, 4)]
        answer[1] = allocate(3 << 20)
    """)
    assert statuses == [2] * 5
    assert address == FIRST_ADDRESS


def test_inaccessible_memory_is_unmapped_before_reuse(run):
    calls = run("""
        ctypes.c_int.from_address(library.harness_real(b"standin_refuses_access")).value = 1
        ask("cuMemAlloc_v2", ctypes.byref(number()), 3 << 20)
        answer = [line.split()[0] for line in list_calls()]
    """)
    assert calls[-2:] == ["cuMemSetAccess", "cuMemUnmap"]


def test_a_recording_lists_the_mapped_memory(run):
    memory = run("""
        kept, freed = allocate(3 << 20), allocate(5 << 20)
        call("cuMemFree_v2", freed)
        answer = record()[0]["memory"]
    """)
    assert memory == [[FIRST_ADDRESS, 4 * MEGABYTE]]


def test_memory_that_is_freed_in_a_call_orders_the_work_around_it(run):
    """The real driver waits for the device, and another stream may get the memory next."""
    operations = run("""
        streams = [make("cuStreamCreate", 1) for _ in range(2)]
        def work():
            for stream in streams:
                block = allocate()
                call("cuMemsetD8Async", block, 1, 16, stream)
                call("cuMemFree_v2", block)
        answer = [row[:2] for row in record(work)[0]["operations"]]
    """)
    assert operations == [["set", 0], ["sync"], ["set", 1], ["sync"]]
