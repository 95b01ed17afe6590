"""Free memory of the machine and of the control groups around this process, as the kernel's files show them."""

import os

import pytest

from harness.hardware.host import available_memory_bytes, read_memory_state, total_memory_bytes

KIB = 1024
LAYOUTS = {
    "v1": {
        "groups": "5:cpu:/\n4:cpu,memory:/job\n", "top": "memory", "limit": "memory.limit_in_bytes",
        "use": "memory.usage_in_bytes", "cached": "total_inactive_file", "unlimited": str(2**63 - 4096),
    },
    "v2": {
        "groups": "0::/job\n", "top": ".", "limit": "memory.max", "use": "memory.current", "cached": "inactive_file",
        "unlimited": "max",
    },
    "v2 beside v1": {
        "groups": "5:cpu:/\n0::/job\n", "top": "unified", "limit": "memory.max", "use": "memory.current",
        "cached": "inactive_file", "unlimited": "max",
    },
}  # fmt: skip


@pytest.fixture(params=LAYOUTS)
def machine(request, tmp_path):
    """/proc and /sys/fs/cgroup of a machine with 8 MiB, of which 6 MiB are free, and a way to write a control group."""
    layout = LAYOUTS[request.param]
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:    8192 kB\nMemAvailable:    6144 kB\nShmem:    16 kB\n")
    (proc / "self" / "cgroup").write_text(layout["groups"])

    def write_group(folder, *, limit, used, cached=0):
        where = cgroup / layout["top"] / folder
        where.mkdir(parents=True, exist_ok=True)
        (where / layout["limit"]).write_text(f"{layout['unlimited'] if limit is None else limit}\n")
        (where / layout["use"]).write_text(f"{used}\n")
        (where / "memory.stat").write_text(f"anon 1\n{layout['cached']} {cached}\n")

    return proc, cgroup, write_group


def test_without_control_groups_it_is_what_the_machine_has(machine):
    proc, cgroup, _ = machine
    (proc / "self" / "cgroup").unlink()
    assert (available_memory_bytes(proc, cgroup), total_memory_bytes(proc, cgroup)) == (6144 * KIB, 8192 * KIB)
    assert read_memory_state(proc, cgroup).shared_bytes == 16 * KIB


def test_a_control_group_without_a_limit_changes_nothing(machine):
    proc, cgroup, write_group = machine
    write_group("job", limit=None, used=1000 * KIB)
    assert (available_memory_bytes(proc, cgroup), total_memory_bytes(proc, cgroup)) == (6144 * KIB, 8192 * KIB)


def test_control_group_limit_counts_and_its_page_cache_is_free(machine):
    proc, cgroup, write_group = machine
    write_group("job", limit=2000 * KIB, used=1700 * KIB, cached=500 * KIB)
    assert (available_memory_bytes(proc, cgroup), total_memory_bytes(proc, cgroup)) == (800 * KIB, 2000 * KIB)


def test_the_group_above_counts_where_it_has_less(machine):
    proc, cgroup, write_group = machine
    write_group("job", limit=2000 * KIB, used=100 * KIB)
    write_group(".", limit=4000 * KIB, used=3600 * KIB)
    assert (available_memory_bytes(proc, cgroup), total_memory_bytes(proc, cgroup)) == (400 * KIB, 2000 * KIB)


def test_a_group_beyond_its_limit_has_nothing_left(machine):
    proc, cgroup, write_group = machine
    write_group("job", limit=2000 * KIB, used=2100 * KIB)
    assert available_memory_bytes(proc, cgroup) == 0


def test_in_a_container_whose_own_group_is_the_top_its_limit_counts(machine):
    proc, cgroup, write_group = machine
    write_group(".", limit=2000 * KIB, used=1500 * KIB)
    assert available_memory_bytes(proc, cgroup) == 500 * KIB


def test_of_this_machine_it_is_at_most_its_physical_memory():
    assert 0 < available_memory_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
