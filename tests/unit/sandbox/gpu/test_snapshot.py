"""What the evaluator reads of outputs at the end of a GPU call."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.protocol import TensorSpec, storage_bytes
from harness.sandbox.devices import STAGING_BYTES
from harness.sandbox.gpu.snapshot import (
    COMB_ROWS,
    COMB_WIDTH,
    COMBS,
    MOST_OUTPUTS,
    choose_combs,
    prepare_reading,
    read_in_places,
)
from harness.sandbox.gpu.worker_memory import Stretch
from harness.tensors.output_samples import choose_sample, find_memory_order

MIB = 1 << 20


def spec_of(*shape, dtype="uint8"):
    return TensorSpec(dtype=dtype, shape=shape, stride=torch.empty(shape, device="meta").stride())


def read_bytes(combs, output, size):
    """Whether each byte of a small output is read."""
    read = torch.zeros(size, dtype=torch.uint8)
    for comb in combs:
        if comb.output == output:
            comb.view(read).add_(1)
    return read


@given(st.lists(st.one_of(st.integers(0, 5000), st.integers(0, 1 << 36)), max_size=MOST_OUTPUTS), st.integers(0, 99))
def test_combs_lie_within_their_outputs_and_fit_into_the_staging_memory(sizes, seed):
    combs = choose_combs([spec_of(size) for size in sizes], random.Random(seed))
    assert sum(comb.size_bytes for comb in combs) <= STAGING_BYTES
    assert {comb.output for comb in combs} == {output for output, size in enumerate(sizes) if size}
    for comb in combs:
        assert comb.width <= comb.pitch
        assert comb.first >= 0
        assert comb.first + (comb.rows - 1) * comb.pitch + comb.width <= sizes[comb.output]


@given(st.integers(1, COMB_ROWS * COMB_WIDTH), st.integers(0, 99))
def test_a_small_output_is_read_whole_and_once(size, seed):
    assert (read_bytes(choose_combs([spec_of(size)], random.Random(seed)), 0, size) == 1).all()


@given(st.integers(COMB_ROWS * COMB_WIDTH + 1, 16 * MIB), st.integers(0, 99))
@settings(max_examples=30)
def test_every_part_of_a_large_output_is_read_somewhere(size, seed):
    read = read_bytes(choose_combs([spec_of(size)], random.Random(seed)), 0, size)
    part = 2 * -(-size // (COMB_ROWS // COMBS // 2))
    assert all(chunk.any() for chunk in read[: size // part * part].split(part))


@given(st.integers(COMB_ROWS * COMB_WIDTH + 1, 1 << 36), st.integers(0, 99))
def test_first_and_last_bytes_of_large_outputs_are_sampled_soon(size, seed):
    """A sum of all other elements may be there."""
    source = random.Random(seed)
    combs = [comb for _ in range(40) for comb in choose_combs([spec_of(size)], source)]
    assert min(comb.first for comb in combs) == 0
    assert max(comb.first + (comb.rows - 1) * comb.pitch + comb.width for comb in combs) == size


@given(st.integers(300, 100_000), st.floats(0.05, 0.5), st.integers(0, 99))
@settings(max_examples=40)
def test_a_regular_pattern_of_late_bytes_is_seen_within_a_few_calls(period, late_share, seed):
    """Whatever its period, also that of a comb."""
    source, size = random.Random(seed), 16 * MIB
    first = source.randrange(period)

    def is_late(byte):
        return (byte - first) % period < late_share * period

    combs = [comb for _ in range(6) for comb in choose_combs([spec_of(size)], source)]
    assert any(is_late(comb.first + row * comb.pitch) for comb in combs for row in range(comb.rows))


@pytest.mark.parametrize(
    "specs", [[spec_of(1000)] * (MOST_OUTPUTS + 1), [TensorSpec(dtype="int8", shape=(9,), stride=(2,))]]
)
def test_many_outputs_and_sparse_ones_are_copied_whole(specs):
    assert choose_combs(specs, random.Random(0)) == []


def specs_of(tensors):
    return [TensorSpec(dtype=str(one.dtype)[6:], shape=one.shape, stride=one.stride()) for one in tensors]


def take_snapshot(tensors, device, sample=None):
    specs = specs_of(tensors)
    stretches = [Stretch(one.data_ptr(), storage_bytes(spec)) for one, spec in zip(tensors, specs, strict=True)]
    reading = prepare_reading(choose_combs(specs, random.Random(1)), device)
    return read_in_places(stretches, specs, reading, device, torch.device("cpu"), sample=sample)


def snap(tensors, device):
    return take_snapshot(tensors, device).outputs


def test_outputs_are_copied_with_their_form(host_copies):
    outputs = [torch.randn(700, 900), torch.randn(300, 200).t(), torch.arange(5), torch.randn(8, 100_000)[:, :90_000]]
    for copy, output in zip(snap(outputs, host_copies[0]), outputs, strict=True):
        assert torch.equal(copy, output)
        assert copy.stride() == output.stride()
        assert copy.data_ptr() != output.data_ptr()


@pytest.mark.parametrize("rows", [4, 4096])
@pytest.mark.parametrize("late_share", [1.0, 0.05])
def test_data_written_after_the_window_is_missing(host_copies, rows, late_share):
    device, late = host_copies
    output = torch.zeros(rows, 1024)
    first_late = rows - max(int(rows * late_share), 1)
    output[:first_late] = 1.0
    late.append(lambda: output[first_late:].fill_(1.0))
    (copy,) = snap([output], device)
    assert (output == 1.0).all()
    assert (copy[:first_late] == 1.0).all()
    assert (copy[first_late:] == 0.0).any()


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
    )
)
def test_dimensions_are_found_in_the_order_of_their_memory(drawn):
    sizes, order = drawn
    tensor = torch.arange(torch.Size(sizes).numel()).view(sizes).permute(order)
    found = find_memory_order(specs_of([tensor])[0])
    assert torch.equal(tensor.permute(found).flatten(), torch.arange(tensor.numel()))


@pytest.mark.parametrize("tensor", [torch.zeros(4, 6)[:, :5], torch.zeros(4, 1).expand(4, 3), torch.zeros(9)[::2]])
def test_layouts_with_gaps_or_shared_elements_have_no_memory_order(tensor):
    assert find_memory_order(specs_of([tensor])[0]) is None


def test_a_sample_contains_the_bytes_that_were_read_in_places(host_copies):
    outputs = [
        torch.randn(1200, 1000),
        torch.randn(700, 900, dtype=torch.float64).t(),
        torch.arange(5, dtype=torch.int16),
        torch.randn(3, 40, 5, 600).permute(2, 0, 3, 1).bfloat16(),
        torch.tensor(3.0),
    ]
    chosen = choose_sample(specs_of(outputs), random.Random(2))
    snapshot = take_snapshot(outputs, host_copies[0], chosen)
    assert {rows.output for rows in snapshot.sample.rows} == set(range(len(outputs)))
    for index, output in enumerate(outputs):
        found = snapshot.outputs[index]
        assert torch.equal(found, snapshot.sample.take(index, output))
        assert torch.equal(found, snapshot.sample.take(index, output.contiguous()))
        assert found.numel() > chosen.take(index, output).numel()


def test_data_written_after_the_window_is_missing_in_a_sample(host_copies):
    device, late = host_copies
    output = torch.zeros(4096, 1024)
    late.append(lambda: output.fill_(1.0))
    snapshot = take_snapshot([output], device, choose_sample(specs_of([output]), random.Random(2)))
    assert (snapshot.outputs[0] == 0.0).sum() == sum(rows.width * rows.count for rows in snapshot.sample.rows)
